"""Docs and code of a git repository: what changed in a window of days, each path once, as source items.

Reads the mirror and yields nouns; it does not fetch, store or clean. The rule that makes any order of runs converge:
a path is emitted on the day of its last change in the window with its state at the window's end, and a path that is
gone or not for the index (any more) is emitted as a tombstone, because an earlier run may have indexed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from pathspec import GitIgnoreSpec

from rag_pipeline.model import Json, SourceItem
from rag_pipeline.settings import GitLimits, Repository
from rag_pipeline.sources.git import file_kinds, forge
from rag_pipeline.sources.git.attributes import Attributes, AttributesAt
from rag_pipeline.sources.git.blobs import BlobReader
from rag_pipeline.sources.git.changes import Change, changes_in
from rag_pipeline.sources.git.mirror import Mirror
from rag_pipeline.sources.git.timeline import Window

GIT_SOURCE_VERSION = "3"
_REGULAR = ("100644", "100755", "100664")
_BATCH = 256


def _ignore(_: int) -> None:
    pass


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
        self._blobs = mirror.blobs()
        self._eligibility: _Eligibility | None = None
        report.rewrites += sum(step.is_rewrite for step in window.steps)

    def __enter__(self) -> GitReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._blobs.close()

    def changes(self) -> Iterator[Change]:
        """Each path that changed in the window, at its last change, newest first; no file is read."""
        return changes_in(self._mirror, self._window, blobs=self._blobs, types=self._limits.file_types)

    def items(
        self, changes: Sequence[Change], *, day: date, observed_at: datetime, advance: Callable[[int], None] = _ignore
    ) -> Iterator[SourceItem]:
        """One item or tombstone for each change of a kind that is indexed, in order; `advance` is told of changes."""
        for start in range(0, len(changes), _BATCH):
            batch = changes[start : start + _BATCH]
            yield from self._batch(batch, day=day, observed_at=observed_at)
            advance(len(batch))

    def _batch(self, changes: Sequence[Change], *, day: date, observed_at: datetime) -> Iterator[SourceItem]:
        eligibility = self._eligible()
        wanted, refused = eligibility.split(changes, self._blobs)
        contents = self._blobs.contents([change.blob for change in wanted])
        for change in changes:
            kind = file_kinds.kind_of(change.path, self._limits.file_types)
            if kind is None:
                continue
            reason = refused.get(change.path)
            content = next(contents) if reason is None else None
            if content is not None:
                reason = eligibility.refuse_content(change, kind, content)
            content = content if reason is None else None
            if content is not None:
                kind = file_kinds.kind_by_content(kind, change.path, content)
            _count(self._report, kind.source_type, change, content)
            yield _item(
                change, kind, repository=self._repository, day=day, observed_at=observed_at, content=content,
                reason=reason, encoding=eligibility.encoding_of(change),
            )  # fmt: skip

    def _eligible(self) -> _Eligibility:
        """Made for the first item: a window whose parts are all fresh reads no attribute and no blob."""
        if self._eligibility is None:
            attributes = AttributesAt(self._mirror, self._window.end, blobs=self._blobs)
            self._eligibility = _Eligibility(
                repository=self._repository, limits=self._limits, attributes=attributes, report=self._report
            )
        return self._eligibility


class _Eligibility:
    """Which changes become items, and why the others do not."""

    def __init__(
        self, *, repository: Repository, limits: GitLimits, attributes: AttributesAt, report: GitReport
    ) -> None:
        self._include = GitIgnoreSpec.from_lines(repository.include) if repository.include else None
        self._exclude = GitIgnoreSpec.from_lines(repository.exclude)
        self._vendored = GitIgnoreSpec.from_lines(limits.extra_vendored)
        self._limits = limits
        self._attributes_at = attributes
        self._attributes = Attributes()
        self._report = report

    def split(self, changes: Sequence[Change], blobs: BlobReader) -> tuple[list[Change], dict[str, str]]:
        """The changes whose content is wanted, and by path why the others are refused; the next look is at these."""
        there = [change.path for change in changes if not change.gone and self._kind_of(change)]
        self._attributes = self._attributes_at.of(there)
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
            kind = self._kind_of(change)
            reason = file_kinds.skip_by_size(size, kind=kind, limits=self._limits) if kind else None
            if reason:
                refused[change.path] = self._skip(reason)
        return [change for change in wanted if change.path not in refused], refused

    def refuse_content(self, change: Change, kind: file_kinds.FileKind, content: bytes) -> str | None:
        """Why a file's bytes are refused, or None."""
        generated = self._attributes.generated(change.path)
        reason = file_kinds.skip_by_content(content, kind=kind, generated=generated, limits=self._limits)
        return self._skip(reason) if reason else None

    def encoding_of(self, change: Change) -> str | None:
        """The encoding that `.gitattributes` names for a file."""
        return self._attributes.encoding(change.path)

    def _refuse_path(self, change: Change) -> str | None:
        if self._kind_of(change) is None:
            is_excluded = file_kinds.is_excluded_type(change.path, self._limits.file_types)
            why = "excluded by configuration" if is_excluded else "unsupported file type"
            return "unsupported" if change.gone else self._skip(why)
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

    def _kind_of(self, change: Change) -> file_kinds.FileKind | None:
        return file_kinds.kind_of(change.path, self._limits.file_types)

    def _skip(self, reason: str) -> str:
        self._report.skipped[reason] += 1
        return reason


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
    encoding: str | None,
) -> SourceItem:
    # A path need not be UTF-8; Postgres and Parquet need text that is.
    path = change.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    url, anchor = forge.link(repository.source, commit=change.commit, path=change.path, web_url=repository.web_url)
    metadata: dict[str, Json] = {"commit": change.commit}
    if change.author:
        metadata["author"] = change.author.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if change.previous_path is not None:
        previous = change.previous_path.encode("utf-8", "surrogateescape")
        metadata["previous_path"] = previous.decode("utf-8", "backslashreplace")
    if encoding is not None and content is not None:
        metadata["declared_encoding"] = encoding
    if reason is not None:
        metadata["tombstone_reason"] = reason
    return SourceItem(
        tenant=repository.tenant, source_type=kind.source_type, source_id=f"{repository.name}:{path}",
        repository=repository.name, day=day, source_updated_at=change.at, observed_at=observed_at,
        deleted=content is None, content=content or b"", path=path, language=kind.language, url=url, anchor=anchor,
        metadata=metadata,
    )  # fmt: skip
