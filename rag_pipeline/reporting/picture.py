"""The report as one picture, for places that show no page: six panels, drawn by matplotlib when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from io import BytesIO
from typing import TYPE_CHECKING, Any

from rag_pipeline.reporting import words
from rag_pipeline.reporting.summary import (
    MEASURE,
    Report,
    cost_by_day,
    growth,
    present,
    quality_lines,
    score,
    summarise,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours: nearly everybody can tell them apart.
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_STYLES = ("-", "--", ":", "-.")
_INK, _SOFT = "#1b1f24", "#57606a"
_BARS = 7
_LATE_H = 48.0
_LONG_DAYS = 200
_RC: Any = {
    "font.size": 9, "axes.edgecolor": "#c8ced5", "axes.labelcolor": _SOFT, "xtick.color": _SOFT, "ytick.color": _SOFT,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10.5, "axes.titleweight": "bold",
    "axes.titlecolor": _INK, "axes.titlelocation": "left", "text.color": _INK, "lines.linewidth": 1.8,
    # A `$` in a name begins no formula.
    "text.parse_math": False,
}  # fmt: skip


def picture(report: Report) -> bytes:
    """A PNG of 1,300 by 780 pixels."""
    from matplotlib import rc_context

    # The object interface: pyplot would choose a display backend and keep every figure alive.
    from matplotlib.figure import Figure

    panels: Sequence[tuple[str, Callable[[Axes, Report], bool], str]] = (
        ("Chunks by source", _corpus, "nothing is indexed yet"),
        ("Chunks in the index", _growth, "no size is on record yet"),
        ("Lag by source, hours", _freshness, "no source was measured yet"),
        (f"Retrieval quality, {MEASURE}", _quality, "no evaluation is on record"),
        ("Texts that had a vector, %", _reuse, "no run embedded anything"),
        ("Cost by day, US dollars", _cost, "no usage is on record"),
    )
    with rc_context(_RC):
        figure = Figure(figsize=(13, 7.8), dpi=100, facecolor="white")
        for axes, (title, draw, empty) in zip(figure.subplots(2, 3).flat, panels, strict=True):
            axes.set_title(title, pad=10)
            if not draw(axes, report):
                axes.clear()
                axes.set_axis_off()
                axes.set_title(title, pad=10)
                axes.text(0.0, 0.92, empty[0].upper() + empty[1:] + ".", transform=axes.transAxes, color=_SOFT)
        figure.suptitle(_headline(report), x=0.012, y=0.985, ha="left", fontsize=13, fontweight="bold")
        figure.text(0.012, 0.935, _subline(report), ha="left", va="top", color=_SOFT)
        figure.tight_layout(rect=(0, 0, 1, 0.91), h_pad=2.4, w_pad=2.4)
        buffer = BytesIO()
        figure.savefig(buffer, format="png", pil_kwargs={"optimize": True}, metadata={"Title": "pipeline report"})
    return buffer.getvalue()


def _headline(report: Report) -> str:
    s = summarise(report)
    if not s.documents:
        return "The index is empty"
    repositories = "1 repository" if s.sources == 1 else f"{s.sources:,} repositories"
    return f"{s.documents:,} documents, {s.chunks:,} chunks, {repositories}"


def _subline(report: Report) -> str:
    s = summarise(report)
    said = [f"{words.moment(report.made_at)} UTC", f"database {words.bytes_of(s.database_bytes)}"]
    said.append(f"{s.failures:,} failures waiting")
    if s.cost_usd:
        said.append(f"{words.money(s.cost_usd)} this month")
    return "  ·  ".join(said)


def _corpus(axes: Axes, report: Report) -> bool:
    held = present(report.facts.sizes)
    rows = [(f"{row.repository} {row.source_type}", row.chunks) for row in held[:_BARS]]
    if rest := held[_BARS:]:
        rows.append((f"{len(rest)} more", sum(row.chunks for row in rest)))
    _bars(axes, rows, [_COLORS[0]] * len(rows), words.number)
    return bool(rows)


def _freshness(axes: Axes, report: Report) -> bool:
    lags = [
        (f"{row.repository} {row.source}", max(0.0, (report.made_at - row.complete_until).total_seconds() / 3600))
        for row in report.facts.freshness if row.complete_until
    ]  # fmt: skip
    stalest = sorted(lags, key=lambda lag: -lag[1])[: _BARS + 1]
    colors = [_COLORS[5] if hours > _LATE_H else _COLORS[2] for _, hours in stalest]
    _bars(axes, stalest, colors, lambda hours: f"{hours:,.1f}", least=_LATE_H)
    return bool(lags)


def _growth(axes: Axes, report: Report) -> bool:
    points = growth(report.facts.sizes, first=report.first, last=report.made_at.date())
    days, chunks = [point.day for point in points], [point.chunks for point in points]
    axes.fill_between(days, chunks, color=_COLORS[0], alpha=0.15, linewidth=0)  # type: ignore[arg-type]
    _line(axes, days, chunks, 0)
    axes.yaxis.set_major_formatter(lambda value, _: words.number(value))
    axes.set_ylim(0, max([*chunks, 1]) * 1.1)
    _date_axis(axes, days)
    return bool(points)


def _quality(axes: Axes, report: Report) -> bool:
    drawn: list[date] = []
    for place, ((_, dataset), points) in enumerate(quality_lines(report.facts.quality).items()):
        found = [(p.evaluated_at.date(), value) for p in points if (value := score(p)) is not None]
        drawn += [day for day, _ in found]
        _line(axes, [day for day, _ in found], [value for _, value in found], place, label=_plain(dataset))
    axes.set_ylim(0, 1)
    _date_axis(axes, drawn)
    if drawn:
        axes.legend(fontsize=8, loc="lower left", frameon=False)
    return bool(drawn)


def _reuse(axes: Axes, report: Report) -> bool:
    points = [(r.at.date(), 100 * share) for r in report.reuse if (share := r.share) is not None]
    _line(axes, [day for day, _ in points], [value for _, value in points], 0)
    axes.set_ylim(0, 105)
    _date_axis(axes, [day for day, _ in points])
    return bool(points)


def _cost(axes: Axes, report: Report) -> bool:
    by_day = cost_by_day(report)
    axes.bar(list(by_day), list(by_day.values()), width=0.9, color=_COLORS[0])  # type: ignore[arg-type]
    axes.set_ylim(0, max([*by_day.values(), 0.01]) * 1.1)
    _date_axis(axes, list(by_day))
    return bool(by_day)


def _bars(
    axes: Axes, rows: Sequence[tuple[str, float]], colors: Sequence[str], show: Callable[[float], str], *,
    least: float = 0.0,
) -> None:  # fmt: skip
    """Bars; `least`: what a bar of full length stands for at least, so that next to nothing looks like it."""
    places = range(len(rows))
    axes.barh(places, [value for _, value in rows], color=list(colors), height=0.36)
    # Name and number stand at the bar: axes would say them again, and take the room of the bars.
    axes.set_axis_off()
    most = max([least, *(value for _, value in rows)]) or 1
    axes.set_xlim(0, most * 1.15)
    axes.set_ylim(max(len(rows), 5) - 0.7, -0.85)
    for place, (name, value) in enumerate(rows):
        axes.text(0, place - 0.27, _short(_plain(name)), va="bottom", fontsize=8.5, color=_INK)
        axes.text(value + most * 0.015, place, show(value), va="center", fontsize=8.5, color=_SOFT)


def _line(axes: Axes, days: Sequence[date], values: Sequence[float], place: int, *, label: str = "") -> None:
    axes.plot(
        days, values, color=_COLORS[place % len(_COLORS)], linestyle=_STYLES[place % len(_STYLES)],  # type: ignore[arg-type]
        marker="o" if len(days) <= 40 else "", markersize=3.5, label=label,
    )  # fmt: skip


def _date_axis(axes: Axes, days: Sequence[date]) -> None:
    from matplotlib.dates import AutoDateLocator, DateFormatter

    axes.xaxis.set_major_locator(AutoDateLocator(minticks=2, maxticks=5))  # type: ignore[no-untyped-call]
    is_long = bool(days) and (max(days) - min(days)).days > _LONG_DAYS
    axes.xaxis.set_major_formatter(DateFormatter("%b %Y" if is_long else "%d %b"))  # type: ignore[no-untyped-call]
    axes.grid(axis="y", color="#e6e9ed", linewidth=0.8)
    axes.set_axisbelow(True)
    if days and min(days) == max(days):
        # One day alone: without this the axis would show hours.
        middle = min(days).toordinal()
        axes.set_xlim(date.fromordinal(middle - 3), date.fromordinal(middle + 3))  # type: ignore[arg-type]


def _plain(text: str) -> str:
    """A name on one line; a leading `_` would leave the legend."""
    return " ".join(text.split()).lstrip("_") or "–"


def _short(text: str) -> str:
    return text if len(text) <= 50 else f"{text[:24]}…{text[-25:]}"
