"""What PostgreSQL knows for the report: sizes and their growth, freshness, quality, cost, failures, storage."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final

from rag_pipeline.index.database import Connection
from rag_pipeline.index.growth import Growth
from rag_pipeline.index.sql_files import queries

COUNTED_UP_TO: Final = 50_000
"""Chunks of one source: to count so many takes some milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSize:
    """What the index held of one source at the end of a day (UTC)."""

    day: date
    tenant: str
    repository: str
    source_type: str
    documents: int
    chunks: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFreshness:
    """How fresh one source is; times are None while they are not known."""

    tenant: str
    repository: str
    source: str
    last_item_seen: datetime | None
    last_asked: datetime | None
    last_indexed: datetime | None
    complete_until: datetime | None
    failures_waiting: int
    cost_this_month_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityPoint:
    """An evaluation on record."""

    evaluated_at: datetime
    tenant: str
    dataset: str
    labels_hash: str
    space_id: int
    model: str
    queries: int
    metrics: Mapping[str, Mapping[str, float]]
    """Leg → measure → mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a tenant asked of one model for one purpose on a day (UTC)."""

    day: date
    tenant: str
    purpose: str
    provider: str
    model: str
    requests: int
    tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFailures:
    """Quarantined items of one repository that one stage could not process."""

    tenant: str
    repository: str
    stage: str
    items: int
    oldest: datetime
    attempts: int
    reason: str
    """Of the one that failed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceSize:
    """An embedding space, with an estimate of its vectors."""

    space_id: int
    provider: str
    model: str
    dimensions: int
    status: str
    activated_at: datetime | None
    bytes: int
    vectors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """A table of schema rag, with an estimate of its rows."""

    name: str
    rows: int
    table_bytes: int
    index_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFacts:
    """All that the database knows for the report."""

    sizes: Sequence[SourceSize]
    """From the first day on, oldest first, and before them the last of each source; a row where a size changed."""
    freshness: Sequence[SourceFreshness]
    quality: Sequence[QualityPoint]
    usage: Sequence[Usage]
    failures: Sequence[WaitingFailures]
    spaces: Sequence[SpaceSize]
    tables: Sequence[TableSize]
    database_bytes: int


def record_sizes(
    connection: Connection, day: date, *, sources: Collection[tuple[str, str]] | None = None
) -> int:  # fmt: skip
    """Note how large the index is at the end of this day; returns the rows written, none where nothing changed.

    `sources`: only these (tenant, repository); counting all of them reads every chunk.
    """
    chosen = sorted(sources or ())
    values = {
        "day": day, "everything": sources is None, "tenants": [tenant for tenant, _ in chosen],
        "repositories": [repository for _, repository in chosen],
    }  # fmt: skip
    return connection.execute(queries("reporting")["record_sizes"], values).rowcount


def record_growth(
    connection: Connection, day: date, growth: Growth, *, changed: Collection[tuple[str, str]]
) -> int:  # fmt: skip
    """`record_sizes` for what a run changed, without counting large sources again; returns the rows written.

    `changed`: (tenant, repository). Repositories with no source of more than `COUNTED_UP_TO` chunks, and those with one
    of which no size is on record, are counted; to the last sizes of the others the growth is added. Whoever counts all
    of them (the report) mends what a run that was killed has left out.
    """
    known = {(size.tenant, size.repository, size.source_type): size.chunks for size in latest_sizes(connection)}
    large = {source[:2] for source, chunks in known.items() if chunks > COUNTED_UP_TO}
    added = large - {source[:2] for source in growth.by_source if source not in known}
    counted = set(changed) - added
    # Asked about nothing, the statement would still read everything.
    written = record_sizes(connection, day, sources=counted) if counted else 0
    grown = sorted((source, amount) for source, amount in growth.by_source.items() if source[:2] in added)
    values = {
        "day": day, "tenants": [s[0] for s, _ in grown], "repositories": [s[1] for s, _ in grown],
        "source_types": [s[2] for s, _ in grown], "documents": [a.documents for _, a in grown],
        "chunks": [a.chunks for _, a in grown], "tokens": [a.tokens for _, a in grown],
    }  # fmt: skip
    with connection.transaction():
        connection.execute(queries("reporting")["lock_sizes"])
        return written + connection.execute(queries("reporting")["record_growth"], values).rowcount


def latest_sizes(connection: Connection) -> list[SourceSize]:
    """The last size of each source that is on record."""
    rows = connection.execute(queries("reporting")["latest_sizes"])
    return [
        SourceSize(day=r[0], tenant=r[1], repository=r[2], source_type=r[3], documents=r[4], chunks=r[5], tokens=r[6])
        for r in rows
    ]


def read_facts(connection: Connection, *, first: date) -> IndexFacts:
    """Everything from this day (UTC) on, and what there is now."""
    sql = queries("reporting")
    since = datetime.combine(first, time(), UTC)
    run = connection.execute
    total = run(sql["database_size"]).fetchone()
    return IndexFacts(
        sizes=[
            SourceSize(
                day=r[0], tenant=r[1], repository=r[2], source_type=r[3], documents=r[4], chunks=r[5], tokens=r[6]
            )
            for r in run(sql["sizes"], {"first": first})
        ],
        freshness=_freshness(connection),
        quality=[
            QualityPoint(
                evaluated_at=r[0], tenant=r[1], dataset=r[2], labels_hash=r[3], space_id=r[4], model=r[5],
                queries=r[6], metrics=r[7],
            )
            for r in run(sql["quality"], {"since": since})
        ],
        usage=[
            Usage(
                day=r[0], tenant=r[1], purpose=r[2], provider=r[3], model=r[4], requests=r[5], tokens=r[6],
                cost_usd=r[7],
            )
            for r in run(sql["usage"], {"since": since})
        ],
        failures=[
            WaitingFailures(
                tenant=r[0], repository=r[1], stage=r[2], items=r[3], oldest=r[4], attempts=r[5], reason=r[6]
            )
            for r in run(sql["waiting_failures"])
        ],
        spaces=[
            SpaceSize(
                space_id=r[0], provider=r[1], model=r[2], dimensions=r[3], status=r[4], activated_at=r[5],
                bytes=r[6], vectors=r[7],
            )
            for r in run(sql["space_sizes"])
        ],
        tables=[
            TableSize(name=r[0], rows=r[1], table_bytes=r[2], index_bytes=r[3]) for r in run(sql["table_sizes"])
        ],
        database_bytes=int(total[0]) if total else 0,
    )  # fmt: skip


def _freshness(connection: Connection) -> list[SourceFreshness]:
    return [
        SourceFreshness(
            tenant=r[0], repository=r[1], source=r[2], last_item_seen=r[3], last_asked=r[4], last_indexed=r[5],
            complete_until=r[6], failures_waiting=r[7], cost_this_month_usd=r[8],
        )
        for r in connection.execute(queries("reporting")["freshness"])
    ]  # fmt: skip
