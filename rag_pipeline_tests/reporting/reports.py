"""Facts made to order for tests of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from rag_pipeline.index.reporting import (
    IndexFacts,
    QualityPoint,
    SourceFreshness,
    SourceSize,
    SpaceSize,
    TableSize,
    Usage,
    WaitingFailures,
)
from rag_pipeline.lake.store import StageSize
from rag_pipeline.reporting import Report, Reuse

NOW = datetime(2024, 6, 1, 12, 30, tzinfo=UTC)
FIRST = date(2024, 5, 1)
NOTHING = IndexFacts(
    sizes=[], freshness=[], quality=[], usage=[], failures=[], spaces=[], tables=[], database_bytes=9_000_000
)


def size(
    day: date, chunks: int, *, repository: str = "acme/app", kind: str = "docs", tenant: str = "acme"
) -> SourceSize:
    """A size on record."""
    return SourceSize(
        day=day, tenant=tenant, repository=repository, source_type=kind, documents=chunks // 10, chunks=chunks,
        tokens=chunks * 100,
    )  # fmt: skip


def quality(days_ago: int, value: float, *, labels: str = "v1", dataset: str = "own") -> QualityPoint:
    """An evaluation on record."""
    return QualityPoint(
        evaluated_at=NOW - timedelta(days=days_ago), tenant="acme", dataset=dataset, labels_hash=labels, space_id=1,
        model="words", queries=10, metrics={"fused": {"nDCG@10": value}, "lexical": {"nDCG@10": value / 2}},
    )  # fmt: skip


def usage(day: date, cost: float) -> Usage:
    """What was used on a day."""
    return Usage(
        day=day, tenant="acme", purpose="embedding", provider="openai", model="small", requests=3, tokens=1000,
        cost_usd=cost,
    )  # fmt: skip


def empty_report() -> Report:
    """Of an index that holds nothing."""
    return Report(made_at=NOW, first=FIRST, facts=NOTHING)


def full_report(name: str = "acme/app") -> Report:
    """Of an index that holds something of everything; `name` stands wherever text comes from data."""
    facts = IndexFacts(
        sizes=[
            size(FIRST, 100, repository=name, tenant=name, kind=name),
            size(date(2024, 5, 20), 400, repository=name),
        ],
        freshness=[
            SourceFreshness(
                tenant=name, repository=name, source=name, last_item_seen=NOW, last_asked=NOW, last_indexed=NOW,
                complete_until=NOW - timedelta(hours=5), failures_waiting=2, cost_this_month_usd=0.0,
            )
        ],
        quality=[
            replace(quality(9, 0.5), dataset=name, tenant=name, model=name),
            replace(quality(2, 0.6), dataset=name, tenant=name, model=name),
        ],
        usage=[replace(usage(date(2024, 5, 30), 0.25), tenant=name, purpose=name, provider=name, model=name)],
        failures=[
            WaitingFailures(
                tenant=name, repository=name, stage=name, items=2, oldest=NOW, attempts=4, reason=f"{name} is broken"
            )
        ],
        spaces=[
            SpaceSize(
                space_id=1, provider=name, model=name, dimensions=64, status="active", activated_at=None,
                bytes=1_000_000, vectors=500,
            )
        ],
        tables=[TableSize(name="chunks", rows=500, table_bytes=200_000, index_bytes=100_000)],
        database_bytes=12_000_000,
    )  # fmt: skip
    return Report(
        made_at=NOW, first=FIRST, facts=facts, reuse=reuse((1, 9), (0, 10)),
        lake={name: StageSize(files=3, bytes=1_000)},
    )  # fmt: skip


def reuse(*runs: tuple[int, int]) -> Sequence[Reuse]:
    """Runs that embedded and reused so many texts, a day apart."""
    return [
        Reuse(at=NOW - timedelta(days=len(runs) - n), embedded=embedded, reused=reused)
        for n, (embedded, reused) in enumerate(runs)
    ]
