"""Small pictures for metadata, as Markdown images with the data inside. matplotlib is loaded by the first picture."""

import base64
import importlib
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOR = "#4f6df5"
_SIZE_IN = (6.4, 2.2)


def load() -> None:
    """Load the plotting library now: it takes half a second, and the first picture would wait for it."""
    importlib.import_module("matplotlib.figure")


def bars_by_day(title: str, by_day: Mapping[str, int]) -> str:
    """Rows per day; days (ISO dates) without a bar have none."""

    from matplotlib.dates import AutoDateLocator

    def draw(axes: "Axes") -> None:
        days = [date.fromisoformat(day) for day in sorted(by_day)]
        width = max(1.0, (days[-1] - days[0]).days / 120)
        axes.bar(days, [by_day[day.isoformat()] for day in days], width=width, color=_COLOR)  # type: ignore[arg-type]
        axes.xaxis.set_major_locator(AutoDateLocator(minticks=3, maxticks=8))  # type: ignore[no-untyped-call]

    return _image(title, draw)


def histogram(title: str, values: Sequence[int], *, unit: str) -> str:
    """How often which value occurs."""

    def draw(axes: "Axes") -> None:
        axes.hist(values, bins=min(40, max(5, len(set(values)))), color=_COLOR)
        axes.set_xlabel(unit)

    return _image(title, draw)


def bars_by_name(title: str, counts: Mapping[str, int], *, most: int = 8) -> str:
    """How many of which, the largest first; what is beyond `most` names is one bar."""
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    rows = ranked if len(ranked) <= most else [*ranked[: most - 1], ("other", sum(n for _, n in ranked[most - 1 :]))]

    def draw(axes: "Axes") -> None:
        # A `$` in a name begins no formula.
        axes.barh([name[:24].replace("$", r"\$") for name, _ in rows], [n for _, n in rows], color=_COLOR)
        axes.invert_yaxis()

    return _image(title, draw)


def lines_over_time(
    title: str, series: Mapping[str, Sequence[tuple[datetime, float]]], *, changes: Sequence[datetime] = ()
) -> str:  # fmt: skip
    """A line for each name, with a mark for each moment that was measured; values from 0 to 1.

    At `changes` something else was measured than before: a dotted line warns of comparing both sides of it.
    """

    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    def draw(axes: "Axes") -> None:
        for name, points in series.items():
            axes.plot([at for at, _ in points], [value for _, value in points], marker="o", markersize=3, label=name)  # type: ignore[arg-type]
        for change in changes:
            axes.axvline(change, linestyle=":", linewidth=1, color="grey")  # type: ignore[arg-type]
        locator = AutoDateLocator(minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        axes.set_ylim(0, 1)
        axes.legend(fontsize=8, loc="lower left", frameon=False, ncols=4)

    return _image(title, draw)


def _image(title: str, draw: Any) -> str:
    # The object interface: pyplot would choose a display backend and keep every figure alive.
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_IN, dpi=90, layout="tight")
    axes = figure.subplots()
    draw(axes)
    axes.set_title(title, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    buffer = BytesIO()
    figure.savefig(buffer, format="png")
    return f"![{title}](data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()})"
