"""Loading large libraries at a price that is worth it: without what they load and nobody uses, and in peace."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType


@contextmanager
def loaded_for_good() -> Iterator[None]:
    """The garbage collector rests meanwhile, and never looks again at what is there at the end. For once in a process.

    Modules make many objects and next to no garbage, all of which it would look at again and again: a fifth to a
    quarter of the time that Dagster, pandas or Great Expectations take to load, and as soon as it wakes (a tenth of a
    second after Dagster).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


@contextmanager
def postponed(*names: str) -> Iterator[None]:
    """Modules that are imported meanwhile see stand-ins for these, which load the real ones when they are used.

    For a library that imports others at its top for functions of its own that are never called here. A module that is
    loaded already is no stand-in; whoever imports one of them afterwards gets the real one. Parents before children.
    """
    made: dict[str, ModuleType] = {}
    for name in names:
        if name not in sys.modules:
            made[name] = sys.modules[name] = _StandIn(name)
            parent, _, own = name.rpartition(".")
            if parent in made:
                setattr(made[parent], own, made[name])
    try:
        yield
    finally:
        for name, module in made.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def load_in_background(*loads: Callable[[], object]) -> None:
    """Load libraries, one after the other, beside a wait for something else, such as the network.

    What cannot be loaded is said where it is needed, which tries again.
    """

    def load() -> None:
        for one in loads:
            with suppress(Exception):
                one()

    threading.Thread(target=load, name="loading", daemon=True).start()


class _StandIn(ModuleType):
    """Of a module that nobody has needed yet."""

    def __getattr__(self, name: str) -> object:
        # The import system asks for these, and needs no answer.
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)
