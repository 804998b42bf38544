"""Charts as inline SVG: they follow the page's colours, need no script, and say in words what they show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from html import escape

from rag_pipeline.reporting import words

_WIDTH, _HEIGHT = 640.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 16.0, 14.0, 30.0
SERIES = 6
"""Colours that the page defines, as classes `s0` to `s5`; each has a dash of its own, for who cannot tell colours."""

Point = tuple[date, float]


def lines(
    title: str, series: Mapping[str, Sequence[Point]], *, show: Callable[[float], str] = words.number,
    top: float | None = None, whole: bool = False,
) -> str:  # fmt: skip
    """A line for each name over days, with a legend; `top`: where the axis ends at least. `whole` numbers only."""
    points = [point for line in series.values() for point in line]
    if not points:
        return ""
    days, highest = _days(points), max([value for _, value in points] + ([top] if top is not None else []))
    ticks = _ticks(highest, whole=whole)
    drawn = []
    for place, line in enumerate(series.values()):
        spots = [(_x(day, days), _y(value, ticks[-1])) for day, value in line]
        path = " ".join(f"{'L' if n else 'M'}{x:.1f} {y:.1f}" for n, (x, y) in enumerate(spots))
        drawn.append(f'<path class="line s{place % SERIES}" d="{path}"/>')
        # A dot for each moment, as long as one can tell them apart.
        if len(spots) <= 40:
            drawn += [f'<circle class="dot s{place % SERIES}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in spots]
    return _figure(title, _axes(days, ticks, show), drawn, _legend(list(series)), _told(series, show))


def columns(title: str, values: Mapping[date, float], *, show: Callable[[float], str] = words.number) -> str:
    """A column for each day."""
    if not values:
        return ""
    points = sorted(values.items())
    days, ticks = _days(points), _ticks(max(values.values()), whole=False)
    width = max(1.5, min(24.0, (_WIDTH - _LEFT - _RIGHT) / max(len(points), 1) * 0.8))
    base = _y(0, ticks[-1])
    drawn = [
        f'<rect class="column" x="{min(max(_x(day, days) - width / 2, _LEFT), _WIDTH - _RIGHT - width):.1f}" '
        f'y="{_y(value, ticks[-1]):.1f}" width="{width:.1f}" height="{base - _y(value, ticks[-1]):.1f}">'
        f"<title>{day}: {escape(show(value))}</title></rect>"
        for day, value in points
        if value > 0
    ]
    return _figure(title, _axes(days, ticks, show), drawn, "", _told({title: points}, show))


def _days(points: Sequence[Point]) -> tuple[date, date]:
    return min(day for day, _ in points), max(day for day, _ in points)


def _x(day: date, days: tuple[date, date]) -> float:
    length = (days[1] - days[0]).days
    # One day alone stands in the middle.
    share = (day - days[0]).days / length if length else 0.5
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float, highest: float) -> float:
    return _TOP + (1 - value / highest) * (_HEIGHT - _TOP - _BOTTOM)


def _ticks(highest: float, *, whole: bool) -> list[float]:
    """From 0 in equal steps of 1, 2, 2.5 or 5 times a power of ten, at most five of them."""
    rough = max(highest, 1e-6) / 4
    if whole:
        rough = max(rough, 1.0)
    power = 10.0 ** math.floor(math.log10(rough))
    steps = (1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)
    step = next(power * factor for factor in steps if power * factor >= rough * (1 - 1e-9))
    return [step * n for n in range(max(1, math.ceil(highest / step - 1e-9)) + 1)]


def _axes(days: tuple[date, date], ticks: Sequence[float], show: Callable[[float], str]) -> list[str]:
    drawn = []
    for tick in ticks:
        y = _y(tick, ticks[-1])
        drawn.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(show(tick))}</text>')
    middle = days[0] + (days[1] - days[0]) / 2
    marks = [(days[0], "start"), (middle, "middle"), (days[1], "end")] if days[0] < days[1] else [(days[0], "middle")]
    if (days[1] - days[0]).days == 1:
        del marks[1]
    for day, anchor in marks:
        drawn.append(f'<text x="{_x(day, days):.1f}" y="{_HEIGHT - 8}" text-anchor="{anchor}">{day.isoformat()}</text>')
    return drawn


def _legend(names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    keys = "".join(
        f'<li><svg class="key" viewBox="0 0 28 8" aria-hidden="true"><path class="line s{n % SERIES}" d="M0 4H28"/>'
        f"</svg>{escape(name)}</li>"
        for n, name in enumerate(names)
    )
    return f'<ul class="legend">{keys}</ul>'


def _told(series: Mapping[str, Sequence[Point]], show: Callable[[float], str]) -> str:
    """What a chart shows, for those who hear it."""
    told = [
        f"{name}: {show(line[0][1])} on {line[0][0]}, {show(line[-1][1])} on {line[-1][0]}, "
        f"highest {show(max(value for _, value in line))}"
        for name, line in series.items() if line
    ]  # fmt: skip
    return "; ".join(told)


def _figure(title: str, axes: Sequence[str], drawn: Sequence[str], legend: str, told: str) -> str:
    return (
        f'<figure><figcaption>{escape(title)}</figcaption>{legend}<div class="scroll" tabindex="0" role="group" '
        f'aria-label="{escape(title)}"><svg class="chart" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" '
        f'aria-label="{escape(f"{title}. {told}")}">{"".join(axes)}{"".join(drawn)}</svg></div></figure>'
    )
