"""What the report says in numbers: totals, growth, rates and months, computed of the facts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from rag_pipeline.evaluation.measures import HEADLINE
from rag_pipeline.index.reporting import IndexFacts, QualityPoint, SourceSize
from rag_pipeline.lake.store import StageSize

MEASURE = HEADLINE[0]
_LEGS = ("reranked", "fused", "vector", "lexical")
"""Whose figures speak for the whole, the first that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """How many texts a run found that it had to embed, and how many had a vector."""

    at: datetime
    embedded: int
    reused: int

    @property
    def share(self) -> float | None:
        """From 0 to 1; None when there was no text."""
        texts = self.embedded + self.reused
        return self.reused / texts if texts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that the report is made of."""

    made_at: datetime
    first: date
    """Where growth, quality, reuse and cost begin."""
    facts: IndexFacts
    reuse: Sequence[Reuse] = ()
    """Oldest first."""
    lake: Mapping[str, StageSize] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Size of the whole index at the end of a day."""

    day: date
    documents: int
    chunks: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The numbers that matter most; None where there is nothing to measure."""

    documents: int
    chunks: int
    tokens: int
    sources: int
    """Repositories, counted for each tenant."""
    largest_lag: timedelta | None
    unfinished: int
    """Sources that were never wholly indexed."""
    quality: float | None
    """The newest nDCG@10, averaged over all questions of all label sets."""
    reuse_share: float | None
    cost_usd: float
    """Of this month (UTC)."""
    failures: int
    database_bytes: int
    lake_bytes: int


def summarise(report: Report) -> Summary:
    """The report's key numbers."""
    facts = report.facts
    held = present(facts.sizes)
    lags = [report.made_at - row.complete_until for row in facts.freshness if row.complete_until]
    embedded, reused = sum(r.embedded for r in report.reuse), sum(r.reused for r in report.reuse)
    month = report.made_at.date().replace(day=1)
    return Summary(
        documents=sum(row.documents for row in held),
        chunks=sum(row.chunks for row in held),
        tokens=sum(row.tokens for row in held),
        sources=len({(row.tenant, row.repository) for row in held}),
        largest_lag=max(max(lags), timedelta()) if lags else None,
        unfinished=sum(row.complete_until is None for row in facts.freshness),
        quality=newest_quality(facts.quality),
        reuse_share=reused / (embedded + reused) if embedded + reused else None,
        cost_usd=sum((row.cost_usd for row in facts.usage if row.day >= month), 0.0),
        failures=sum(row.items for row in facts.failures),
        database_bytes=facts.database_bytes,
        lake_bytes=sum(size.bytes for size in report.lake.values()),
    )


def present(sizes: Sequence[SourceSize]) -> list[SourceSize]:
    """What the index holds now: the last size of each source, the largest first; nothing of sources that are gone."""
    last = {(row.tenant, row.repository, row.source_type): row for row in sizes}
    held = [row for row in last.values() if row.documents or row.chunks]
    return sorted(held, key=lambda row: (-row.chunks, -row.documents, row.tenant, row.repository, row.source_type))


def growth(sizes: Sequence[SourceSize], *, first: date, last: date) -> list[Growth]:
    """The whole index day by day, from the first day on record; a day without a row was like the one before it."""
    by_day: defaultdict[date, list[SourceSize]] = defaultdict(list)
    for row in sizes:
        by_day[max(row.day, first)].append(row)
    if not by_day:
        return []
    held: dict[tuple[str, str, str], SourceSize] = {}
    points = []
    day = min(by_day)
    while day <= last:
        held.update({(row.tenant, row.repository, row.source_type): row for row in by_day.get(day, [])})
        points.append(
            Growth(
                day=day, documents=sum(r.documents for r in held.values()),
                chunks=sum(r.chunks for r in held.values()), tokens=sum(r.tokens for r in held.values()),
            )
        )  # fmt: skip
        day += timedelta(days=1)
    return points


def quality_lines(points: Sequence[QualityPoint]) -> dict[tuple[str, str], list[QualityPoint]]:
    """The evaluations of each tenant and set of labels, oldest first."""
    lines: defaultdict[tuple[str, str], list[QualityPoint]] = defaultdict(list)
    for point in sorted(points, key=lambda point: point.evaluated_at):
        lines[point.tenant, point.dataset].append(point)
    return dict(lines)


def score(point: QualityPoint) -> float | None:
    """What speaks for the whole: the headline measure of the last leg that was measured."""
    return next((point.metrics[leg][MEASURE] for leg in _LEGS if MEASURE in point.metrics.get(leg, {})), None)


def newest_quality(points: Sequence[QualityPoint]) -> float | None:
    """The newest figure of each set of labels, averaged over their questions."""
    newest = [line[-1] for line in quality_lines(points).values()]
    weighted = [(value, point.queries) for point in newest if (value := score(point)) is not None]
    questions = sum(weight for _, weight in weighted)
    return sum(value * weight for value, weight in weighted) / questions if questions else None


def cost_by_day(report: Report) -> dict[date, float]:
    """US dollars per day, days without cost included; empty when nothing was ever used."""
    if not report.facts.usage:
        return {}
    days = (report.made_at.date() - report.first).days + 1
    found = {report.first + timedelta(days=number): 0.0 for number in range(max(days, 1))}
    for row in report.facts.usage:
        found[row.day] = found.get(row.day, 0.0) + row.cost_usd
    return found
