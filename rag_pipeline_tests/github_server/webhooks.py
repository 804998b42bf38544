"""The webhooks that GitHub sends when something changes, with payloads as REST would show the things after the change.

Call them after the operation: `forge.edit_comment(comment, "new")`, then
`webhooks.issue_comment(Site(), "edited", comment, changes=was(body="old"))`. What was deleted is still in hand. Three
differences to REST are GitHub's own: a review's state is in lower case, its empty text is null, and only events about
the pull request itself hold its full form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_pipeline_tests.github_server import pull_shapes, shapes
from rag_pipeline_tests.github_server.nouns import Comment, Label, Repository, Review, ReviewComment, Thread
from rag_pipeline_tests.github_server.shapes import Json, JsonValue, Site

SENDER = "ada"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One webhook: the name that `X-GitHub-Event` carries, and the payload."""

    event: str
    payload: Json

    @property
    def name(self) -> str:
        """Event and action: `issue_comment.edited`."""
        return f"{self.event}.{self.payload['action']}"


def was(**before: str | None) -> Json:
    """The `changes` of an edit: what the changed fields held before (null shows as an empty text)."""
    return {name: {"from": value or ""} for name, value in before.items()}


def thread(
    site: Site, action: str, thread: Thread, *, changes: Json | None = None, label: Label | None = None,
    before: str | None = None,
) -> Delivery:  # fmt: skip
    """`issues` or `pull_request`, whichever the thread is; `before` is the head that a push replaced."""
    extra: dict[str, JsonValue] = {} if changes is None else {"changes": changes}
    if label is not None:
        extra["label"] = shapes.label(site, thread.repository, label)
    if action in ("milestoned", "demilestoned"):
        extra["milestone"] = shapes.milestone(site, thread.repository, thread.milestone)
    if thread.pull is None:
        return _delivery(site, "issues", action, thread.repository, issue=shapes.issue(site, thread), **extra)
    if before is not None:
        extra |= {"before": before, "after": thread.pull.head_sha}
    pull = pull_shapes.pull(site, thread, alone=True)
    return _delivery(site, "pull_request", action, thread.repository, number=thread.number, pull_request=pull, **extra)


def issue_comment(site: Site, action: str, comment: Comment, *, changes: Json | None = None) -> Delivery:
    """`issue_comment`: created, edited, deleted."""
    extra: Mapping[str, JsonValue] = {} if changes is None else {"changes": changes}
    return _delivery(
        site, "issue_comment", action, comment.thread.repository, issue=shapes.issue(site, comment.thread),
        comment=shapes.comment(site, comment), **extra,
    )  # fmt: skip


def review(site: Site, action: str, review: Review, *, changes: Json | None = None) -> Delivery:
    """`pull_request_review`: submitted, edited, dismissed."""
    extra: Mapping[str, JsonValue] = {} if changes is None else {"changes": changes}
    shape: Json = {**pull_shapes.review(site, review), "state": review.state.lower(), "body": review.body or None}
    return _delivery(
        site, "pull_request_review", action, review.thread.repository,
        review=shape, pull_request=_in_passing(site, review.thread), **extra,
    )  # fmt: skip


def review_comment(site: Site, action: str, comment: ReviewComment, *, changes: Json | None = None) -> Delivery:
    """`pull_request_review_comment`: created, edited, deleted."""
    extra: Mapping[str, JsonValue] = {} if changes is None else {"changes": changes}
    return _delivery(
        site, "pull_request_review_comment", action, comment.thread.repository,
        comment=pull_shapes.review_comment(site, comment), pull_request=_in_passing(site, comment.thread), **extra,
    )  # fmt: skip


def transferred(site: Site, old: Thread, new: Thread) -> tuple[Delivery, Delivery]:
    """What a transfer sends: `issues.transferred` from the old repository, `issues.opened` from the new."""
    leaving: Json = {
        "new_issue": shapes.issue(site, new),
        "new_repository": shapes.repository(site, new.repository),
    }
    arriving: Json = {
        "old_issue": shapes.issue(site, old),
        "old_repository": shapes.repository(site, old.repository),
    }
    return thread(site, "transferred", old, changes=leaving), thread(site, "opened", new, changes=arriving)


def repository_renamed(site: Site, repository: Repository, former_name: str) -> Delivery:
    """`repository.renamed`; `former_name` is without the owner."""
    changes: Json = {"repository": {"name": {"from": former_name}}}
    return _delivery(site, "repository", "renamed", repository, changes=changes)


def _in_passing(site: Site, thread: Thread) -> Json:
    return pull_shapes.pull(site, thread)


def _delivery(site: Site, event: str, action: str, repository: Repository, **parts: JsonValue) -> Delivery:
    payload: Json = {
        "action": action, **parts, "repository": shapes.repository(site, repository),
        "sender": shapes.user(site, SENDER),
    }  # fmt: skip
    return Delivery(event=event, payload=payload)
