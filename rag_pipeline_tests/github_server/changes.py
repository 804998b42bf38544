"""One random change of a forge at a time, of every kind that GitHub knows, with the webhooks that it would send.

Each change first lets a little time pass, sometimes none: two changes in one second are what a reader that goes by
`updated_at` has to survive. The kinds whose name begins with `silent_` leave the thread's `updated_at` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from rag_pipeline_tests.github_server import texts, webhooks
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Comment, Repository, Review, ReviewComment, ReviewState, Thread
from rag_pipeline_tests.github_server.shapes import Json, Site
from rag_pipeline_tests.github_server.webhooks import Delivery, was


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happened, where, and what GitHub would have sent about it."""

    kind: str
    description: str
    repository: Repository = field(repr=False)
    deliveries: tuple[Delivery, ...] = field(repr=False)

    @property
    def event(self) -> str | None:
        """The name of the (first) webhook; None when GitHub sends none."""
        return self.deliveries[0].event if self.deliveries else None

    @property
    def payload(self) -> Json | None:
        """The payload of the (first) webhook."""
        return self.deliveries[0].payload if self.deliveries else None


@dataclass(frozen=True, slots=True)
class _Hand:
    """What a change is made with; a kind that finds nothing to change raises IndexError."""

    forge: Forge
    rng: Random
    repository: Repository
    site: Site

    def thread(self, *, pull: bool | None = None, state: str | None = None) -> Thread:
        fit = [
            thread
            for thread in self.repository.everything()
            if pull in (None, thread.is_pull) and state in (None, thread.state)
        ]
        return self.rng.choice(fit)

    def comment(self) -> Comment:
        return self.rng.choice(self.repository.comments())

    def review(self) -> Review:
        pulls = (thread.the_pull() for thread in self.repository.pulls())
        return self.rng.choice([review for pull in pulls for review in pull.shown_reviews()])

    def review_comment(self) -> ReviewComment:
        return self.rng.choice(self.repository.review_comments())

    def author(self) -> str | None:
        return self.rng.choice(("ada", "grace", "linus", "dependabot[bot]", None))


_Made = tuple[str, tuple[Delivery, ...]]
_CHANGES: dict[str, Callable[[_Hand], _Made]] = {}
C = TypeVar("C", bound=Callable[..., _Made])


def random_change(
    forge: Forge, rng: Random, *, kinds: Collection[str] = (), repository: Repository | None = None,
    site: Site | None = None,
) -> Change:  # fmt: skip
    """Make one change, of one of these kinds (any, when none is given), in a random repository or in this one.

    Raises ValueError when there is nothing that such a change could be made to.
    """
    forge.tick(rng.choice((0, 0, 1, 5, 60, 600, 7200)))
    repositories = list(forge.repositories.values())
    names = sorted(kinds or KINDS)
    rng.shuffle(names)
    for name in names:
        chosen = repository or rng.choice(repositories)
        try:
            description, deliveries = _CHANGES[name](_Hand(forge, rng, chosen, site or Site()))
        except IndexError:
            continue
        return Change(kind=name, description=f"{name}: {description}", repository=chosen, deliveries=deliveries)
    raise ValueError(f"nothing in {[one.full_name for one in repositories]} can be changed by any of {names}")


def _kind(change: C) -> C:
    _CHANGES[change.__name__.removeprefix("_")] = change
    return change


def _on(thread: Thread) -> str:
    return f"{thread.repository.full_name}#{thread.number}"


@_kind
def _open_issue(hand: _Hand) -> _Made:
    body = texts.issue_body(hand.rng)
    thread = hand.forge.open_issue(hand.repository, title=texts.title(hand.rng), body=body, author=hand.author())
    return _on(thread), (webhooks.thread(hand.site, "opened", thread),)


@_kind
def _open_pull_request(hand: _Hand) -> _Made:
    thread = hand.forge.open_pull_request(
        hand.repository, title=texts.title(hand.rng), body=texts.pull_body(hand.rng, 1), author=hand.author()
    )
    return _on(thread), (webhooks.thread(hand.site, "opened", thread),)


@_kind
def _edit_title(hand: _Hand) -> _Made:
    thread = hand.thread()
    before = thread.title
    hand.forge.edit_thread(thread, title=texts.title(hand.rng))
    return _on(thread), (webhooks.thread(hand.site, "edited", thread, changes=was(title=before)),)


@_kind
def _edit_body(hand: _Hand, *, silently: bool = False) -> _Made:
    thread = hand.thread()
    before = thread.body
    hand.forge.edit_thread(thread, body=texts.edited(hand.rng, before), silently=silently)
    return _on(thread), (webhooks.thread(hand.site, "edited", thread, changes=was(body=before)),)


@_kind
def _silent_edit_body(hand: _Hand) -> _Made:
    return _edit_body(hand, silently=True)


@_kind
def _comment(hand: _Hand) -> _Made:
    thread = hand.thread()
    comment = hand.forge.comment(thread, texts.remark(hand.rng, thread.body), author=hand.author())
    return f"{comment.id} on {_on(thread)}", (webhooks.issue_comment(hand.site, "created", comment),)


@_kind
def _edit_comment(hand: _Hand, *, silently: bool = False) -> _Made:
    comment = hand.comment()
    before = comment.body
    hand.forge.edit_comment(comment, texts.edited(hand.rng, before), silently=silently)
    delivery = webhooks.issue_comment(hand.site, "edited", comment, changes=was(body=before))
    return f"{comment.id} on {_on(comment.thread)}", (delivery,)


@_kind
def _silent_edit_comment(hand: _Hand) -> _Made:
    return _edit_comment(hand, silently=True)


@_kind
def _delete_comment(hand: _Hand, *, silently: bool = False) -> _Made:
    comment = hand.comment()
    hand.forge.delete_comment(comment, silently=silently)
    return f"{comment.id} on {_on(comment.thread)}", (webhooks.issue_comment(hand.site, "deleted", comment),)


@_kind
def _silent_delete_comment(hand: _Hand) -> _Made:
    return _delete_comment(hand, silently=True)


@_kind
def _review(hand: _Hand) -> _Made:
    thread = hand.thread(pull=True)
    states: tuple[ReviewState, ...] = ("APPROVED", "CHANGES_REQUESTED", "COMMENTED")
    body = hand.rng.choice((None, "", texts.paragraph(hand.rng)))
    review = hand.forge.review(thread, hand.rng.choice(states), body=body, author=hand.author())
    return f"{review.state} {review.id} on {_on(thread)}", (webhooks.review(hand.site, "submitted", review),)


@_kind
def _draft_review(hand: _Hand) -> _Made:
    thread = hand.thread(pull=True)
    review = hand.forge.review(thread, "PENDING", body=texts.paragraph(hand.rng), author=hand.author())
    hand.forge.review_comment(thread, texts.suggestion(hand.rng), author=review.author, review=review)
    return f"{review.id} on {_on(thread)}, nothing to see yet", ()


@_kind
def _submit_review(hand: _Hand) -> _Made:
    reviews = (review for thread in hand.repository.pulls() for review in thread.the_pull().reviews)
    review = hand.rng.choice([review for review in reviews if review.state == "PENDING"])
    hand.forge.submit_review(review, hand.rng.choice(("APPROVED", "CHANGES_REQUESTED", "COMMENTED")))
    said = [comment for comment in review.thread.the_pull().review_comments if comment.review is review]
    sent = [webhooks.review_comment(hand.site, "created", comment) for comment in said]
    return f"{review.id} on {_on(review.thread)}", (webhooks.review(hand.site, "submitted", review), *sent)


@_kind
def _edit_review(hand: _Hand) -> _Made:
    review = hand.review()
    before = review.body
    hand.forge.edit_review(review, texts.edited(hand.rng, before))
    delivery = webhooks.review(hand.site, "edited", review, changes=was(body=before))
    return f"{review.id} on {_on(review.thread)}", (delivery,)


@_kind
def _dismiss_review(hand: _Hand) -> _Made:
    review = hand.review()
    hand.forge.dismiss_review(review)
    return f"{review.id} on {_on(review.thread)}", (webhooks.review(hand.site, "dismissed", review),)


@_kind
def _review_comment(hand: _Hand) -> _Made:
    thread = hand.thread(pull=True)
    said = thread.the_pull().shown_review_comments()
    comment = hand.forge.review_comment(
        thread, texts.suggestion(hand.rng), path=texts.path(hand.rng), author=hand.author(),
        in_reply_to=hand.rng.choice(said) if said and hand.rng.random() < 0.5 else None,
    )  # fmt: skip
    return f"{comment.id} on {_on(thread)}", (
        webhooks.review(hand.site, "submitted", comment.review),
        webhooks.review_comment(hand.site, "created", comment),
    )


@_kind
def _edit_review_comment(hand: _Hand) -> _Made:
    comment = hand.review_comment()
    before = comment.body
    hand.forge.edit_review_comment(comment, texts.edited(hand.rng, before))
    delivery = webhooks.review_comment(hand.site, "edited", comment, changes=was(body=before))
    return f"{comment.id} on {_on(comment.thread)}", (delivery,)


@_kind
def _delete_review_comment(hand: _Hand) -> _Made:
    comment = hand.review_comment()
    hand.forge.delete_review_comment(comment)
    return f"{comment.id} on {_on(comment.thread)}", (webhooks.review_comment(hand.site, "deleted", comment),)


@_kind
def _label(hand: _Hand) -> _Made:
    thread, name = hand.thread(), hand.rng.choice(("bug", "docs", "später"))
    hand.forge.label(thread, name)
    label = hand.forge.label_of(thread.repository, name)
    return f"{name} on {_on(thread)}", (webhooks.thread(hand.site, "labeled", thread, label=label),)


@_kind
def _unlabel(hand: _Hand) -> _Made:
    thread = hand.rng.choice([thread for thread in hand.repository.everything() if thread.labels])
    label = hand.rng.choice(thread.labels)
    hand.forge.unlabel(thread, label.name)
    return f"{label.name} on {_on(thread)}", (webhooks.thread(hand.site, "unlabeled", thread, label=label),)


@_kind
def _silent_rename_label(hand: _Hand) -> _Made:
    old = hand.rng.choice(sorted(hand.repository.labels))
    new = f"{old.split(' (')[0]} ({hand.rng.randint(1, 999)})"
    hand.forge.rename_label(hand.repository, old, new)
    return f"{old} to {new}", ()


@_kind
def _milestone(hand: _Hand) -> _Made:
    thread, title = hand.thread(), hand.rng.choice(("v1.0", "v2.0"))
    hand.forge.set_milestone(thread, title)
    return f"{title} on {_on(thread)}", (webhooks.thread(hand.site, "milestoned", thread),)


@_kind
def _close(hand: _Hand) -> _Made:
    thread = hand.thread(state="open")
    hand.forge.close(thread, state_reason=hand.rng.choice(("completed", "not_planned")))
    return _on(thread), (webhooks.thread(hand.site, "closed", thread),)


@_kind
def _reopen(hand: _Hand) -> _Made:
    closed = [thread for thread in hand.repository.everything() if thread.closed_at and not _is_merged(thread)]
    thread = hand.rng.choice(closed)
    hand.forge.reopen(thread)
    return _on(thread), (webhooks.thread(hand.site, "reopened", thread),)


@_kind
def _merge(hand: _Hand) -> _Made:
    thread = hand.thread(pull=True, state="open")
    hand.forge.merge(thread)
    return _on(thread), (webhooks.thread(hand.site, "closed", thread),)


@_kind
def _push(hand: _Hand) -> _Made:
    thread = hand.thread(pull=True, state="open")
    before = thread.the_pull().head_sha
    hand.forge.push(thread, outdates=thread.the_pull().shown_review_comments()[:1])
    return _on(thread), (webhooks.thread(hand.site, "synchronize", thread, before=before),)


@_kind
def _delete_issue(hand: _Hand) -> _Made:
    thread = hand.thread(pull=False)
    hand.forge.delete_issue(thread)
    return _on(thread), (webhooks.thread(hand.site, "deleted", thread),)


@_kind
def _transfer_issue(hand: _Hand) -> _Made:
    thread = hand.thread(pull=False)
    others = [one for one in hand.forge.repositories.values() if one is not hand.repository]
    moved = hand.forge.transfer_issue(thread, hand.rng.choice(others))
    return f"{_on(thread)} to {_on(moved)}", webhooks.transferred(hand.site, thread, moved)


@_kind
def _convert_to_discussion(hand: _Hand) -> _Made:
    thread = hand.thread(pull=False)
    hand.forge.convert_to_discussion(thread)
    return _on(thread), ()


@_kind
def _rename_repository(hand: _Hand) -> _Made:
    repository, former = hand.repository, hand.repository.name
    renamed = f"{repository.owner}/{former.split('-')[0]}-{repository.id}-{hand.rng.randint(1, 999)}"
    hand.forge.rename_repository(repository, renamed)
    return f"{former} to {renamed}", (webhooks.repository_renamed(hand.site, repository, former),)


def _is_merged(thread: Thread) -> bool:
    return thread.pull is not None and thread.pull.merged_at is not None


KINDS = frozenset(_CHANGES)
