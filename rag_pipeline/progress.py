"""How a stage tells whoever watches (a terminal, a run log) how far it is."""

from __future__ import annotations

import threading
from collections import defaultdict
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


class Together:
    """Progress of several that work beside each other, told as one: what they have done of the same is added up."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._amounts: defaultdict[tuple[str, str], dict[object, tuple[int, int | None]]] = defaultdict(dict)

    def of(self, name: str) -> Progress:
        """Where one of them tells how far it is; its name, after a last "of", gives way to their number."""
        key = object()  # two of different tenants may have one name

        def tell(stage: str, *, done: int, total: int | None, unit: str) -> None:
            what = stage.removesuffix(f" of {name}")
            with self._lock:
                amounts = self._amounts[what, unit]
                amounts[key] = (done, total)
                if len(amounts) > 1:
                    stage = stage if stage == what else f"{what} of {len(amounts):,}"
                    totals = [whole for _, whole in amounts.values()]
                    done, total = sum(part for part, _ in amounts.values()), sum(whole or 0 for whole in totals)
                    total = None if None in totals else total
                self._progress(stage, done=done, total=total, unit=unit)

        return tell

    def __call__(self, stage: str, *, done: int, total: int | None, unit: str) -> None:
        """Of all of them; see `Progress`."""
        with self._lock:
            self._progress(stage, done=done, total=total, unit=unit)
