"""How a stage tells whoever watches (a terminal, a run log) how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives how far a stage is; called often, so it must be cheap and do its own throttling."""

    def __call__(self, stage: str, *, done: int, total: int | None, unit: str) -> None:
        """`done` of `total` units (None: not known yet); `done == total` means finished.

        What follows a colon in `stage` says at what of it we are: `raw_docs: files of acme/app`.
        """


class Advance:
    """Counts what a stage has done and tells it; for loops deep inside, which know of their own part only."""

    def __init__(self, progress: Progress, stage: str, *, total: int | None, unit: str) -> None:
        self._progress = progress
        self._stage = stage
        self._total = total
        self._unit = unit
        self._done = 0

    def __call__(self, more: int = 1) -> None:
        """So many more units are done."""
        self._done += more
        self._progress(self._stage, done=self._done, total=self._total, unit=self._unit)


def silent(stage: str, *, done: int, total: int | None, unit: str) -> None:
    """A `Progress` for those who do not watch."""
