"""Where the local model runs, and how much of it at once: by rules of the machine, not by numbers of one machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rag_pipeline.errors import ConfigError

CPU: Final = "CPUExecutionProvider"
CUDA: Final = "CUDAExecutionProvider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What runs the model, and what it is given at once."""

    provider: str
    """As onnxruntime calls it."""
    threads: int
    """That run batches at once."""
    batch_windows: int
    batch_tokens: int
    """Of a batch, padding included; a longer single window goes alone."""


def device_for(wanted: Literal["auto", "cpu", "cuda"], *, threads: int, available: Sequence[str], cores: int) -> Device:
    """The device to use, of the providers that this onnxruntime was built with; `threads` 0: as the device wants.

    Raises:
        ConfigError: a GPU is asked for, and this onnxruntime knows none.
    """
    if wanted == "cuda" and CUDA not in available:
        raise ConfigError(
            'embedding.device is "cuda", but the installed onnxruntime is built for the processor only: '
            "pip uninstall onnxruntime, then pip install 'onnxruntime-gpu[cuda,cudnn]'"
        )
    if wanted == "cpu" or CUDA not in available:
        # Products as large as the caches hold: a core is done with 500 tokens before another batch is worth a wait.
        return Device(provider=CPU, threads=threads or cores, batch_windows=8, batch_tokens=512)
    # A GPU wants products large enough for all its cores. Two threads: one prepares while the other's batch runs.
    return Device(provider=CUDA, threads=threads or 2, batch_windows=256, batch_tokens=16_384)


def matrix_device(*, threads: int, cores: int) -> Device:
    """A processor that multiplies whole matrices at once; `threads` 0: one on each core."""
    # Short windows go by the dozen: a product of a few rows leaves most of such a unit idle.
    return Device(provider=CPU, threads=threads or cores, batch_windows=32, batch_tokens=1024)
