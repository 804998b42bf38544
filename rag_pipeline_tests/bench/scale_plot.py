"""The growth of four costs over the size of the corpus, as one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_STYLES = ("-", "--", ":", "-.")
_INK, _SOFT = "#1b1f24", "#57606a"
_RC: Any = {
    "font.size": 9, "axes.edgecolor": "#c8ced5", "axes.labelcolor": _SOFT, "xtick.color": _SOFT, "ytick.color": _SOFT,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10.5, "axes.titleweight": "bold",
    "axes.titlecolor": _INK, "axes.titlelocation": "left", "text.color": _INK, "lines.linewidth": 1.8,
    # Text stays text, and the same figures give the same file.
    "svg.fonttype": "none", "svg.hashsalt": "scale",
}  # fmt: skip

_PANELS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    (
        "A refresh of the same change", "seconds",
        {"own work": "refresh of the same change, own work [s]", "knowledge_index": "refresh, knowledge_index [s]",
         "checks": "refresh, checks [s]"},
    ),
    (
        "A search, p95", "milliseconds",
        {leg: f"search, {leg}, p95 [ms]" for leg in ("lexical", "vector", "fused")},
    ),
    (
        "Peak memory of the process", "MB",
        {"refresh": "refresh, peak memory of the process [MB]",
         "building": "peak memory of the process that built it [MB]"},
    ),
    (
        "Disk of a chunk", "bytes",
        {what: f"disk of a chunk: {what} [bytes]" for what in ("tables", "postings", "vectors", "graph", "lake")},
    ),
)  # fmt: skip


class Sized(Protocol):
    """Figures of one size."""

    @property
    def chunks(self) -> int: ...
    @property
    def figures(self) -> Mapping[str, float]: ...


def draw(found: Sequence[Sized], path: Path) -> None:
    """Four panels over the number of chunks, which is drawn in powers of ten; SVG, or what the path's end says."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_RC):
        figure = Figure(figsize=(9.6, 6.4), facecolor="white", layout="tight")
        for axes, (title, unit, lines) in zip(figure.subplots(2, 2).flat, _PANELS, strict=True):
            sizes = [grown.chunks for grown in found]
            for place, (label, name) in enumerate(lines.items()):
                values = [grown.figures.get(name, 0.0) for grown in found]
                axes.plot(sizes, values, color=_COLORS[place], linestyle=_STYLES[place % 4], marker="o", markersize=4,
                          label=label)  # fmt: skip
            axes.set_xscale("log")
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
            axes.set_title(title)
            axes.set_ylabel(unit)
            axes.set_xlabel("chunks")
            axes.grid(axis="y", color="#e6e9ed", linewidth=0.8)
            axes.set_axisbelow(True)
            axes.legend(fontsize=8, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
