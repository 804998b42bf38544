"""A thread as markdown: its description, what was said, how it ended, and which files it changed, a section each.

What changes often without anybody saying something (state, labels, verdicts, the list of files) stands in the last
sections, so that the chunks of the description stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.fences import fenced
from rag_pipeline.documents.thread_content import ChangedFile, Entry, Thread, read_thread
from rag_pipeline.documents.thread_noise import clean_description, clean_reply, is_noise
from rag_pipeline.documents.thread_quotes import Said
from rag_pipeline.documents.titles import tidy_title
from rag_pipeline.model import Json, Section
from rag_pipeline.settings import Threads

_KINDS = {"discussion": "Discussion", "issue": "Issue", "pull_request": "Pull request", "release": "Release"}
_HUNK_LINES = 6
_HUNK_LINE_CHARS = 300
_MAX_FILES = 1000
_MAX_PATHS = 300
"""In the metadata: a change of more files than that says little about any of them."""


class _Part(NamedTuple):
    """A section's text, and what it is called."""

    text: str
    name: str
    anchor: str = ""


def extract_thread(text: str, *, source_id: str, threads: Threads) -> Extract:
    """Markdown with a section for the description, each entry that says something, the outcome and the files.

    `metadata["dropped_comments"]` says how many entries were left out for their authors, when there were any, and
    `metadata["files"]` the first 300 paths that a pull request changes, those that files had before among them.

    Raises:
        ItemError: the content is not a thread.
    """
    thread = read_thread(text, source_id=source_id)
    noisy = {author for author in {entry.author for entry in thread.entries} if is_noise(author, threads)}
    entries = [entry for entry in thread.entries if entry.author not in noisy]
    dropped = len(thread.entries) - len(entries)
    said = _said(thread, entries)
    silent = [entry for entry, words in said if not words]
    body, sections = _joined([_description(thread), *_conversation(said), *_endings(thread, silent)])
    return Extract(
        text=body,
        markup="markdown",
        title=thread.title or thread.reference,
        sections=sections,
        metadata=_metadata(thread, dropped=dropped),
    )


def _metadata(thread: Thread, *, dropped: int) -> dict[str, Json]:
    found: dict[str, Json] = {"dropped_comments": dropped} if dropped else {}
    if paths := list(dict.fromkeys(path for file in thread.files for path in (file.path, file.previous_path) if path)):
        found["files"] = paths[:_MAX_PATHS]
    return found


def _joined(parts: Sequence[_Part]) -> tuple[str, list[Section]]:
    texts, sections, at = [], [], 0
    for part in parts:
        text = plain_text(part.text) + "\n"
        sections.append(Section(start_char=at, anchor=part.anchor, name=part.name))
        texts.append(text)
        at += len(text) + 1
    return "\n".join(texts), sections


def _description(thread: Thread) -> _Part:
    title = tidy_title(thread.title)
    kind = _KINDS.get(thread.kind, "Thread")
    about = _words(kind, _short(thread, thread.reference), "by", thread.author.login)
    opened = _dated(about, thread.created_at) + "."
    return _Part(
        text=_paragraphs(f"# {title}" if title else "", opened, clean_description(thread.body)),
        name=_dated(thread.author.login, thread.created_at, day=True),
    )


def _said(thread: Thread, entries: Sequence[Entry]) -> list[tuple[Entry, str]]:
    """The entries with what each says that is new."""
    said = Said()
    said.add(thread.title)
    said.add(thread.body)
    found = []
    for entry in entries:
        found.append((entry, clean_reply(entry.body, said)))
        said.add(entry.body)
    return found


def _conversation(said: Sequence[tuple[Entry, str]]) -> Iterator[_Part]:
    hunks = _Hunks()
    for entry, words in said:
        if words:
            header = _dated(f"**{entry.author.login}** {_deed(entry)}", entry.created_at)
            yield _Part(
                text=_paragraphs(header, hunks.of(entry), words),
                name=_dated(entry.author.login, entry.created_at, day=True),
                anchor=entry.anchor,
            )


def _deed(entry: Entry) -> str:
    if entry.type == "review":
        return {"approved": "approved", "changes_requested": "requested changes"}.get(entry.verdict, "reviewed")
    verb = "commented" if entry.reply_to is None else "replied"
    if not entry.path:
        return verb
    if entry.line is None:
        return f"{verb} on {entry.path}"
    if entry.start_line is None or entry.start_line == entry.line:
        return f"{verb} on {entry.path} line {entry.line}"
    return f"{verb} on {entry.path} lines {entry.start_line}–{entry.line}"


@dataclass(slots=True, kw_only=True)
class _Hunks:
    """The lines that reviews speak of; replies speak of the same ones."""

    shown: set[int | None] = field(default_factory=set)

    def of(self, entry: Entry) -> str:
        """The last lines of the entry's hunk, fenced; empty when they were shown."""
        about = entry.id if entry.reply_to is None else entry.reply_to
        lines = [line for line in entry.diff_hunk.split("\n") if line.strip() and not line.startswith("@@")]
        if not lines or (about in self.shown and about is not None):
            return ""
        self.shown |= {about, entry.id}
        return fenced("\n".join(_cut(line) for line in lines[-_HUNK_LINES:]), "diff")


def _cut(line: str) -> str:
    return line if len(line) <= _HUNK_LINE_CHARS else line[: _HUNK_LINE_CHARS - 1] + "…"


def _endings(thread: Thread, silent: Sequence[Entry]) -> Iterator[_Part]:
    kind = _KINDS.get(thread.kind, "Thread").lower()
    about = _words(kind, _short(thread, thread.reference))
    outcome = [line for line in _outcome(thread, silent) if line]
    # That it is open or closed and no more stands in the metadata; a chunk that says so would only be in the way.
    if outcome and (outcome != [_state(thread)] or thread.state == "merged"):
        yield _Part(text=f"Outcome of {about}:\n" + "\n".join(outcome), name="Outcome")
    if thread.files:
        lines = [f"Files changed by {about}:\n", *(f"- {_changes(file)}" for file in thread.files[:_MAX_FILES])]
        if len(thread.files) > _MAX_FILES:
            lines.append(f"- … and {len(thread.files) - _MAX_FILES} more")
        yield _Part(text="\n".join(lines), name="Changed files", anchor="/files")


def _outcome(thread: Thread, silent: Sequence[Entry]) -> Iterator[str]:
    """How it ended or stands, and what reviewers decided without a word; a line each, some empty."""
    yield _state(thread)
    yield _named("Approved by", _reviewers(silent, "approved"))
    yield _named("Changes requested by", _reviewers(silent, "changes_requested"))
    yield _named("Closes", [_short(thread, closed) for closed in thread.closes])
    yield _named("Linked to", [_short(thread, link) for link in thread.links if link not in thread.closes])
    yield _named("Labels", thread.labels)
    yield _named("Milestone", [thread.milestone] if thread.milestone else [])
    yield _named("Assigned to", thread.assignees)


def _state(thread: Thread) -> str:
    if thread.kind == "release" or not thread.state:
        return ""
    if thread.state == "merged":
        when, head = _moment(thread.merged_at or thread.closed_at), _head(thread)
        into = f"into {thread.base.ref}" if thread.base.ref else ""
        commit = f"as {thread.merge_commit[:12]}" if thread.merge_commit else ""
        return _words("Merged", when, f"from {head}" if head else "", into, commit) + "."
    if thread.state == "closed":
        unmerged = "without being merged" if thread.kind == "pull_request" else ""
        reason = f"as {thread.state_reason.replace('_', ' ').lower()}" if thread.state_reason else ""
        return _words("Closed", _moment(thread.closed_at), unmerged, reason) + "."
    return "Open, a draft." if thread.draft else f"{thread.state.capitalize()}."


def _head(thread: Thread) -> str:
    """The branch it came from, with its repository where that is another one."""
    own = thread.head.repository in ("", thread.base.repository, _repository(thread))
    return thread.head.ref if own else f"{thread.head.repository}:{thread.head.ref}"


def _short(thread: Thread, reference: str) -> str:
    """A reference without the thread's own repository: when that is renamed, the text stays as it was embedded."""
    own = _repository(thread)
    if own and reference.startswith(f"{own}#"):
        return reference.removeprefix(own)
    return reference.removeprefix(f"{own}@") or reference


def _repository(thread: Thread) -> str:
    return thread.reference.partition("@" if thread.kind == "release" else "#")[0]


def _reviewers(silent: Sequence[Entry], verdict: str) -> list[str]:
    """Who gave this verdict, and on which day."""
    given = (entry for entry in silent if entry.type == "review" and entry.verdict == verdict)
    return list(dict.fromkeys(_words(entry.author.login, _moment(entry.created_at)[:10]) for entry in given))


def _changes(file: ChangedFile) -> str:
    path = f"{file.previous_path} → {file.path}" if file.previous_path else file.path
    return f"{path} (+{file.additions} −{file.deletions})"


def _named(name: str, values: Sequence[str]) -> str:
    return f"{name}: {', '.join(values)}." if values else ""


def _words(*words: str) -> str:
    return " ".join(word for word in words if word)


def _paragraphs(*paragraphs: str) -> str:
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _dated(words: str, moment: datetime | None, *, day: bool = False) -> str:
    written = _moment(moment)
    return f"{words}, {written[:10] if day else written}" if written else words


def _moment(moment: datetime | None) -> str:
    return f"{moment.isoformat(' ', 'minutes')[:16]} UTC" if moment else ""
