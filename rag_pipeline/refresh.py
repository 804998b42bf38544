"""What a refresh has to do, and whether it is done: joins sources, lake and index, without Dagster.

A refresh with nothing new costs the same whatever the size of the corpus, because each source's progress is remembered
as one position, and a position is only moved when everything up to it is in the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rag_pipeline.chunking import stage as chunking
from rag_pipeline.documents import stage as documents
from rag_pipeline.embedding import Embedder, counting_version
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.index.bookkeeping import SourceKey, advance, failing_days, position, stored_parts
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import activate, active_space, find_space
from rag_pipeline.index.stage import STAGE as INDEX_STAGE
from rag_pipeline.index.stage import part_fingerprint
from rag_pipeline.lake.derive import combine, expected_fingerprint, is_fresh, parts_in
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources.git.mirror import mirror_of
from rag_pipeline.sources.git.stage import STAGES, source_fingerprint, window_inputs
from rag_pipeline.sources.git.timeline import Position, Timeline, Window, read_timeline

RAW_STAGES = tuple(STAGES.values())


def pipeline_fingerprint(settings: Settings) -> str:
    """Changes when the same items could give other chunks."""
    counting = counting_version(settings.embedding)
    return combine(documents.fingerprint(), chunking.fingerprint(settings.chunking, counting=counting))


def progress_fingerprint(settings: Settings, repository: Repository) -> str:
    """Changes when the same commits could give other chunks."""
    first_day = settings.first_day_of(repository)
    return combine(pipeline_fingerprint(settings), source_fingerprint(repository, settings.git), str(first_day))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The days a refresh has to run: one range up to today, and single days with quarantined items before it."""

    ranges: Sequence[DayRange]
    reasons: Sequence[str]
    """Why, a line each, for people."""


def known_space(connection: Connection, embedder: Embedder) -> EmbeddingSpace | None:
    """The embedding space of an embedder, if it has one; nothing is asked of a model of unknown length."""
    return find_space(
        connection, provider=embedder.provider, model=embedder.model, recipe=embedder.recipe,
        dimensions=embedder.dimensions,
    )  # fmt: skip


def plan(settings: Settings, *, connection: Connection, space: EmbeddingSpace | None, now: datetime) -> Plan:
    """Fetch the sources and find the days that the index has not seen.

    Today is always among them: it costs little, and its partition shall not look missing.
    """
    today = now.date()
    first, reasons = today, []
    for repository in settings.repositories:
        mirror = mirror_of(repository, home=settings.home)
        try:
            empty = mirror.fetch(now=now) is None
        except RagPipelineError as error:
            if len(settings.repositories) == 1:
                raise
            # The run will put it on record; the others shall not wait for it.
            reasons.append(f"{repository.name}: {error}")
            continue
        if empty:
            reasons.append(f"{repository.name}: has no commit yet")
            continue
        timeline = read_timeline(mirror, now=now)
        first_day = settings.first_day_of(repository)
        known = _position(connection, space, settings, repository)
        due = timeline.first_day_after(known, first_day=first_day)
        if due is not None:
            first = min(first, due)
            reasons.append(f"{repository.name}: {'new since' if known else 'not indexed yet, from'} {due}")
    retries = [day for day in failing_days(connection) if settings.first_day <= day < first]
    reasons += [f"quarantined items of {day}" for day in retries]
    first = max(first, settings.first_day)
    return Plan(
        ranges=[*(DayRange(first=day, last=day) for day in retries), DayRange(first=first, last=today)], reasons=reasons
    )


def note_progress(
    settings: Settings, lake: Lake, days: DayRange, *, connection: Connection, space: EmbeddingSpace, now: datetime
) -> list[str]:
    """After the last stage: move the position of each repository whose window is wholly in the index; their names."""
    moved = []
    stored = stored_parts(connection, space, days, stage=INDEX_STAGE)
    for repository in settings.repositories:
        timeline = _timeline(settings, repository, now=now)
        first_day = settings.first_day_of(repository)
        window = timeline.window(first=days.first, last=days.last, first_day=first_day)
        known = _position(connection, space, settings, repository)
        if window is None or not timeline.joins(known, first=days.first, first_day=first_day):
            continue
        reached = window.reached
        if known is not None and known.at > reached.at:
            continue
        if _is_indexed(settings, lake, repository, window, days, stored):
            advance(
                connection, _key(repository), space, fingerprint=progress_fingerprint(settings, repository),
                to=reached.commit, at=reached.at, now=now,
            )  # fmt: skip
            moved.append(repository.name)
    return moved


def activate_when_complete(settings: Settings, *, connection: Connection, space: EmbeddingSpace, now: datetime) -> None:
    """Let queries use a space that is being built once nothing is missing from it; the very first one at once."""
    if space.status == "active":
        return
    if active_space(connection) is None or _is_complete(settings, connection=connection, space=space, now=now):
        activate(connection, space)


def _is_complete(settings: Settings, *, connection: Connection, space: EmbeddingSpace, now: datetime) -> bool:
    """Whether a space holds everything that the mirrors hold."""
    for repository in settings.repositories:
        timeline = _timeline(settings, repository, now=now)
        known = _position(connection, space, settings, repository)
        if timeline.first_day_after(known, first_day=settings.first_day_of(repository)) is not None:
            return False
    return True


def _is_indexed(
    settings: Settings, lake: Lake, repository: Repository, window: Window, days: DayRange, stored: dict[Part, str]
) -> bool:
    """Whether every part of the window, as the mirror shows it now, has gone through all stages."""
    inputs = window_inputs(settings, repository, window)
    for part in _parts_of(repository, parts_in(lake, RAW_STAGES, days)):
        tags = [tag for stage in RAW_STAGES if (tag := lake.tags(stage, part))]
        if any(tag.get("inputs") != inputs for tag in tags):
            return False
        fresh = _expected(settings, lake, part)
        found = {stage: lake.fingerprint(stage, part) for stage in ("documents", "chunks")}
        # A part of tombstones only has no chunks.
        if not is_fresh(found["documents"], fresh["documents"]) or not (
            found["chunks"] is None or is_fresh(found["chunks"], fresh["chunks"])
        ):
            return False
        if stored.get(part) != part_fingerprint(lake, part):
            return False
    return True


def _expected(settings: Settings, lake: Lake, part: Part) -> dict[str, str | None]:
    counting = counting_version(settings.embedding)
    return {
        "documents": expected_fingerprint(lake, part, inputs=RAW_STAGES, stage_fingerprint=documents.fingerprint()),
        "chunks": expected_fingerprint(
            lake,
            part,
            inputs=["documents"],
            stage_fingerprint=chunking.fingerprint(settings.chunking, counting=counting),
        ),
    }


def _parts_of(repository: Repository, parts: Iterable[Part]) -> list[Part]:
    return [part for part in parts if (part.tenant, part.repository) == (repository.tenant, repository.name)]


def _timeline(settings: Settings, repository: Repository, *, now: datetime) -> Timeline:
    mirror = mirror_of(repository, home=settings.home)
    return read_timeline(mirror, now=now) if mirror.exists() else Timeline(steps=())


def _position(
    connection: Connection, space: EmbeddingSpace | None, settings: Settings, repository: Repository
) -> Position | None:
    if space is None:
        return None
    found = position(connection, _key(repository), space, fingerprint=progress_fingerprint(settings, repository))
    return Position(commit=found[0], at=found[1]) if found else None


def _key(repository: Repository) -> SourceKey:
    return SourceKey(tenant=repository.tenant, repository=repository.name, source="git")
