"""How a stage tells whoever watches (a terminal, a run log) how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives how far a stage is; called often, so it must be cheap and do its own throttling."""

    def __call__(self, stage: str, *, done: int, total: int | None, unit: str) -> None:
        """`done` of `total` units (None: not known yet); `done == total` means finished."""


def silent(stage: str, *, done: int, total: int | None, unit: str) -> None:
    """A `Progress` for those who do not watch."""
