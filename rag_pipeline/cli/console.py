"""What a person sees while a command works: bars on a terminal, plain lines otherwise, and the tables at the end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rich.console import Console
from rich.markup import escape

from rag_pipeline.model import PLACE

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID
    from rich.table import Table

    from rag_pipeline.model import Answer, SearchHit

# A pipe has no width; a table for it must not be folded to 80 columns.
_WIDTH = None if sys.stdout.isatty() else 160
out = Console(highlight=False, soft_wrap=True, width=_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)
_LINE_EVERY_S = 5.0
_SILENT_AT_MOST_S = 10.0


class Watch:
    """A `Progress` for people; use it as a context manager."""

    def __init__(self) -> None:
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}
        self._said: dict[str, float] = {}
        self._started = self._heard = time.monotonic()
        self._stage = "starting"
        self._ended = threading.Event()

    def __enter__(self) -> Watch:
        if sys.stderr.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bars

            self._bars = Bars(
                TextColumn("{task.description:<16}"), BarColumn(bar_width=32), MofNCompleteColumn(),
                TextColumn("{task.fields[unit]}"), TimeElapsedColumn(), TimeRemainingColumn(), console=err,
            )  # fmt: skip
            self._bars.start()
        else:
            threading.Thread(target=self._break_silence, name="watch", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._bars is not None:
            self._bars.stop()

    def _break_silence(self) -> None:
        """What takes long without a word, such as a clone or loading a model, is still at work."""
        while not self._ended.wait(_LINE_EVERY_S):
            now = time.monotonic()
            if now - self._heard >= _SILENT_AT_MOST_S:
                self._heard = now
                self._say(f"still at work: {self._stage}")

    def _say(self, text: str) -> None:
        # Without rich, whose first line costs a tenth of what a refresh with nothing new takes.
        print(f"{time.monotonic() - self._started:7.1f} s  {text}", file=sys.stderr, flush=True)

    def __call__(self, stage: str, *, done: int, total: int | None, unit: str) -> None:
        """See `Progress`."""
        whole = stage.partition(":")[0]
        if self._bars is not None:
            # One bar a stage, whatever it is at.
            if whole not in self._tasks:
                self._tasks[whole] = self._bars.add_task(whole, total=total, unit=unit)
            self._bars.update(self._tasks[whole], completed=done, total=total, description=stage, unit=unit)
            return
        now = time.monotonic()
        self._stage = stage
        # What is waited for is said before the silence.
        if done == total or unit == "seconds" or now - self._said.get(whole, self._started) >= _LINE_EVERY_S:
            self._said[whole] = self._heard = now
            of = f" of {total:,}" if total is not None else ""
            self._say(f"{stage}: {done:,}{of} {unit}")


def rows_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table; numbers are aligned to the right."""
    from rich.table import Table

    table = Table(
        title=title or None, title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for column, header in enumerate(headers):
        numeric = bool(rows) and all(isinstance(row[column], int | float) for row in rows)
        table.add_column(header, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(_number(value)) for value in row))
    return table


def print_sources(answer: Answer) -> None:
    """What an answer cites, and where to open it."""
    if answer.sources:
        out.print()
    for source in answer.sources:
        where = f"[cyan]{escape(link_of(source.hit))}[/cyan]{escape(place_of(source.hit))}  ({source.hit.score:.3f})"
        out.print(f"\\[Source {source.number}] {escape(source.hit.title)}  {where}")


def link_of(hit: SearchHit) -> str:
    """What to open: the link, or `path:line` for a file on this machine, which terminals and editors understand."""
    if not hit.url.startswith("file://"):
        return hit.url
    return f"{unquote(urlsplit(hit.url).path)}:{hit.start_line}-{hit.end_line}"


def place_of(hit: SearchHit) -> str:
    """What the place of the hit's lines is called, such as a notebook's cell, with a space before it; or nothing."""
    _, mark, place = hit.location.partition(PLACE)
    return f"{mark}{place}"


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
