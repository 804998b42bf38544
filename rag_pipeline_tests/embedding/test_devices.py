"""Where the local model runs, with made-up lists of what there is; and the graph that runs there."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from rag_pipeline.embedding import local_model
from rag_pipeline.embedding.devices import CPU, CUDA, device_for
from rag_pipeline.embedding.fused_graph import fused_model
from rag_pipeline.embedding.local import batches_of, windows_of
from rag_pipeline.embedding.onnx_wire import Graph, read_tensors
from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import Embedding

BOTH = [CUDA, CPU]


@pytest.mark.parametrize("cores", [1, 2, 4, 8, 16, 64])
def test_on_a_processor_each_core_that_may_be_used_has_a_thread(cores):
    device = device_for("auto", threads=0, available=[CPU], cores=cores)
    assert (device.provider, device.threads) == (CPU, cores)
    assert device_for("cpu", threads=3, available=BOTH, cores=cores).threads == 3


def test_a_gpu_is_taken_where_there_is_one_unless_the_settings_say_otherwise():
    assert device_for("auto", threads=0, available=BOTH, cores=4).provider == CUDA
    assert device_for("cuda", threads=0, available=BOTH, cores=4).provider == CUDA
    assert device_for("cpu", threads=0, available=BOTH, cores=4).provider == CPU
    with pytest.raises(ConfigError, match="onnxruntime-gpu"):
        device_for("cuda", threads=0, available=[CPU], cores=4)


def test_a_gpu_gets_larger_batches():
    windows = windows_of([f"A sentence about subject {n}. " * 12 for n in range(300)])
    sizes = {
        name: [len(batch) for batch in batches_of(windows, device_for(name, threads=0, available=BOTH, cores=2))]
        for name in ("cpu", "cuda")
    }
    assert max(sizes["cpu"]) <= 8 < max(sizes["cuda"])
    assert sum(sizes["cpu"]) == sum(sizes["cuda"]) == len(windows)


class Session:
    """One that was asked for CUDA and did not find it, as onnxruntime makes it: without an error."""

    providers = (CPU,)


def test_a_gpu_that_cannot_be_used_is_an_error_only_when_it_was_asked_for(monkeypatch, caplog):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: BOTH)
    monkeypatch.setattr(local_model, "_knows_gpus", lambda: True)
    monkeypatch.setattr(local_model, "_session", lambda device: Session())
    with pytest.raises(ConfigError, match="nvidia-smi"):
        local_model.load_model(Embedding(device="cuda"))
    loaded = local_model.load_model(Embedding(device="auto"))
    assert loaded.device.provider == CPU
    assert "runs on the processor" in caplog.text


def test_the_fused_graph_computes_what_the_published_one_does():
    content = local_model._content()
    published = onnxruntime.InferenceSession(content, providers=[CPU])
    fused = onnxruntime.InferenceSession(fused_model(content), providers=[CPU])
    random = np.random.default_rng(4)
    lengths = np.array([70, 64, 33, 9, 2], dtype=np.int32)
    positions = np.arange(70, dtype=np.int32)
    mask = positions < lengths[:, None]
    ids = np.where(mask, random.integers(1_000, 30_000, mask.shape), 0)
    before = {"input_ids": ids, "attention_mask": mask.astype(np.int64), "token_type_ids": np.zeros_like(ids)}
    now = {"input_ids": ids.astype(np.int32), "positions": positions, "lengths": lengths}
    expected, found = (
        np.einsum("wtd,wt->wd", session.run(None, inputs)[0], mask.astype(np.float32))
        for session, inputs in ((published, before), (fused, now))
    )
    for vectors in (expected, found):
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    # A thousandth of what half precision in the index rounds away.
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_what_is_no_model_is_refused():
    content = local_model._content()
    assert {tensor.dtype.name for tensor in read_tensors(content).values()} >= {"float32", "int8"}
    for broken in (b"", b"\x08\x07", content[:1000], b"\xff" * 40):
        with pytest.raises(ValueError):
            read_tensors(broken)


def test_a_graph_is_written_as_onnxruntime_reads_it():
    graph = Graph()
    table = graph.constant(np.arange(6, dtype=np.int64).reshape(3, 2))
    graph.node("Cast", graph.node("Gather", table, "rows", axis=0), name="found", to=1)
    model = graph.model(inputs={"rows": (np.int32, ("n",))}, output="found", dims=("n", 2), opsets={"": 17})
    session = onnxruntime.InferenceSession(model, providers=[CPU])
    (found,) = session.run(None, {"rows": np.array([2, 0], dtype=np.int32)})
    np.testing.assert_array_equal(found, np.array([[4, 5], [0, 1]], dtype=np.float32))
