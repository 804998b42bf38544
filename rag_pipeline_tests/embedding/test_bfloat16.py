"""The local model in bfloat16: where that is chosen, and that its vectors are as good as those of float32."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import numpy as np
import pytest
from numpy.typing import NDArray

from rag_pipeline.embedding import bfloat16, local_model, refusal
from rag_pipeline.embedding.local import QUANTISED, LocalEmbedder
from rag_pipeline.embedding.telemetry import without
from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.embedding.test_local import embedded

INT8 = Embedding(model=QUANTISED)
DOCS = Path(__file__).resolve().parents[2] / "docs"
needs_int8 = pytest.mark.skipif(
    not bfloat16.multiplies_int8(), reason="this processor does not make the quantised model's vectors"
)
needs_it = pytest.mark.skipif(not bfloat16.is_usable(), reason="this processor does not multiply in bfloat16")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Paragraphs of our own docs, of all lengths."""
    found = [part for page in sorted(DOCS.glob("*.md")) for part in page.read_text("utf-8").split("\n\n")]
    return [part for part in dict.fromkeys(found) if len(part) > 80][:400]


@pytest.mark.parametrize(
    ("flags", "usable"),
    [
        ("fpu avx512f amx_bf16 amx_tile", True),
        ("fpu avx512f avx512_bf16", True),
        ("fpu amx_bf16_like", False),
        ("fpu avx512f avx512_vnni", False),
    ],
)
def test_it_is_for_processors_that_say_so(flags: str, usable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: amx_bf16\nflags\t\t: {flags}\n")
    monkeypatch.setattr(bfloat16, "find_spec", lambda name: object())
    assert bfloat16.is_usable(tmp_path / "cpuinfo") is usable
    assert not bfloat16.is_usable(tmp_path / "none")
    monkeypatch.setattr(bfloat16, "find_spec", lambda name: None)
    assert not bfloat16.is_usable(tmp_path / "cpuinfo")


@pytest.mark.parametrize(
    ("flags", "multiplies"),
    [
        ("fpu avx512_bf16 avx512_vnni", True),
        ("fpu avx512_vnni", False),
        ("fpu avx_vnni", False),
        ("fpu avx512_bf16", False),
        ("avx512_bf16 avx512_vnni amx_bf16 amx_int8", False),
    ],
)
def test_int8_is_for_processors_that_say_so(
    flags: str, multiplies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "cpuinfo").write_text(f"flags\t\t: {flags}\n")
    monkeypatch.setattr(bfloat16, "find_spec", lambda name: object())
    assert bfloat16.multiplies_int8(tmp_path / "cpuinfo") is multiplies


def test_batches_are_large_only_where_whole_matrices_are_multiplied_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bfloat16, "is_usable", lambda: True)
    monkeypatch.setattr(bfloat16, "compiled", lambda model, *, threads, int8: Compiled())
    sizes = []
    for matrices in (True, False):
        monkeypatch.setattr(bfloat16, "multiplies_matrices", lambda whole=matrices: whole)
        sizes.append(local_model.load_model(Embedding(device="cpu", threads=1)).device.batch_tokens)
    assert sizes == [1024, 512]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (INT8, "needs Linux on a processor with .* use all-MiniLM-L6-v2, which has a space of its own"),
        (INT8.model_copy(update={"device": "cuda"}), r"remove embedding\.device"),
        (INT8.model_copy(update={"precision": "float32"}), r"remove embedding\.precision"),
    ],
)
def test_the_quantised_model_runs_as_it_is_or_not_at_all(
    settings: Embedding, said: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bfloat16, "multiplies_int8", lambda: False)
    with pytest.raises(ConfigError, match=said):
        local_model.load_model(settings)
    assert refusal(settings) is not None


def test_nothing_speaks_against_what_runs_here_or_elsewhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bfloat16, "multiplies_int8", lambda: True)
    for settings in (INT8, Embedding(), Embedding(provider="openai", model="of-theirs-int8")):
        assert refusal(settings) is None


def test_where_openvino_does_not_work_the_quantised_model_is_refused(monkeypatch: pytest.MonkeyPatch):
    def fails(file: Path, *, threads: int, int8: bool) -> None:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(bfloat16, "multiplies_int8", lambda: True)
    monkeypatch.setattr(bfloat16, "compiled", fails)
    with pytest.raises(ConfigError, match=r"OpenVINO cannot run all-MiniLM-L6-v2-int8 here.*no such kernel"):
        local_model.load_model(INT8)


@pytest.mark.parametrize("usable", [True, False])
def test_float32_is_computed_where_it_is_asked_for_and_where_there_is_nothing_else(
    usable: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bfloat16, "is_usable", lambda: usable)
    asked = Embedding(precision="float32" if usable else "auto", device="cpu", threads=1)
    assert isinstance(local_model.load_model(asked).session, local_model.OnnxSession)


@pytest.mark.parametrize("error", [ImportError("libtbb.so.12"), RuntimeError("Exception from src/inference")])
def test_where_openvino_does_not_work_float32_does_and_says_so(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fails(file: Path, *, threads: int, int8: bool) -> None:
        raise error

    monkeypatch.setattr(bfloat16, "is_usable", lambda: True)
    monkeypatch.setattr(bfloat16, "compiled", fails)
    loaded = local_model.load_model(Embedding(device="cpu", threads=1))
    assert isinstance(loaded.session, local_model.OnnxSession)
    assert str(error) in caplog.text


class Compiled:
    """What OpenVINO makes of a model file: notes who infers, and how many at once; or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.threads: list[str] = []
        self.done = self.at_once = 0

    def create_infer_request(self) -> Self:
        return self

    def infer(self, inputs: Mapping[str, NDArray[np.int64]], *, share_outputs: bool) -> dict[str, NDArray[np.float32]]:
        assert share_outputs
        if self.error is not None:
            raise self.error
        self.threads.append(threading.current_thread().name)
        self.at_once = max(self.at_once, len(self.threads) - self.done)
        time.sleep(0.02)
        self.done += 1
        return {"last_hidden_state": np.zeros((*inputs["input_ids"].shape, 384), dtype=np.float32)}


def test_the_first_inference_is_made_while_the_model_is_loaded_and_nobody_else_is_at_it(
    monkeypatch: pytest.MonkeyPatch,
):
    # OpenVINO hangs where the first two inferences of a process are made at the same time.
    compiled = Compiled()
    monkeypatch.setattr(bfloat16, "compiled", lambda model, *, threads, int8: compiled)
    with ThreadPoolExecutor(4, thread_name_prefix="loads") as threads:
        sessions = list(threads.map(lambda _: bfloat16.Bfloat16Session(DOCS, threads=2), range(4)))
    assert len(compiled.threads) == 4 and all(name.startswith("loads") for name in compiled.threads)
    assert compiled.at_once == 1
    assert sessions[0].token_vectors(np.ones((2, 3), np.int32), np.full(2, 3, np.int32)).shape == (2, 3, 384)


def test_a_model_that_compiles_and_does_not_run_is_found_out_when_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(bfloat16, "is_usable", lambda: True)
    monkeypatch.setattr(bfloat16, "compiled", lambda model, *, threads, int8: Compiled(RuntimeError("no such kernel")))
    loaded = local_model.load_model(Embedding(device="cpu", threads=1))
    assert isinstance(loaded.session, local_model.OnnxSession)
    assert "no such kernel" in caplog.text


def test_a_module_that_is_kept_away_is_said_to_be_missing_and_nobody_loses_it():
    assert "wave" not in sys.modules
    with without("wave"), pytest.raises(ImportError):
        import wave
    import wave

    with without("wave"):
        import wave as kept
    assert kept is wave is sys.modules["wave"]


_LET_GO = """
import threading
from rag_pipeline.documents.redaction import redact
from rag_pipeline.embedding.local_model import load_model
from rag_pipeline.settings import Embedding

held = [load_model(Embedding(device="cpu", threads=2))]
other = threading.Thread(target=held.clear)
other.start()
other.join()
for number in range(200):
    redact("password = 'xkfj3984fjJHF93'\\n" * 500 + str(number))
print("alive")
"""


@needs_it
def test_a_model_let_go_of_in_another_thread_takes_the_process_with_it_in_no_later_signal():
    # The engine of the secrets' rules, written in Go, sends such signals to its threads.
    done = subprocess.run([sys.executable, "-c", _LET_GO], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@pytest.mark.parametrize(
    ("rounded", "cosine", "nearest"),
    [
        pytest.param(Embedding(), 0.9999, 0.97, marks=needs_it, id="bfloat16"),
        # What a requantised model is asked for.
        pytest.param(INT8, 0.998, 0.95, marks=needs_int8, id="int8"),
    ],
)
def test_its_vectors_are_those_of_float32_and_so_are_their_neighbours(
    rounded: Embedding, cosine: float, nearest: float, texts: list[str]
):
    exact, other = LocalEmbedder(Embedding(precision="float32")), LocalEmbedder(rounded)
    wanted, found = embedded(exact, texts), embedded(other, texts)
    assert (wanted * found).sum(axis=1).min() > cosine
    # Questions in float32, as on another machine, among texts in bfloat16; those of int8 have a space of their own.
    questions = found if rounded.model == QUANTISED else wanted
    of_each = (np.argsort(-(q @ d.T), axis=1)[:, :10] for q, d in ((wanted, wanted), (questions, found)))
    shared = [len(set(a) & set(b)) for a, b in zip(*of_each, strict=True)]
    assert np.mean(shared) / 10 > nearest
    for embedder in (exact, other):
        embedder.close()


@pytest.mark.parametrize(
    "settings",
    [pytest.param(Embedding(), marks=needs_it, id="bfloat16"), pytest.param(INT8, marks=needs_int8, id="int8")],
)
def test_a_vector_depends_on_its_text_alone_to_the_last_bit(settings: Embedding, texts: list[str]):
    embedder = LocalEmbedder(settings.model_copy(update={"threads": 2}))
    some = [text for text in [*texts[::5], "", "x"] if embedder.count_tokens([text])[0] < 250]
    together = embedded(embedder, some)
    np.testing.assert_array_equal(embedded(embedder, some[::-1])[::-1], together)
    np.testing.assert_array_equal(np.stack([embedder.embed_query(text) for text in some]), together)
    again = LocalEmbedder(settings.model_copy(update={"threads": 1}))
    np.testing.assert_array_equal(embedded(again, some), together)
    for used in (embedder, again):
        used.close()
