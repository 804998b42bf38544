"""Each path that changed in a window of a repository's history, once, at its last change. No file is read.

A path changes when a commit changes it against the commit's first parent, when the branch is rewritten, and when a
`.gitattributes` file says something else of it: generated, vendored, its encoding. The steps are walked newest first,
so that the first change met of a path is its last, and its state there is its state at the window's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from rag_pipeline.settings import FileType
from rag_pipeline.sources.git.attributes import NAME as ATTRIBUTES
from rag_pipeline.sources.git.attributes import attribute_flips, names_ours
from rag_pipeline.sources.git.blobs import BlobReader
from rag_pipeline.sources.git.command import git_failed
from rag_pipeline.sources.git.mirror import Mirror
from rag_pipeline.sources.git.timeline import Step, Window

GONE = "000000"
# Renames without a change are always found; of changed ones, up to this many are compared with each other.
_DIFF = ("--raw", "--no-abbrev", "-r", "-z", "-M", "-l1000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The last change of a path in a window: its state at the window's end."""

    path: str
    mode: str
    blob: str
    commit: str
    at: datetime
    author: str
    previous_path: str | None = None

    @property
    def gone(self) -> bool:
        """Whether the path does not exist (any more)."""
        return self.mode == GONE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One path in a difference of two states."""

    path: str
    mode: str
    blob: str
    old_blob: str
    previous: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Difference:
    """What one commit changed against the state before it."""

    commit: str
    before: str | None
    author: str
    entries: Sequence[_Entry]


def changes_in(mirror: Mirror, window: Window, *, blobs: BlobReader, types: Mapping[str, FileType]) -> Iterator[Change]:
    """Each path that changed in the window, at its last change, newest first."""
    seen: set[str] = set()
    for step, difference in _differences(mirror, window):
        # What an abandoned commit changed is a change of the rewrite that abandoned it.
        commit = step.commit
        author = "" if step.is_rewrite else difference.author
        flips = _flips(mirror, difference, blobs, types)
        for entry in chain(difference.entries, flips):
            if entry.path not in seen:
                seen.add(entry.path)
                yield Change(
                    path=entry.path, mode=entry.mode, blob=entry.blob, commit=commit, at=step.at, author=author,
                    previous_path=entry.previous,
                )  # fmt: skip
            # A rename is a change of both its paths; git lists the old one only here.
            if entry.previous is not None and entry.previous not in seen:
                seen.add(entry.previous)
                yield Change(path=entry.previous, mode=GONE, blob="", commit=commit, at=step.at, author=author)


def _differences(mirror: Mirror, window: Window) -> Iterator[tuple[Step, _Difference]]:
    """The window's steps, newest first, each with what it changed: one git process, and one for each rewrite."""
    steps = list(reversed(window.steps))
    asked = [commit for step in steps for commit in (step.dropped if step.is_rewrite else (step.commit,))]
    logged = _logged(mirror, asked)
    for step in steps:
        if step.old is None:
            yield step, next(logged)
            continue
        yield step, _between(mirror, step.old, step.commit)
        for _ in step.dropped:
            yield step, next(logged)


def _logged(mirror: Mirror, commits: Sequence[str]) -> Iterator[_Difference]:
    """What each commit changed against its first parent, in the order asked."""
    if not commits:
        return
    fields = mirror.stream(
        "diff-tree", "--stdin", "--always", "--root", *_DIFF, "--diff-merges=first-parent",
        "--format=%x01%H%x1f%P%x1f%an", stdin="".join(f"{commit}\n" for commit in commits).encode(),
    )  # fmt: skip
    head = next(fields, b"")
    for asked in commits:
        commit, parents, author = (*head[1:].decode("utf-8", "surrogateescape").split("\x1f", 2), "", "")[:3]
        if commit != asked:
            raise git_failed("diff-tree", mirror.path, f"it says nothing of commit {asked}".encode())
        entries, head = _entries(fields)
        yield _Difference(commit=commit, before=parents.partition(" ")[0] or None, author=author, entries=entries)


def _between(mirror: Mirror, old: str, new: str) -> _Difference:
    """In what two states of the branch differ."""
    entries, _ = _entries(mirror.stream("diff-tree", *_DIFF, old, new))
    return _Difference(commit=new, before=old, author="", entries=entries)


def _entries(fields: Iterator[bytes]) -> tuple[list[_Entry], bytes]:
    """Raw entries up to the next header, and that header (empty at the end)."""
    entries: list[_Entry] = []
    for field in fields:
        text = field.lstrip(b"\n")
        if not text.startswith(b":"):
            return entries, text
        _, mode, old_blob, blob, status = text[1:].decode().split(" ")
        path = next(fields).decode("utf-8", "surrogateescape")
        previous = None
        if status[0] in "RC":
            source, path = path, next(fields).decode("utf-8", "surrogateescape")
            previous = source if status[0] == "R" else None
        entries.append(_Entry(path=path, mode=mode, blob=blob, old_blob=old_blob, previous=previous))
    return entries, b""


def _flips(
    mirror: Mirror, difference: _Difference, blobs: BlobReader, types: Mapping[str, FileType]
) -> Iterator[_Entry]:
    """Paths that a changed `.gitattributes` brings into the index or takes out of it."""
    changed = [entry for entry in difference.entries if ATTRIBUTES in _names(entry)]
    # A macro may hide the word: only the top file can define one.
    if (
        not changed
        or difference.before is None
        or not (
            any(_names_linguist(entry, blobs) for entry in changed)
            or b"[attr]" in (blobs.find(f"{difference.commit}:{ATTRIBUTES}") or b"")
        )
    ):
        return
    flips = attribute_flips(mirror, difference.before, difference.commit, blobs=blobs, types=types)
    for path, entry in flips.items():
        yield _Entry(path=path, mode=entry.mode, blob=entry.blob, old_blob="", previous=None)


def _names(entry: _Entry) -> set[str]:
    return {path.rpartition("/")[2] for path in (entry.path, entry.previous) if path}


def _names_linguist(entry: _Entry, blobs: BlobReader) -> bool:
    return any(names_ours(blobs.find(blob) or b"") for blob in (entry.old_blob, entry.blob) if set(blob) != {"0"})
