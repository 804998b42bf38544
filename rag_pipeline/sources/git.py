"""Docs and code of a git repository: what changed in a window of days, each path once, as source items.

Reads the mirror and yields nouns; it does not fetch, store or clean. The rule that makes any order of runs converge:
a path is emitted on the day of its last change in the window with its state at the window's end, and a path that is
gone or not for the index (any more) is emitted as a tombstone, because an earlier run may have indexed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from pathspec import GitIgnoreSpec

from rag_pipeline.model import Json, SourceItem
from rag_pipeline.settings import GitLimits, Repository
from rag_pipeline.sources import file_kinds, forge
from rag_pipeline.sources.attributes import Attributes, read_attributes
from rag_pipeline.sources.mirror import BlobReader, Mirror, nul_fields
from rag_pipeline.sources.timeline import Step, Window

GIT_SOURCE_VERSION = "1"
_REGULAR = ("100644", "100755", "100664")
_BATCH = 256


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
        return self.mode == "000000"


@dataclass(slots=True, kw_only=True)
class GitReport:
    """What a read of a window found."""

    items: Counter[str] = field(default_factory=Counter)
    """By source type."""
    tombstones: Counter[str] = field(default_factory=Counter)
    """By source type: deleted, renamed away, or no longer for the index."""
    moves: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """By reason."""
    bytes: int = 0
    rewrites: int = 0
    """Times the branch was force-pushed in the window."""


class GitReader:
    """Reads one window of a mirror; `report` is filled as changes and items are drawn. A context manager."""

    def __init__(
        self, mirror: Mirror, window: Window, *, repository: Repository, limits: GitLimits, report: GitReport
    ) -> None:
        self._mirror = mirror
        self._window = window
        self._repository = repository
        self._limits = limits
        self._report = report
        self._blobs: BlobReader | None = None
        self._eligibility: _Eligibility | None = None
        report.rewrites += sum(step.is_rewrite for step in window.steps)

    def __enter__(self) -> GitReader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._blobs is not None:
            self._blobs.__exit__(None, None, None)

    def changes(self) -> Iterator[Change]:
        """Each path that changed in the window, at its last change, newest first; no file is read."""
        return changes_in(self._mirror, self._window)

    def items(self, changes: Sequence[Change], *, day: date, observed_at: datetime) -> Iterator[SourceItem]:
        """One item or tombstone for each change of a kind that is indexed, in order."""
        for start in range(0, len(changes), _BATCH):
            yield from self._batch(changes[start : start + _BATCH], day=day, observed_at=observed_at)

    def _batch(self, changes: Sequence[Change], *, day: date, observed_at: datetime) -> Iterator[SourceItem]:
        eligibility, blobs = self._open()
        wanted, refused = eligibility.split(changes, blobs)
        contents = blobs.contents([change.blob for change in wanted])
        for change in changes:
            kind = file_kinds.kind_of(change.path)
            if kind is None:
                continue
            reason = refused.get(change.path)
            content: bytes | None = None
            if reason is None:
                content = next(contents)
                reason = eligibility.refuse_content(change, content)
            content = content if reason is None else None
            _count(self._report, kind.source_type, change, content)
            yield _item(
                change,
                kind,
                repository=self._repository,
                day=day,
                observed_at=observed_at,
                content=content,
                reason=reason,
            )

    def _open(self) -> tuple[_Eligibility, BlobReader]:
        """Started by the first item: a window whose parts are all fresh reads no attribute and no blob."""
        if self._blobs is None or self._eligibility is None:
            attributes = read_attributes(self._mirror, self._window.end)
            self._eligibility = _Eligibility(
                repository=self._repository, limits=self._limits, attributes=attributes, report=self._report
            )
            self._blobs = self._mirror.blobs().__enter__()
        return self._eligibility, self._blobs


def changes_in(mirror: Mirror, window: Window) -> Iterator[Change]:
    """Each path that changed in the window, at its last change, newest first."""
    seen: set[str] = set()
    for _, logged in _by_step(mirror, window):
        for change in logged:
            if change.path not in seen:
                seen.add(change.path)
                yield change
            # A rename is a change of both its paths; the old one is listed by git as deleted only here.
            old = change.previous_path
            if old is not None and old not in seen:
                seen.add(old)
                yield Change(path=old, mode="000000", blob="", commit=change.commit, at=change.at, author=change.author)
    yield from _attribute_flips(mirror, window, seen)


class _Eligibility:
    """Which changes become items, and why the others do not."""

    def __init__(self, *, repository: Repository, limits: GitLimits, attributes: Attributes, report: GitReport) -> None:
        self._include = GitIgnoreSpec.from_lines(repository.include) if repository.include else None
        self._exclude = GitIgnoreSpec.from_lines(repository.exclude)
        self._vendored = GitIgnoreSpec.from_lines(limits.extra_vendored)
        self._limits = limits
        self._attributes = attributes
        self._report = report

    def split(self, changes: Sequence[Change], blobs: BlobReader) -> tuple[list[Change], dict[str, str]]:
        """The changes whose content is wanted, and by path why the others are refused."""
        refused: dict[str, str] = {}
        wanted = []
        for change in changes:
            reason = self._refuse_path(change)
            if reason is None:
                wanted.append(change)
            else:
                refused[change.path] = reason
        sizes = blobs.sizes([change.blob for change in wanted])
        for change, size in zip(wanted, sizes, strict=True):
            reason = "missing object" if size < 0 else file_kinds.skip_by_size(size, limits=self._limits)
            if reason:
                refused[change.path] = self._skip(reason)
        return [change for change in wanted if change.path not in refused], refused

    def refuse_content(self, change: Change, content: bytes) -> str | None:
        """Why a file's bytes are refused, or None."""
        generated = self._attributes.generated(change.path)
        reason = file_kinds.skip_by_content(content, generated=generated, limits=self._limits)
        return self._skip(reason) if reason else None

    def _refuse_path(self, change: Change) -> str | None:
        if file_kinds.kind_of(change.path) is None:
            return "unsupported" if change.gone else self._skip("unsupported file type")
        if change.gone:
            return "deleted"
        if change.mode not in _REGULAR:
            return self._skip("submodule" if change.mode == "160000" else "symlink")
        if self._exclude.match_file(change.path) or (self._include and not self._include.match_file(change.path)):
            return self._skip("excluded by configuration")
        vendored = self._attributes.vendored(change.path)
        if vendored is None and self._vendored.match_file(change.path):
            vendored = True
        reason = file_kinds.skip_by_path(
            change.path, generated=self._attributes.generated(change.path), vendored=vendored
        )
        return self._skip(reason) if reason else None

    def _skip(self, reason: str) -> str:
        self._report.skipped[reason] += 1
        return reason


def _by_step(mirror: Mirror, window: Window) -> Iterator[tuple[Step, Iterator[Change]]]:
    """The window's steps, newest first, each with what it changed."""
    steps = list(window.steps)
    while steps:
        if steps[-1].is_rewrite:
            step = steps.pop()
            yield step, _rewritten(mirror, step, window)
            continue
        run = []
        while steps and not steps[-1].is_rewrite:
            run.append(steps.pop())
        base = steps[-1].commit if steps else window.base
        yield from _logged(mirror, run, base)


def _logged(mirror: Mirror, run: Sequence[Step], base: str | None) -> Iterator[tuple[Step, Iterator[Change]]]:
    """One `git log` over a run of commits (newest first): a process per window, not per commit."""
    at = {step.commit: step for step in run}
    revisions = f"{base}..{run[0].commit}" if base else run[0].commit
    fields = mirror.stream(
        "log", "--first-parent", "--diff-merges=first-parent", "--raw", "--no-abbrev", "-M", "-l0", "-z",
        "--format=%x01%H%x1f%an", revisions,
    )  # fmt: skip
    step: Step | None = None
    author = ""
    changes: list[Change] = []
    for raw in fields:
        text = raw.decode("utf-8", "surrogateescape").lstrip("\n")
        if text.startswith("\x01"):
            if step is not None:
                yield step, iter(changes)
            commit, _, author = text[1:].partition("\x1f")
            step, changes = at.get(commit), []
        elif text.startswith(":") and step is not None:
            changes.append(_parse(text, fields, step=step, author=author))
    if step is not None:
        yield step, iter(changes)


def _parse(entry: str, fields: Iterator[bytes], *, step: Step, author: str) -> Change:
    """One `--raw -z` entry; its one or two paths are the next fields."""
    _, mode, _, blob, status = entry[1:].split(" ")
    path = next(fields).decode("utf-8", "surrogateescape")
    previous = None
    if status[0] in "RC":
        source, path = path, next(fields).decode("utf-8", "surrogateescape")
        previous = source if status[0] == "R" else None
    return Change(
        path=path, mode=mode, blob=blob, commit=step.commit, at=step.at, author=author, previous_path=previous
    )


def _rewritten(mirror: Mirror, step: Step, window: Window) -> Iterator[Change]:
    """Paths in which the state before a rewrite differs from the one after, as they stand at the window's end."""
    assert step.old is not None
    output = mirror.run("diff-tree", "-r", "--no-renames", "--name-only", "-z", step.old, step.commit)
    paths = list(nul_fields(output))
    tree = _tree(mirror, window.end)
    for path in paths:
        mode, blob = tree.get(path, ("000000", ""))
        yield Change(path=path, mode=mode, blob=blob, commit=window.end, at=step.at, author="")


def _attribute_flips(mirror: Mirror, window: Window, seen: set[str]) -> Iterator[Change]:
    """Unchanged paths that a changed `.gitattributes` brings into the index or takes out of it."""
    if window.base is None or not any(path.rpartition("/")[2] == ".gitattributes" for path in seen):
        return
    before, after = read_attributes(mirror, window.base), read_attributes(mirror, window.end)
    last = next(c for c in _attribute_changes(mirror, window))
    for path, (mode, blob) in _tree(mirror, window.end).items():
        if path not in seen and before.of(path) != after.of(path):
            seen.add(path)
            yield Change(path=path, mode=mode, blob=blob, commit=last.commit, at=last.at, author=last.author)


def _attribute_changes(mirror: Mirror, window: Window) -> Iterator[Change]:
    for _, logged in _by_step(mirror, window):
        yield from (change for change in logged if change.path.rpartition("/")[2] == ".gitattributes")


def _tree(mirror: Mirror, commit: str) -> dict[str, tuple[str, str]]:
    """Mode and blob of every path of a commit."""
    tree = {}
    for entry in nul_fields(mirror.run("ls-tree", "-r", "-z", commit)):
        meta, _, path = entry.partition("\t")
        mode, _, blob = meta.split(" ")
        tree[path] = (mode, blob)
    return tree


def _count(report: GitReport, source_type: str, change: Change, content: bytes | None) -> None:
    if content is None:
        report.tombstones[source_type] += 1
        return
    report.items[source_type] += 1
    report.bytes += len(content)
    report.moves += change.previous_path is not None


def _item(
    change: Change,
    kind: file_kinds.FileKind,
    *,
    repository: Repository,
    day: date,
    observed_at: datetime,
    content: bytes | None,
    reason: str | None,
) -> SourceItem:
    # A path need not be UTF-8; Postgres and Parquet need text that is.
    path = change.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    url, anchor = forge.link(repository.source, commit=change.commit, path=path, web_url=repository.web_url)
    metadata: dict[str, Json] = {"commit": change.commit}
    if change.author:
        metadata["author"] = change.author.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if change.previous_path is not None:
        previous = change.previous_path.encode("utf-8", "surrogateescape")
        metadata["previous_path"] = previous.decode("utf-8", "backslashreplace")
    if reason is not None:
        metadata["tombstone_reason"] = reason
    return SourceItem(
        tenant=repository.tenant, source_type=kind.source_type, source_id=f"{repository.name}:{path}",
        repository=repository.name, day=day, source_updated_at=change.at, observed_at=observed_at,
        deleted=content is None, content=content or b"", path=path, language=kind.language, url=url, anchor=anchor,
        metadata=metadata,
    )  # fmt: skip
