"""The sections of the report: each says in a sentence what there is to know, then shows it. How is not decided here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from rag_pipeline.reporting import words
from rag_pipeline.reporting.charts import columns, lines
from rag_pipeline.reporting.summary import (
    MEASURE,
    Report,
    Summary,
    cost_by_day,
    growth,
    present,
    quality_lines,
    score,
)  # fmt: skip

_SHOWN = 40  # rows of one table
_LATE = timedelta(days=2)

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headers; `numeric` columns stand to the right."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: Sequence[int] = ()

    @property
    def shown(self) -> Sequence[Sequence[Cell]]:
        """The rows that are shown; the rest is only counted."""
        return self.rows[:_SHOWN]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as SVG; empty when there is nothing to draw."""

    svg: str


Block: TypeAlias = str | Table | Chart
"""A sentence, in which backticks mark code; rows; or a picture of them."""


def _corpus(report: Report, summary: Summary) -> list[Block]:
    held = present(report.facts.sizes)
    if not held:
        return ["Nothing is indexed yet: materialize the refresh job, or run `rag-pipeline up`."]
    largest = held[0]
    share = largest.chunks / summary.chunks if summary.chunks else 0.0
    rows = [
        (r.tenant, r.repository, r.source_type, r.documents, r.chunks, words.number(r.tokens),
         words.share(r.chunks / summary.chunks if summary.chunks else None))
        for r in held
    ]  # fmt: skip
    said = f"The largest part is {largest.source_type} of {largest.repository}: {words.share(share)} of all chunks."
    headers = ("tenant", "repository", "source type", "documents", "chunks", "tokens", "share of chunks")
    shown = Table(caption="What the index holds, by source", headers=headers, rows=rows, numeric=(3, 4, 5, 6))
    return [said, shown]


def _growth(report: Report, _: Summary) -> list[Block]:
    points = growth(report.facts.sizes, first=report.first, last=report.made_at.date())
    if not points:
        return ["No size is on record yet: the first run that writes to the index begins the record."]
    first, last = points[0], points[-1]
    said = f"{last.chunks - first.chunks:+,} chunks and {last.documents - first.documents:+,} documents"
    drawn = lines("Chunks in the index", {"chunks": [(p.day, p.chunks) for p in points]}, whole=True)
    return [f"{said} since {first.day}.", Chart(drawn)]


def _freshness(report: Report, _: Summary) -> list[Block]:
    rows = report.facts.freshness
    if not rows:
        return ["No source was measured yet: the next refresh, or the freshness sensor, does that."]
    late = sum(row.complete_until is None or report.made_at - row.complete_until > _LATE for row in rows)
    said = f"{late:,} of {len(rows):,} sources lack something older than two days." if late else (
        "Every source is complete up to the last two days."
    )  # fmt: skip
    shown = [
        (r.tenant, r.repository, r.source, words.moment(r.last_item_seen), words.moment(r.last_asked),
         words.moment(r.last_indexed), words.moment(r.complete_until),
         words.span(report.made_at - r.complete_until if r.complete_until else None), r.failures_waiting)
        for r in rows
    ]  # fmt: skip
    headers = (
        "tenant", "repository", "source", "last item seen", "last asked", "last indexed", "complete until", "lag",
        "failures",
    )  # fmt: skip
    caption = "How fresh each source is (UTC), the stalest first"
    return [said, Table(caption=caption, headers=headers, rows=shown, numeric=(7, 8))]


def _quality(report: Report, _: Summary) -> list[Block]:
    found = quality_lines(report.facts.quality)
    if not found:
        return ["No evaluation is on record: materialize retrieval_evaluation, or run `rag-pipeline eval`."]
    drawn, rows = [], []
    for (tenant, dataset), points in found.items():
        legs = {leg: None for point in points for leg in point.metrics}
        series = {
            leg: [(p.evaluated_at.date(), p.metrics[leg][MEASURE]) for p in points if MEASURE in p.metrics.get(leg, {})]
            for leg in legs
        }
        drawn.append(lines(f"{MEASURE} of {dataset} ({tenant})", {k: v for k, v in series.items() if v}, top=1.0))
        now, before = points[-1], points[-2] if len(points) > 1 else None
        moved = None
        # Figures for other labels cannot be compared.
        if before and before.labels_hash == now.labels_hash:
            moved = (score(now) or 0.0) - (score(before) or 0.0)
        rows.append((
            tenant, dataset, words.moment(now.evaluated_at), f"{now.space_id}: {now.model}", now.queries,
            "–" if score(now) is None else f"{score(now):.3f}", "–" if moved is None else f"{moved:+.3f}",
        ))  # fmt: skip
    worse = [row for row in rows if str(row[-1]).startswith("-")]
    said = f"{len(worse)} of {len(rows)} label sets are answered worse than the time before." if worse else (
        "No label set is answered worse than the time before."
    )  # fmt: skip
    headers = ("tenant", "labels", "evaluated (UTC)", "embedding space", "questions", MEASURE, "change")
    caption = "The newest evaluation of each set of labels"
    return [said, *map(Chart, drawn), Table(caption=caption, headers=headers, rows=rows, numeric=(4, 5, 6))]


def _cost(report: Report, summary: Summary) -> list[Block]:
    points = [(r.at.date(), share) for r in report.reuse if (share := r.share) is not None]
    parts: list[Block] = []
    if points:
        texts = sum(r.embedded + r.reused for r in report.reuse)
        parts.append(f"{words.share(summary.reuse_share)} of {texts:,} texts had a vector and were not embedded.")
        drawn = lines("Share of texts that had a vector, by run", {"reused": points}, show=_percent, top=1.0)
        parts.append(Chart(drawn))
    else:
        parts.append("No run has embedded anything since then.")
    by_day = cost_by_day(report)
    if not by_day:
        return [*parts, "Nothing that costs money was used: no usage is on record."]
    totals: dict[tuple[str, str, str, str, str], list[float]] = {}
    for row in report.facts.usage:
        key = (f"{row.day:%Y-%m}", row.tenant, row.purpose, row.provider, row.model)
        sums = totals.setdefault(key, [0, 0, 0.0])
        for place, value in enumerate((row.requests, row.tokens, row.cost_usd)):
            sums[place] += value
    rows = [
        (*key, int(sums[0]), words.number(sums[1]), words.money(sums[2]))
        for key, sums in sorted(totals.items(), reverse=True)
    ]
    headers = ("month", "tenant", "purpose", "provider", "model", "requests", "tokens", "cost")
    parts.append(Chart(columns("Cost by day, US dollars", by_day, show=words.money)))
    caption = "What was asked of models, by month"
    return [*parts, Table(caption=caption, headers=headers, rows=rows, numeric=(5, 6, 7))]


def _failures(report: Report, summary: Summary) -> list[Block]:
    if not report.facts.failures:
        return ["Nothing waits in quarantine."]
    rows = [
        (r.tenant, r.repository, r.stage, r.items, words.moment(r.oldest), r.attempts, r.reason[:200])
        for r in report.facts.failures
    ]
    headers = ("tenant", "repository", "stage", "items", "oldest (UTC)", "attempts", "reason of the last")
    said = f"{summary.failures:,} items could not be processed; every run of their day tries them again."
    return [said, Table(caption="Quarantined items", headers=headers, rows=rows, numeric=(3, 5))]


def _storage(report: Report, summary: Summary) -> list[Block]:
    facts = report.facts
    spaces = [
        (s.space_id, s.status, f"{s.provider} {s.model}", s.dimensions, words.number(s.vectors),
         words.bytes_of(s.bytes), words.moment(s.activated_at))
        for s in facts.spaces
    ]  # fmt: skip
    tables = [
        (t.name, words.number(t.rows), words.bytes_of(t.table_bytes), words.bytes_of(t.index_bytes))
        for t in facts.tables
        if t.rows or t.table_bytes + t.index_bytes > 100_000
    ]
    lake = [(stage, size.files, words.bytes_of(size.bytes)) for stage, size in report.lake.items()]
    said = (
        f"The database takes {words.bytes_of(summary.database_bytes)}, the lake {words.bytes_of(summary.lake_bytes)}."
    )
    about_space = ("space", "status", "model", "dimensions", "vectors (estimate)", "size", "active since")
    about_table = ("table", "rows (estimate)", "table", "indexes")
    return [
        said,
        Table(caption="Embedding spaces", headers=about_space, rows=spaces, numeric=(0, 3, 4, 5)),
        Table(caption="Tables of schema rag", headers=about_table, rows=tables, numeric=(1, 2, 3)),
        Table(caption="The lake", headers=("stage", "files", "size"), rows=lake, numeric=(1, 2)),
    ]


SECTIONS: Final[Sequence[tuple[str, str, Callable[[Report, Summary], list[Block]]]]] = (
    ("corpus", "Corpus by source", _corpus),
    ("growth", "Growth", _growth),
    ("freshness", "Freshness", _freshness),
    ("quality", "Retrieval quality", _quality),
    ("cost", "Reuse and cost", _cost),
    ("failures", "Failures waiting", _failures),
    ("storage", "Storage", _storage),
)
"""(anchor, title, body) in the order of the page."""


def shown_cell(cell: Cell) -> str:
    """A cell as text."""
    return "–" if cell is None else words.number(cell) if isinstance(cell, int | float) else cell


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"
