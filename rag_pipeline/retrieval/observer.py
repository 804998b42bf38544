"""Who watches how long the parts of a search take; by default nobody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

Stage = Literal["embed", "lexical", "vector", "search", "rerank"]
"""`lexical` and `vector` are the legs, which overlap: the server looks for neighbours while we rank by words. `search`
is the transaction with both of them and the fusion, without `embed` before it and `rerank` after it."""


class Observer(Protocol):
    """Is told how long a stage took; called from the thread that searches, must be quick and must not raise."""

    def took(self, stage: Stage, seconds: float) -> None:
        """A stage ended, with a result or an error."""


class _Nobody:
    def took(self, stage: Stage, seconds: float) -> None:
        del stage, seconds


NOBODY: Observer = _Nobody()


@contextmanager
def timed(observer: Observer, stage: Stage) -> Iterator[None]:
    """Tell how long the block took."""
    started = time.perf_counter()
    try:
        yield
    finally:
        observer.took(stage, time.perf_counter() - started)
