"""What a webhook delivery says: which repository and thread it touches, and the state that its payload shows. Pure.

The events are those of https://docs.github.com/en/webhooks/webhook-events-and-payloads that touch knowledge; of all
others it says by name that they are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeAlias

from rag_pipeline.errors import ItemError
from rag_pipeline.sources.github import resources
from rag_pipeline.sources.github.resources import Resource, instant, moment
from rag_pipeline.sources.github.threads import Identity

_FULL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
_Payload: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """What a delivery touches, and what it says of it."""

    repository: Identity | None = None
    """As the payload names it; None when it names none."""
    ignored: str = ""
    """Why nothing is to be done; empty: something is."""
    kind: str = ""
    """`issue`, `pull_request`, `discussion` or `release` when a thread is touched; `push` or `repository`."""
    number: int = 0
    """Of the thread; of a release its id."""
    resources: Sequence[Resource] = ()
    """What the payload itself shows, older or newer than what is known."""
    remarks: int | None = None
    """How many review comments a pull request has; None: the payload does not say."""
    gone: Sequence[tuple[str, int]] = ()
    """(kind, id) of the comments that were deleted."""
    thread_gone: bool = False
    moved_to: tuple[Identity, int] | None = None
    """Where a transferred issue is now."""
    branch: str = ""
    """Of a push."""
    first_day: date | None = None
    """Of a push: the day of its oldest commit (UTC)."""


def interpret(event: str, payload: _Payload, *, received_at: str) -> Touch:
    """What a delivery touches; `received_at` (as `instant` writes it) dates what GitHub itself does not date.

    Raises:
        ItemError: the payload lacks what its event must have.
    """
    read = _EVENTS.get(event)
    if read is None:
        return Touch(ignored=f"events of type {event} touch no knowledge")
    repository = _repository(payload.get("repository"))
    if repository is None:
        raise ItemError(f"a delivery of type {event} must name its repository: send it as GitHub did")
    return replace(read(payload, received_at), repository=repository)


def _repository(data: object) -> Identity | None:
    about = data if isinstance(data, Mapping) else {}
    id_, name, url = about.get("id"), about.get("full_name"), about.get("html_url")
    if not isinstance(id_, int) or isinstance(id_, bool) or id_ < 1:
        return None
    if not isinstance(name, str) or not _FULL_NAME.fullmatch(name):
        return None
    return Identity(id=id_, full_name=name, html_url=url.rstrip("/") if isinstance(url, str) and url.isascii() else "")


def _issues(payload: _Payload, received_at: str) -> Touch:
    issue = resources.issue(payload.get("issue"))
    kind = "pull_request" if issue.body["is_pull_request"] else "issue"
    action = payload.get("action")
    gone = action in ("deleted", "transferred")
    return Touch(
        kind=kind, number=issue.number, thread_gone=gone, resources=() if gone else (issue,),
        moved_to=_moved_to(payload) if action == "transferred" else None,
    )  # fmt: skip


def _moved_to(payload: _Payload) -> tuple[Identity, int] | None:
    changes = payload.get("changes")
    about = changes if isinstance(changes, Mapping) else {}
    repository = _repository(about.get("new_repository"))
    issue = about.get("new_issue")
    number = issue.get("number") if isinstance(issue, Mapping) else None
    return (repository, number) if repository and isinstance(number, int) else None


def _issue_comment(payload: _Payload, received_at: str) -> Touch:
    issue = resources.issue(payload.get("issue"))
    kind = "pull_request" if issue.body["is_pull_request"] else "issue"
    comment = resources.comment(payload.get("comment"), number=issue.number)
    if payload.get("action") == "deleted":
        return Touch(kind=kind, number=issue.number, resources=(issue,), gone=(("comment", comment.id),))
    return Touch(kind=kind, number=issue.number, resources=(issue, comment))


def _pull_request(payload: _Payload, received_at: str) -> Touch:
    pull = resources.pull(payload.get("pull_request"))
    half = resources.issue_of_pull(payload.get("pull_request"))
    said = _mapping(payload.get("pull_request")).get("review_comments")
    return Touch(
        kind="pull_request",
        number=pull.number,
        resources=(half, pull),
        remarks=said if isinstance(said, int) else None,
    )


def _pull_request_review(payload: _Payload, received_at: str) -> Touch:
    touch = _pull_request(payload, received_at)
    version = touch.resources[0].version
    review = resources.review(payload.get("review"), number=touch.number, version=version)
    return replace(touch, resources=(*_complete(touch.resources), review))


def _pull_request_review_comment(payload: _Payload, received_at: str) -> Touch:
    touch = _pull_request(payload, received_at)
    comment = resources.review_comment(payload.get("comment"), number=touch.number)
    if payload.get("action") == "deleted":
        return replace(touch, resources=_complete(touch.resources), gone=(("review_comment", comment.id),))
    return replace(touch, resources=(*_complete(touch.resources), comment))


def _complete(found: Sequence[Resource]) -> tuple[Resource, ...]:
    """The halves of a pull request; a review's payload has a shortened one, which lacks the merge."""
    return tuple(resource for resource in found if resource.kind != "pull")


def _push(payload: _Payload, received_at: str) -> Touch:
    ref = payload.get("ref")
    branch = ref.removeprefix("refs/heads/") if isinstance(ref, str) and ref.startswith("refs/heads/") else ""
    if not branch:
        return Touch(ignored="a push of a tag touches no branch")
    commits = payload.get("commits")
    head = payload.get("head_commit")
    known = [*(commits if isinstance(commits, list) else []), head]
    dated = [instant(_mapping(commit).get("timestamp")) for commit in known]
    days = [moment(text).date() for text in dated if text]
    return Touch(kind="push", branch=branch, first_day=min(days, default=moment(received_at).date()))


def _repository_event(payload: _Payload, received_at: str) -> Touch:
    action = payload.get("action")
    if action == "deleted":
        return Touch(ignored="a deleted repository is not emptied by a delivery: take it out of the settings")
    if action not in ("renamed", "transferred", "edited", "publicized", "privatized"):
        return Touch(ignored=f"a repository that was {action} holds the same knowledge as before")
    return Touch(kind="repository")


def _release(payload: _Payload, received_at: str) -> Touch:
    release = resources.release(payload.get("release"), version=received_at)
    gone = payload.get("action") in ("deleted", "unpublished")
    if not gone and _mapping(payload.get("release")).get("draft"):
        return Touch(ignored="a draft release is not published yet")
    return Touch(kind="release", number=release.id, thread_gone=gone, resources=() if gone else (release,))


def _discussion(payload: _Payload, received_at: str) -> Touch:
    discussion = resources.discussion(payload.get("discussion"))
    gone = payload.get("action") in ("deleted", "transferred")
    return Touch(kind="discussion", number=discussion.number, thread_gone=gone, resources=() if gone else (discussion,))


def _discussion_comment(payload: _Payload, received_at: str) -> Touch:
    discussion = resources.discussion(payload.get("discussion"))
    comment = resources.discussion_comment(payload.get("comment"), number=discussion.number)
    touch = Touch(kind="discussion", number=discussion.number, resources=(discussion, comment))
    if payload.get("action") == "deleted":
        return replace(touch, resources=(discussion,), gone=(("discussion_comment", comment.id),))
    return touch


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_EVENTS: Mapping[str, Callable[[_Payload, str], Touch]] = {
    "issues": _issues,
    "issue_comment": _issue_comment,
    "pull_request": _pull_request,
    "pull_request_review": _pull_request_review,
    "pull_request_review_comment": _pull_request_review_comment,
    "push": _push,
    "repository": _repository_event,
    "release": _release,
    "discussion": _discussion,
    "discussion_comment": _discussion_comment,
}
