"""A thread's JSON, as sources and drops bring it, read into nouns of its own.

What is missing or has another type than it should is empty: one odd value must not lose a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.errors import ItemError

_MAX_LINE_CHARS = 1000
_ANCHOR = re.compile(r"#[\w-]{1,100}")

_Object: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who wrote something; `ghost` when the account is gone."""

    login: str
    bot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A comment, a review, or a review's comment on a line."""

    type: str
    id: int | None
    author: Author
    created_at: datetime | None
    body: str
    anchor: str
    verdict: str
    path: str
    line: int | None
    start_line: int | None
    diff_hunk: str
    reply_to: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that a pull request changes; `previous_path` is empty unless it was renamed."""

    path: str
    previous_path: str
    additions: int
    deletions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Where a pull request comes from or goes to; `repository` is empty where it goes without saying."""

    ref: str
    repository: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """An issue, pull request, discussion or release with all that was said in it, in the order it was said."""

    kind: str
    reference: str
    title: str
    body: str
    author: Author
    created_at: datetime | None
    state: str
    state_reason: str
    closed_at: datetime | None
    merged_at: datetime | None
    merge_commit: str
    draft: bool
    base: Branch
    head: Branch
    labels: Sequence[str]
    milestone: str
    assignees: Sequence[str]
    closes: Sequence[str]
    links: Sequence[str]
    files: Sequence[ChangedFile]
    entries: Sequence[Entry]


def read_thread(text: str, *, source_id: str) -> Thread:
    """The thread that a JSON text holds.

    Raises:
        ItemError: the text is not JSON, not an object, or has no list of entries.
    """
    thread = _read(text, source_id)
    return Thread(
        kind=_line(thread.get("kind")),
        reference=_line(thread.get("reference")),
        title=_line(thread.get("title")),
        body=_text(thread.get("body")),
        author=_author(thread.get("author")),
        created_at=_moment(thread.get("created_at")),
        state=_line(thread.get("state")),
        state_reason=_line(thread.get("state_reason")),
        closed_at=_moment(thread.get("closed_at")),
        merged_at=_moment(thread.get("merged_at")),
        merge_commit=_line(thread.get("merge_commit")),
        draft=thread.get("draft") is True,
        base=_branch(thread.get("base")),
        head=_branch(thread.get("head")),
        labels=_lines(thread.get("labels")),
        milestone=_line(thread.get("milestone")),
        assignees=_lines(thread.get("assignees")),
        closes=_lines(thread.get("closes")),
        links=_lines(thread.get("links")),
        files=[_changed_file(file) for file in _objects(thread.get("files"))],
        entries=[_entry(entry) for entry in _objects(thread.get("entries"))],
    )


def _read(text: str, source_id: str) -> _Object:
    what_to_do = "read it from its source again, or correct the drop that brought it"
    try:
        thread = parse_json(text)
    except ValueError as error:
        raise ItemError(f"{source_id} is not a thread: it {error}: {what_to_do}") from error
    if not isinstance(thread, dict) or not isinstance(thread.get("entries"), list):
        raise ItemError(f"{source_id} is not a thread: its JSON is no object with a list of entries: {what_to_do}")
    return thread


def _entry(entry: _Object) -> Entry:
    anchor = _line(entry.get("anchor"))
    return Entry(
        type=_line(entry.get("type")),
        id=_number(entry.get("id")),
        author=_author(entry.get("author")),
        created_at=_moment(entry.get("created_at")),
        body=_text(entry.get("body")),
        anchor=anchor if _ANCHOR.fullmatch(anchor) else "",
        verdict=_line(entry.get("verdict")),
        path=_line(entry.get("path")),
        line=_number(entry.get("line")),
        start_line=_number(entry.get("start_line")),
        diff_hunk=_text(entry.get("diff_hunk")),
        reply_to=_number(entry.get("reply_to")),
    )


def _changed_file(file: _Object) -> ChangedFile:
    return ChangedFile(
        path=_line(file.get("path")),
        previous_path=_line(file.get("previous_path")),
        additions=_number(file.get("additions")) or 0,
        deletions=_number(file.get("deletions")) or 0,
    )


def _branch(branch: object) -> Branch:
    found = branch if isinstance(branch, dict) else {}
    return Branch(ref=_line(found.get("ref")), repository=_line(found.get("repository")))


def _author(author: object) -> Author:
    found = author if isinstance(author, dict) else {}
    return Author(login=_line(found.get("login")) or "ghost", bot=found.get("bot") is True)


def _objects(values: object) -> Iterator[_Object]:
    return (value for value in values if isinstance(value, dict)) if isinstance(values, list) else iter(())


def _lines(values: object) -> list[str]:
    return [line for value in values if (line := _line(value))] if isinstance(values, list) else []


def _line(value: object) -> str:
    return " ".join(_text(value)[:_MAX_LINE_CHARS].split()) if isinstance(value, str) else ""


def _text(value: object) -> str:
    return plain_text(value) if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return moment and (moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None
