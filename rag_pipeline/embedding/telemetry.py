"""Usage statistics of the libraries that models run on: off, unless whoever runs us has set it otherwise.

onnxruntime sends them since 1.29 from Linux and macOS, too, beginning when it is imported; the libraries of the model
hub tell it what asks for a file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SWITCHES: Final = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY")


def hold_telemetry() -> None:
    """To be called before such a library is imported, which is when they look."""
    for switch in _SWITCHES:
        os.environ.setdefault(switch, "1")


@contextmanager
def without(name: str) -> Iterator[None]:
    """Who imports this module meanwhile is told that it is not installed; who has it already keeps it."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]
