"""All stages before the embedding, for real, in a lake that is thrown away: what a run over these days would embed.

The mirrors of git are fetched and further kinds of sources listed, as any refresh does first; GitHub's mirrors are
taken as they are. Nothing else is changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from rag_pipeline.chunking.stage import chunk_documents
from rag_pipeline.documents.stage import clean_items
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.lake.derive import expected_fingerprint, parts_in
from rag_pipeline.lake.schemas import ITEMS, ids_of
from rag_pipeline.lake.store import Lake, Part, whole_batches
from rag_pipeline.model import DayRange
from rag_pipeline.progress import Progress
from rag_pipeline.refresh.parts import RAW_STAGES, chunking_rules, documents_fingerprint
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.preview import Waiting, preview_drops
from rag_pipeline.sources.git.stage import STAGES as GIT_STAGES
from rag_pipeline.sources.git.stage import read_git
from rag_pipeline.sources.github.stage import STAGES as GITHUB_STAGES
from rag_pipeline.sources.github.stage import GitHubReport, RepositoryReport, write_days
from rag_pipeline.sources.kinds.protocol import Outside
from rag_pipeline.sources.kinds.registry import blocks_of, kinds, stage_of
from rag_pipeline.sources.kinds.stage import read_kind


@dataclass(slots=True, kw_only=True)
class Rehearsal:
    """What a run over some days would bring to the embeddings stage."""

    days: DayRange
    items: int = 0
    """In parts that are not yet as the sources show them, tombstones included."""
    tombstones: int = 0
    documents: int = 0
    chunks: int = 0
    unusable: int = 0
    """Items that would be quarantined."""
    waiting: Waiting = field(default_factory=Waiting)
    problems: list[str] = field(default_factory=list)
    """Why sources could not be read."""
    seconds: float = 0.0
    """That reading, cleaning and cutting took here: the run will do it again."""
    parts: list[tuple[Lake, Part]] = field(default_factory=list)
    """Every part of these days with its chunks, in the order in which it will be embedded."""

    def texts(self, lake: Lake, part: Part) -> Iterator[tuple[list[UUID], list[str]]]:
        """Hashes and texts of a part's chunks, as they are embedded, a batch at a time."""
        for batch in lake.read("chunks", part, columns=["text_hash", "context", "text"]):
            above, texts = (batch.column(name).to_pylist() for name in ("context", "text"))
            yield ids_of(batch.column("text_hash")), [f"{a}{b}" for a, b in zip(above, texts, strict=True)]


def rehearse(
    settings: Settings, lake: Lake, scratch: Lake, days: DayRange, *, outside: Outside, now: datetime,
    progress: Progress,
) -> Rehearsal:  # fmt: skip
    """Read, clean and cut into `scratch`; parts that are up to date in `lake` are not made again.

    Raises:
        RagPipelineError: no git repository can be read.
    """
    started, found = time.perf_counter(), Rehearsal(days=days)
    _read(settings, lake, scratch, found, outside=outside, now=now, progress=progress)
    unchanged = _set_aside_unchanged(settings, lake, scratch, days)
    for stage in RAW_STAGES:
        for part in parts_in(scratch, [stage], days):
            for batch in scratch.read(stage, part, columns=["deleted"]):
                found.items += batch.num_rows
                found.tombstones += sum(batch.column("deleted").to_pylist())
    cleaned = clean_items(
        scratch, days, inputs=RAW_STAGES, threads=settings.threads, redaction=settings.redaction,
        limits=settings.documents, progress=progress,
    )  # fmt: skip
    chunked = chunk_documents(
        scratch, days, rules=chunking_rules(settings), limits=settings.documents, progress=progress
    )  # fmt: skip
    found.documents, found.chunks = cleaned.rows, chunked.rows
    found.unusable = len(cleaned.failures) + len(chunked.failures)
    made = [(scratch, part) for part in parts_in(scratch, ["chunks"], days)]
    found.parts = sorted(
        [*made, *((lake, part) for part in unchanged)], key=lambda e: (e[1].tenant, e[1].repository, e[1].day)
    )
    found.seconds = time.perf_counter() - started
    return found


def _read(
    settings: Settings, lake: Lake, scratch: Lake, found: Rehearsal, *, outside: Outside, now: datetime,
    progress: Progress,
) -> None:  # fmt: skip
    days = found.days
    if settings.git_repositories:
        report = read_git(settings, scratch, days, now=now, progress=progress)
        found.problems += [f"{failure.repository}: {failure.reason}" for failure in report.failures]
    for repository in settings.github_repositories:
        try:
            write_days(
                settings, scratch, repository, days, report=GitHubReport(),
                found=RepositoryReport(repository=repository), now=now,
            )  # fmt: skip
        except RagPipelineError as error:
            found.problems.append(f"{repository.name}: {error}")
    for kind in kinds():
        if blocks_of(kind, settings):
            seen = read_kind(kind, settings, scratch, days, clock=lambda: now, outside=outside, progress=progress)
            found.problems += [f"{failure.repository}: {failure.reason}" for failure in seen.failures]
    if now.date() in days:
        found.waiting = preview_drops(settings, lake, scratch, now=now)
    _copy_the_rest(settings, lake, scratch, days)


def _copy_the_rest(settings: Settings, lake: Lake, scratch: Lake, days: DayRange) -> None:
    """What no source would write anew: drops that were taken before, and what is not configured any more."""
    read_of = {stage_of(kind): {(b.tenant, b.name) for b in blocks_of(kind, settings)} for kind in kinds()}
    read_of |= {key: {(r.tenant, r.name) for r in settings.git_repositories} for key in GIT_STAGES.values()}
    read_of |= {key: {(r.tenant, r.name) for r in settings.github_repositories} for key in GITHUB_STAGES.values()}
    for stage in RAW_STAGES:
        read = read_of.get(stage, set())
        for part in parts_in(lake, [stage], days):
            if (part.tenant, part.repository) not in read and scratch.tags(stage, part) is None:
                with scratch.writer(stage, part, schema=ITEMS) as writer:
                    for batch in whole_batches(lake.read(stage, part)):
                        writer.add(batch)
                    tags = lake.tags(stage, part) or {}
                    writer.fingerprint = tags.get("fingerprint", "")


def _set_aside_unchanged(settings: Settings, lake: Lake, scratch: Lake, days: DayRange) -> list[Part]:
    """Take out of `scratch` what is in `lake` already, down to its chunks; these parts."""
    documents, chunks = documents_fingerprint(settings), chunking_rules(settings).fingerprint
    unchanged = []
    for part in parts_in(scratch, RAW_STAGES, days):
        if any(lake.fingerprint(stage, part) != scratch.fingerprint(stage, part) for stage in RAW_STAGES):
            continue
        cleaned = expected_fingerprint(lake, part, inputs=RAW_STAGES, stage_fingerprint=documents)
        cut = expected_fingerprint(lake, part, inputs=["documents"], stage_fingerprint=chunks)
        if (lake.fingerprint("documents", part), lake.fingerprint("chunks", part)) == (cleaned, cut):
            unchanged.append(part)
            for stage in RAW_STAGES:
                scratch.remove(stage, part)
    return unchanged
