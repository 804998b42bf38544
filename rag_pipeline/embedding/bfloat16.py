"""The local model on processors that multiply in bfloat16 (Intel's AMX, AMD's and Intel's AVX-512 BF16), by OpenVINO.

onnxruntime computes in float32 there, at two fifths of the speed with AMX and two thirds without (docs/performance.md).
The weights are those of the published file; what goes from one operation to the next is rounded to 8 significant bits,
sums are not. A vector depends on nothing but its text, and has a cosine of .9999 and more to that of float32.

The quantised model (`local.QUANTISED`) is the same file, multiplied in integers: what goes into a product is rounded to
int8 by groups of 64 neighbours in a row, each of which has a scale of its own, so that a vector depends on nothing but
its text there, too. It is another model, with a space of its own.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.embedding.telemetry import hold_telemetry, without

if TYPE_CHECKING:
    from openvino import CompiledModel, Core, InferRequest

_PACKAGE: Final = "openvino"
_TELEMETRY: Final = "openvino_telemetry"
_DEVICE: Final = "CPU"
_CPUINFO: Final = Path("/proc/cpuinfo")
_MATRIX_FLAGS: Final = frozenset({"amx_bf16"})
_FLAGS: Final = _MATRIX_FLAGS | {"avx512_bf16"}
_INT8_FLAGS: Final = frozenset({"avx512_bf16", "avx512_vnni"})
_INT8_GROUP: Final = 64
"""Of 32 a seventh slower, of 128 a twentieth faster and further from float32 (docs/performance.md, Embeddings)."""
_PADDED_TO: Final = 16
"""Lengths of batches are multiples of it, as kernels are made for each shape that comes (about 10 ms)."""
_loading: Final = threading.Lock()


def is_usable(cpuinfo: Path = _CPUINFO) -> bool:
    """Whether this processor multiplies in bfloat16, and OpenVINO is installed; found without loading it."""
    return not _FLAGS.isdisjoint(_flags(cpuinfo))


def multiplies_matrices(cpuinfo: Path = _CPUINFO) -> bool:
    """Whether this processor multiplies whole matrices of bfloat16 at once, and OpenVINO is installed."""
    return not _MATRIX_FLAGS.isdisjoint(_flags(cpuinfo))


def multiplies_int8(cpuinfo: Path = _CPUINFO) -> bool:
    """Whether this processor makes the quantised model's vectors, and OpenVINO is installed.

    What is not multiplied in int8 is computed in bfloat16: in float32 it gives vectors with a cosine of .9994 to these.
    With AMX nobody has measured them, and bfloat16 is faster.
    """
    flags = _flags(cpuinfo)
    return flags >= _INT8_FLAGS and _MATRIX_FLAGS.isdisjoint(flags)


def _flags(cpuinfo: Path) -> frozenset[str]:
    """What the processor can; nothing, where OpenVINO is not installed."""
    try:
        said = cpuinfo.read_text("utf-8", "replace")
    except OSError:
        return frozenset()
    flags = next((line for line in said.splitlines() if line.startswith("flags")), "")
    return frozenset(flags.split()) if find_spec(_PACKAGE) is not None else frozenset()


class Bfloat16Session:
    """The published model, compiled and tried; each thread that calls it runs a request of its own."""

    def __init__(self, file: Path, *, threads: int, int8: bool = False) -> None:
        """Raises RuntimeError where the model can be compiled and not run; `int8`: as the quantised model."""
        self._of_thread = threading.local()
        # OpenVINO's Python module fills its tables of types in the first call of a process that needs them, and waits
        # for the interpreter's lock while it does. Two threads that do so at once wait for each other, for good.
        with _loading:
            self._compiled = compiled(file, threads=threads, int8=int8)
            self.token_vectors(np.ones((1, 1), dtype=np.int32), np.ones(1, dtype=np.int32))

    def token_vectors(self, ids: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """See `TokenVectors`; what it gives is valid until the same thread calls again."""
        windows, longest = ids.shape
        padded = -(-longest // _PADDED_TO) * _PADDED_TO
        given = np.zeros((windows, padded), dtype=np.int64)
        given[:, :longest] = ids
        mask = (np.arange(padded) < lengths[:, None]).astype(np.int64)
        inputs = {"input_ids": given, "attention_mask": mask, "token_type_ids": np.zeros_like(given)}
        found: NDArray[np.float32] = self._request().infer(inputs, share_outputs=True)["last_hidden_state"]
        return found[:, :longest]

    def _request(self) -> InferRequest:
        request: InferRequest | None = getattr(self._of_thread, "request", None)
        if request is None:
            request = self._of_thread.request = self._compiled.create_infer_request()
        return request


def compiled(model: Path | bytes, *, threads: int, int8: bool = False) -> CompiledModel:
    """An ONNX model, or the file that holds it, for so many threads, each with a request of its own."""
    options = {
        "INFERENCE_PRECISION_HINT": "bf16",
        # Otherwise activations stay as they are: rounded to int8, they are another model's.
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": _INT8_GROUP if int8 else 0,
        # A thread for each batch under way, and no batch spread over threads.
        "NUM_STREAMS": threads,
        "INFERENCE_NUM_THREADS": threads,
        "ENABLE_CPU_PINNING": False,
    }
    core = _core()
    return core.compile_model(core.read_model(model), _DEVICE, options)


@cache
def _core() -> Core:
    """The engine with what it needs for processors loaded: one for the life of the process, by a thread that ends.

    It gives the thread that loads it a stack for signals, and takes it away again with the last model, from whichever
    thread lets go of that one. The next signal to the first thread then ended the process without a word, and
    betterleaks, which is written in Go, sends its threads such signals.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_loaded_core).result()


def _loaded_core() -> Core:
    hold_telemetry()
    with without(_TELEMETRY):
        import openvino
    core = openvino.Core()
    core.get_versions(_DEVICE)
    return core
