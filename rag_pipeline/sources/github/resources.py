"""GitHub's JSON as the few fields that make a thread: the same from a listing, a single answer or a webhook payload.

Pure. What GitHub leaves out, sends as null or sends in another type becomes an empty value; what makes a resource
unusable (no id, no number) is an `ItemError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from rag_pipeline.errors import ItemError
from rag_pipeline.model import Json

Body: TypeAlias = dict[str, Json]
"""What a resource holds, in our words."""

_TRAILING_NUMBER = re.compile(r"/([1-9][0-9]{0,17})$")
# PostgreSQL and UTF-8 have no place for them.
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
_INSTANT = "%Y-%m-%dT%H:%M:%SZ"
EPOCH = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One thing of a repository: an issue, a pull request's own fields, a comment, a review, …"""

    kind: str
    """`issue`, `pull`, `comment`, `review`, `review_comment`, `files`, `discussion`, `discussion_comment`, …"""
    id: int
    """GitHub's id; the number for `issue`, `pull`, `files` and `discussion`, of which a thread has one."""
    number: int
    """Of the thread it belongs to."""
    version: str
    """Its last change, as text that sorts by time; of two states the one with the greater version is the newer."""
    body: Body


def instant(value: object) -> str:
    """A time of GitHub's (ISO 8601 with any offset, or epoch seconds) in UTC, as text that sorts; "" when unknown.

    What lies before 1970 is the zero of some program, and no time.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            found = datetime.fromtimestamp(value, UTC)
        elif isinstance(value, str) and value:
            found = datetime.fromisoformat(value)
            found = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        else:
            return ""
    except (ValueError, OverflowError, OSError):
        return ""
    text = found.strftime(_INSTANT)
    return text if found.year >= 1970 else ""


def moment(text: str) -> datetime:
    """The time that `instant` wrote; 1970 when it is not known."""
    return datetime.strptime(text or EPOCH, _INSTANT).replace(tzinfo=UTC)


def precise(when: datetime) -> str:
    """A moment of ours, to the microsecond, as text that sorts."""
    return when.astimezone(UTC).isoformat(timespec="microseconds")


def issue(data: object) -> Resource:
    """An issue, or the issue half of a pull request."""
    about = _mapping(data, "issue")
    number = _number(about, "number", "issue")
    pull = about.get("pull_request")
    body: Body = {
        **_opened(about),
        "is_pull_request": isinstance(pull, Mapping),
        "state": "open" if about.get("state") != "closed" else "closed",
        "state_reason": _text(about, "state_reason") or None,
        "closed_at": instant(about.get("closed_at")) or None,
        "comments": _integer(about, "comments"),
    }
    return Resource(kind="issue", id=number, number=number, version=_version(about), body=body)


def pull(data: object) -> Resource:
    """What a pull request has beyond an issue."""
    about = _mapping(data, "pull request")
    number = _number(about, "number", "pull request")
    body: Body = {
        "draft": bool(about.get("draft")),
        "merged_at": instant(about.get("merged_at")) or None,
        "merge_commit": (_text(about, "merge_commit_sha") or None) if about.get("merged_at") else None,
        "base": _branch(about, "base"),
        "head": _branch(about, "head"),
    }
    return Resource(kind="pull", id=number, number=number, version=_version(about), body=body)


def issue_of_pull(data: object) -> Resource:
    """The issue half of a pull request, from a payload that has no issue."""
    about = _mapping(data, "pull request")
    half = issue({**about, "pull_request": {}})
    # A payload may lack the count of comments; None says that it is not known.
    known = about.get("comments") if isinstance(about.get("comments"), int) else None
    return Resource(
        kind="issue", id=half.id, number=half.number, version=half.version, body=half.body | {"comments": known}
    )


def comment(data: object, *, number: int | None = None) -> Resource:
    """A comment on an issue or a pull request."""
    about = _mapping(data, "comment")
    id_ = _number(about, "id", "comment")
    return Resource(
        kind="comment", id=id_, number=_thread(about, "issue_url", number, f"comment {id_}"),
        version=_version(about), body=_said(about) | {"anchor": _anchor(about, f"#issuecomment-{id_}")},
    )  # fmt: skip


def review(data: object, *, number: int, version: str) -> Resource:
    """A review; GitHub does not say when one was edited, but that moves its thread: `version` is the thread's."""
    about = _mapping(data, "review")
    id_ = _number(about, "id", "review")
    said = _said(about)
    submitted = instant(about.get("submitted_at")) or str(said["created_at"])
    body: Body = {
        **said, "created_at": submitted, "updated_at": submitted,
        "verdict": (_text(about, "state") or "commented").lower(),
        "anchor": _anchor(about, f"#pullrequestreview-{id_}"),
    }  # fmt: skip
    return Resource(kind="review", id=id_, number=number, version=version, body=body)


def review_comment(data: object, *, number: int | None = None) -> Resource:
    """A comment on a line of a pull request."""
    about = _mapping(data, "review comment")
    id_ = _number(about, "id", "review comment")
    body: Body = {
        **_said(about),
        "path": _text(about, "path"),
        "line": _integer(about, "original_line") or _integer(about, "line"),
        "start_line": _integer(about, "original_start_line") or _integer(about, "start_line"),
        "diff_hunk": _text(about, "diff_hunk"),
        "reply_to": _integer(about, "in_reply_to_id"),
        "review": _integer(about, "pull_request_review_id"),
        "anchor": _anchor(about, f"#discussion_r{id_}"),
    }
    return Resource(
        kind="review_comment", id=id_, number=_thread(about, "pull_request_url", number, f"review comment {id_}"),
        version=_version(about), body=body,
    )  # fmt: skip


def changed_file(data: object) -> Body:
    """One file that a pull request changes."""
    about = _mapping(data, "file")
    return {
        "path": _text(about, "filename"),
        "status": _text(about, "status"),
        "previous_path": _text(about, "previous_filename") or None,
        "additions": _integer(about, "additions") or 0,
        "deletions": _integer(about, "deletions") or 0,
    }


def discussion(data: object) -> Resource:
    """A discussion, as deliveries tell of it."""
    about = _mapping(data, "discussion")
    number = _number(about, "number", "discussion")
    state = "closed" if about.get("state") == "closed" else "open"
    body: Body = {**_opened(about), "state": state, "state_reason": None, "closed_at": None}
    return Resource(kind="discussion", id=number, number=number, version=_version(about), body=body)


def discussion_comment(data: object, *, number: int) -> Resource:
    """A comment on a discussion."""
    about = _mapping(data, "discussion comment")
    id_ = _number(about, "id", "discussion comment")
    body = _said(about) | {"anchor": _anchor(about, f"#discussioncomment-{id_}")}
    return Resource(kind="discussion_comment", id=id_, number=number, version=_version(about), body=body)


def release(data: object, *, version: str) -> Resource:
    """A release; GitHub does not say when one was edited, so `version` is when this state was seen."""
    about = _mapping(data, "release")
    id_ = _number(about, "id", "release")
    tag = _text(about, "tag_name")
    body: Body = {
        **_opened({**about, "user": about.get("author"), "title": _text(about, "name") or tag}),
        "state": "open", "state_reason": None, "closed_at": None, "tag": tag, "url": _text(about, "html_url"),
        "updated_at": instant(about.get("published_at")) or instant(about.get("created_at")),
    }  # fmt: skip
    return Resource(kind="release", id=id_, number=id_, version=version, body=body)


def _opened(about: Mapping[str, Any]) -> Body:
    """What everything that opens a thread has."""
    return {
        **_said(about),
        "title": _text(about, "title"),
        "labels": sorted(name for label in _items(about.get("labels")) if (name := _name(label, "name"))),
        "assignees": sorted(name for who in _items(about.get("assignees")) if (name := _name(who, "login"))),
        "milestone": _text(_object(about.get("milestone")), "title") or None,
    }


def _said(about: Mapping[str, Any]) -> Body:
    """What everything that somebody wrote has; a deleted account is `ghost`, as on GitHub's pages."""
    user = _object(about.get("user"))
    login = _text(user, "login") or "ghost"
    created = instant(about.get("created_at"))
    return {
        "author": {"login": login, "bot": user.get("type") == "Bot" or login.endswith("[bot]")},
        "created_at": created,
        "updated_at": instant(about.get("updated_at")) or created,
        "body": _text(about, "body"),
    }


def _branch(about: Mapping[str, Any], side: str) -> Body:
    """`base` or `head`; its repository is "" when it is the pull request's own, whose name may change."""
    branch, own = _object(about.get(side)), _object(_object(about.get("base")).get("repo"))
    repository = _object(branch.get("repo"))
    is_own = repository.get("id") is not None and repository.get("id") == own.get("id")
    name = "" if is_own else _text(repository, "full_name") or None
    return {"ref": _text(branch, "ref"), "sha": _text(branch, "sha"), "repository": name}


def _anchor(about: Mapping[str, Any], default: str) -> str:
    _, mark, fragment = _text(about, "html_url").partition("#")
    return f"#{fragment}" if mark and fragment else default


def _thread(about: Mapping[str, Any], key: str, number: int | None, what: str) -> int:
    found = _TRAILING_NUMBER.search(_text(about, key))
    if found:
        return int(found[1])
    if number is None:
        raise ItemError(f"GitHub's {what} does not say which thread it belongs to ({key} is missing)")
    return number


def _version(about: Mapping[str, Any]) -> str:
    return instant(about.get("updated_at")) or instant(about.get("created_at"))


def _mapping(data: object, what: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise ItemError(f"GitHub sent a {what} that is no JSON object but {type(data).__name__}")
    return data


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(about: Mapping[str, Any], key: str, what: str) -> int:
    value = about.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 63:
        raise ItemError(f"GitHub sent a {what} without a usable {key} ({str(value)[:40]!r})")
    return value


def _text(about: Mapping[str, Any], key: str) -> str:
    value = about.get(key)
    return _clean(value) if isinstance(value, str) else ""


def _integer(about: Mapping[str, Any], key: str) -> int | None:
    value = about.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _name(value: object, key: str) -> str:
    return _text(value, key) if isinstance(value, Mapping) else _clean(value) if isinstance(value, str) else ""


def _clean(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)
