"""Repositories that look like real ones, made from a seed: the same seed gives the same forge, ids and dates included.

`generate` fills a forge with one repository whose history ends at the forge's clock; `random_change` (from `changes`)
then makes one random change after another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from rag_pipeline_tests.github_server import texts
from rag_pipeline_tests.github_server.changes import KINDS, Change, random_change
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import ChangedFile, FileStatus, Repository, ReviewState, Thread

PEOPLE = ("ada", "grace", "linus", "barbara", "acme", "mallory-山田", None)
BOTS = ("dependabot[bot]", "coverage[bot]")
LABELS = ("bug", "enhancement", "question", "good first issue", "area: index", "wontfix")

__all__ = ["KINDS", "Change", "generate", "random_change"]


@dataclass(slots=True, kw_only=True)
class _Plan:
    """What happens when, before any of it has happened; times are parts of the whole span."""

    forge: Forge
    rng: Random
    repository: Repository
    threads: list[Thread] = field(default_factory=list)
    events: list[tuple[float, int, Callable[[], object]]] = field(default_factory=list)

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Plan one action."""
        self.events.append((when, len(self.events), action))

    def happen(self, begin: datetime, end: datetime) -> None:
        """Let everything happen, in order, with the clock set to each moment."""
        for when, _, action in sorted(self.events, key=lambda event: event[:2]):
            self.forge.now = begin + (end - begin) * when
            action()
        self.forge.now = end


def generate(
    forge: Forge, *, seed: int = 0, full_name: str = "acme/rocket", issues: int = 30, pulls: int = 20,
    comments: float = 2.0, reviews: float = 1.5, review_comments: float = 1.5, days: int = 90, private: bool = False,
    installation: int | None = None,
) -> Repository:  # fmt: skip
    """Fill a forge with one repository; the rates are means for each thread, the history ends at `forge.now`."""
    rng, end = Random(seed), forge.now
    begin = end - timedelta(days=days)
    forge.now = begin
    repository = forge.add_repository(full_name, private=private, installation=installation)
    plan = _Plan(forge=forge, rng=rng, repository=repository)
    kinds = [False] * issues + [True] * pulls
    rng.shuffle(kinds)
    opened = sorted(rng.random() * 0.95 for _ in kinds)
    for index, (is_pull, when) in enumerate(zip(kinds, opened, strict=True)):
        plan.at(when, _opening(plan, is_pull=is_pull))
        for _ in range(_amount(rng, comments)):
            plan.at(rng.uniform(when, 1), _later(plan, index, _comment))
        if is_pull:
            for _ in range(_amount(rng, reviews)):
                plan.at(rng.uniform(when, 1), _later(plan, index, _review))
            for _ in range(_amount(rng, review_comments)):
                plan.at(rng.uniform(when, 1), _later(plan, index, _review_comment))
        for action in (_edit, _tag, _end):
            if rng.random() < 0.5:
                plan.at(rng.uniform(when, 1), _later(plan, index, action))
    plan.happen(begin, end)
    return repository


def _amount(rng: Random, mean: float) -> int:
    # Most threads have few remarks, some have many.
    return round(rng.expovariate(1 / mean)) if mean > 0 else 0


def _author(rng: Random) -> str | None:
    return rng.choice(BOTS) if rng.random() < 0.1 else rng.choice(PEOPLE)


def _later(plan: _Plan, index: int, action: Callable[[_Plan, Thread], object]) -> Callable[[], object]:
    return lambda: action(plan, plan.threads[index])


def _opening(plan: _Plan, *, is_pull: bool) -> Callable[[], object]:
    def open_issue() -> None:
        rng = plan.rng
        thread = plan.forge.open_issue(
            plan.repository, title=texts.title(rng), body=texts.issue_body(rng), author=_author(rng),
            labels=rng.sample(LABELS, rng.randint(0, 2)), milestone=rng.choice((None, None, "v1.0")),
        )  # fmt: skip
        plan.threads.append(thread)

    def open_pull() -> None:
        rng, number = plan.rng, len(plan.threads) + 1
        fork = rng.choice(("", "", "grace/rocket", None))
        thread = plan.forge.open_pull_request(
            plan.repository, title=texts.title(rng), body=texts.pull_body(rng, rng.randint(1, number)),
            author=_author(rng), head=f"{texts.word(rng)}-{number}", head_repository=fork, files=changed_files(rng),
            draft=rng.random() < 0.15,
        )  # fmt: skip
        plan.threads.append(thread)

    return open_pull if is_pull else open_issue


def _comment(plan: _Plan, thread: Thread) -> None:
    author = _author(plan.rng)
    earlier = thread.comments[-1].body if thread.comments else thread.body
    said = texts.bot_remark(plan.rng) if author in BOTS else texts.remark(plan.rng, earlier)
    plan.forge.comment(thread, said, author=author)


def _review(plan: _Plan, thread: Thread) -> None:
    rng = plan.rng
    states: tuple[ReviewState, ...] = ("APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED")
    body = rng.choice((None, "", texts.paragraph(rng), texts.remark(rng, thread.body)))
    review = plan.forge.review(thread, rng.choice(states), body=body, author=_author(rng))
    for _ in range(rng.choice((0, 0, 1, 3))):
        plan.forge.review_comment(
            thread, texts.suggestion(rng), path=texts.path(rng), line=rng.randint(1, 200), author=review.author,
            review=review,
        )  # fmt: skip


def _review_comment(plan: _Plan, thread: Thread) -> None:
    rng, said = plan.rng, thread.the_pull().review_comments
    plan.forge.review_comment(
        thread, texts.suggestion(rng), path=texts.path(rng), line=rng.randint(1, 200), author=_author(rng),
        in_reply_to=rng.choice(said) if said and rng.random() < 0.5 else None,
    )  # fmt: skip


def _edit(plan: _Plan, thread: Thread) -> None:
    if thread.comments and plan.rng.random() < 0.6:
        comment = plan.rng.choice(thread.comments)
        plan.forge.edit_comment(comment, texts.edited(plan.rng, comment.body))
    else:
        plan.forge.edit_thread(thread, body=texts.edited(plan.rng, thread.body))


def _tag(plan: _Plan, thread: Thread) -> None:
    plan.forge.label(thread, plan.rng.choice(LABELS))


def _end(plan: _Plan, thread: Thread) -> None:
    if thread.is_pull and plan.rng.random() < 0.8:
        plan.forge.merge(thread, by="grace")
    else:
        plan.forge.close(thread, state_reason=plan.rng.choice(("completed", "not_planned")))


def changed_files(rng: Random) -> list[ChangedFile]:
    """The files of a pull request, with renames, removals and a binary among them."""
    kinds: tuple[FileStatus, ...] = ("modified", "modified", "added", "removed", "renamed")
    files: dict[str, ChangedFile] = {}
    for _ in range(rng.randint(1, 6)):
        name, status = texts.path(rng), rng.choice(kinds)
        files[name] = ChangedFile(
            filename=name, status=status, additions=rng.randint(0, 80), deletions=rng.randint(0, 40),
            previous_filename=texts.path(rng) if status == "renamed" else None,
            patch=None if rng.random() < 0.1 else f"@@ -1,2 +1,2 @@\n-{texts.word(rng)}\n+{texts.word(rng)}",
        )  # fmt: skip
    return list(files.values())
