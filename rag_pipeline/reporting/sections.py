"""The sections of the page: each says in a sentence what there is to know, then shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from html import escape
from typing import Final

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
_LONG = 48  # characters of a cell that is better broken into lines
_LATE = timedelta(days=2)

Cell = str | int | float | None


def table(caption: str, headers: Sequence[str], rows: Sequence[Sequence[Cell]], *, numeric: Sequence[int] = ()) -> str:
    """An HTML table; every cell is escaped, `numeric` columns stand to the right. Long tables are cut, and say so."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col"{_side(n, numeric)}>{escape(text)}</th>' for n, text in enumerate(headers))
    body = "".join(
        "<tr>"
        + "".join(f"<td{_side(n, numeric, cell)}>{escape(_text(cell))}</td>" for n, cell in enumerate(row))
        + "</tr>"
        for row in rows[:_SHOWN]
    )
    more = f'<p class="more">{len(rows) - _SHOWN:,} more are not shown.</p>' if len(rows) > _SHOWN else ""
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}"
    )


def _corpus(report: Report, summary: Summary) -> str:
    held = present(report.facts.sizes)
    if not held:
        return _said("Nothing is indexed yet: materialize the refresh job, or run `rag-pipeline up`.")
    largest = held[0]
    share = largest.chunks / summary.chunks if summary.chunks else 0.0
    rows = [
        (r.tenant, r.repository, r.source_type, r.documents, r.chunks, words.number(r.tokens),
         words.share(r.chunks / summary.chunks if summary.chunks else None))
        for r in held
    ]  # fmt: skip
    said = f"The largest part is {largest.source_type} of {largest.repository}: {words.share(share)} of all chunks."
    headers = ("tenant", "repository", "source type", "documents", "chunks", "tokens", "share of chunks")
    return _said(said) + table("What the index holds, by source", headers, rows, numeric=(3, 4, 5, 6))


def _growth(report: Report, _: Summary) -> str:
    points = growth(report.facts.sizes, first=report.first, last=report.made_at.date())
    if not points:
        return _said("No size is on record yet: the first run that writes to the index begins the record.")
    first, last = points[0], points[-1]
    said = f"{last.chunks - first.chunks:+,} chunks and {last.documents - first.documents:+,} documents"
    drawn = lines("Chunks in the index", {"chunks": [(p.day, p.chunks) for p in points]}, whole=True)
    return _said(f"{said} since {first.day}.") + drawn


def _freshness(report: Report, _: Summary) -> str:
    rows = report.facts.freshness
    if not rows:
        return _said("No source was measured yet: the next refresh, or the freshness sensor, does that.")
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
    return _said(said) + table("How fresh each source is (UTC), the stalest first", headers, shown, numeric=(7, 8))


def _quality(report: Report, _: Summary) -> str:
    found = quality_lines(report.facts.quality)
    if not found:
        return _said("No evaluation is on record: materialize retrieval_evaluation, or run `rag-pipeline eval`.")
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
    newest = table("The newest evaluation of each set of labels", headers, rows, numeric=(4, 5, 6))
    return _said(said) + "".join(drawn) + newest


def _cost(report: Report, summary: Summary) -> str:
    points = [(r.at.date(), share) for r in report.reuse if (share := r.share) is not None]
    parts = []
    if points:
        texts = sum(r.embedded + r.reused for r in report.reuse)
        parts.append(
            _said(f"{words.share(summary.reuse_share)} of {texts:,} texts had a vector and were not embedded.")
        )
        parts.append(lines("Share of texts that had a vector, by run", {"reused": points}, show=_percent, top=1.0))
    else:
        parts.append(_said("No run has embedded anything since then."))
    by_day = cost_by_day(report)
    if not by_day:
        return "".join([*parts, _said("Nothing that costs money was used: no usage is on record.")])
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
    parts.append(columns("Cost by day, US dollars", by_day, show=words.money))
    parts.append(table("What was asked of models, by month", headers, rows, numeric=(5, 6, 7)))
    return "".join(parts)


def _failures(report: Report, summary: Summary) -> str:
    if not report.facts.failures:
        return _said("Nothing waits in quarantine.")
    rows = [
        (r.tenant, r.repository, r.stage, r.items, words.moment(r.oldest), r.attempts, r.reason[:200])
        for r in report.facts.failures
    ]
    headers = ("tenant", "repository", "stage", "items", "oldest (UTC)", "attempts", "reason of the last")
    said = f"{summary.failures:,} items could not be processed; every run of their day tries them again."
    return _said(said) + table("Quarantined items", headers, rows, numeric=(3, 5))


def _storage(report: Report, summary: Summary) -> str:
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
    return "".join((
        _said(said),
        table("Embedding spaces",
              ("space", "status", "model", "dimensions", "vectors (estimate)", "size", "active since"), spaces,
              numeric=(0, 3, 4, 5)),
        table("Tables of schema rag", ("table", "rows (estimate)", "table", "indexes"), tables, numeric=(1, 2, 3)),
        table("The lake", ("stage", "files", "size"), lake, numeric=(1, 2)),
    ))  # fmt: skip


SECTIONS: Final[Sequence[tuple[str, str, Callable[[Report, Summary], str]]]] = (
    ("corpus", "Corpus by source", _corpus),
    ("growth", "Growth", _growth),
    ("freshness", "Freshness", _freshness),
    ("quality", "Retrieval quality", _quality),
    ("cost", "Reuse and cost", _cost),
    ("failures", "Failures waiting", _failures),
    ("storage", "Storage", _storage),
)
"""(anchor, title, body) in the order of the page."""


def _said(text: str) -> str:
    # Marks of code are ours; the words between them may come from data.
    pieces = [escape(piece) for piece in text.split("`")]
    return "<p>" + "".join(f"<code>{p}</code>" if n % 2 else p for n, p in enumerate(pieces)) + "</p>"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _text(cell: Cell) -> str:
    return "–" if cell is None else words.number(cell) if isinstance(cell, int | float) else cell


def _side(column: int, numeric: Sequence[int], cell: Cell = None) -> str:
    if column in numeric:
        return ' class="n"'
    return ' class="long"' if isinstance(cell, str) and len(cell) > _LONG else ""
