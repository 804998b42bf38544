"""Cross-encoders, with stand-ins for their libraries: these need a model hub to load anything real."""

from __future__ import annotations

import importlib.machinery
import sys
import types

import numpy as np
import pytest

from rag_pipeline.errors import ConfigError, PermanentError
from rag_pipeline.retrieval.rerank import cross_encoder, make_reranker
from rag_pipeline.settings import Rerank
from rag_pipeline_tests.retrieval.hits import ranked

SENTENCE_TRANSFORMERS = {"sentence_transformers"}
FASTEMBED = {"fastembed"}


class FakeCrossEncoder:
    def __init__(self, name: str) -> None:
        if name == "unknown":
            raise OSError("not found on the hub")
        self._labels = 3 if name == "classifier" else 1

    def predict(self, pairs: list[tuple[str, str]], *, batch_size: int, show_progress_bar: bool) -> np.ndarray:
        scores = np.array([len(passage) - len(question) for question, passage in pairs], dtype=np.float32)
        return scores if self._labels == 1 else np.stack([scores] * self._labels, axis=1)


class FakeTextCrossEncoder:
    def __init__(self, name: str, *, threads: int | None) -> None:
        if name == "unknown":
            raise ValueError("model is not supported")
        self.threads = threads

    def rerank(self, question: str, passages: list[str], *, batch_size: int):
        return (float(len(passage) - len(question)) for passage in passages)


@pytest.fixture(
    params=[SENTENCE_TRANSFORMERS, FASTEMBED, SENTENCE_TRANSFORMERS | FASTEMBED],
    ids=lambda names: "+".join(sorted(names)),
)
def installed(request, monkeypatch) -> set[str]:
    """The libraries that are there."""
    modules = {
        "sentence_transformers": {"CrossEncoder": FakeCrossEncoder},
        "fastembed": {},
        "fastembed.rerank": {},
        "fastembed.rerank.cross_encoder": {"TextCrossEncoder": FakeTextCrossEncoder},
    }
    for name, members in modules.items():
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(cross_encoder, "find_spec", lambda name: name in request.param or None)
    return request.param


def test_a_missing_extra_names_what_to_install(monkeypatch):
    monkeypatch.setattr(cross_encoder, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[sentence-transformers\]'.* fastembed"):
        make_reranker(Rerank(provider="cross-encoder"), environ={})


def test_question_and_passage_are_scored_together(installed):
    reranker = make_reranker(Rerank(provider="cross-encoder", threads=2), environ={})
    library = "sentence-transformers" if "sentence_transformers" in installed else "fastembed"
    assert reranker.name.startswith(f"{library} ")
    assert "MiniLM" in reranker.name
    hits = ranked("aaa", "aaaaa", "a", title="")
    assert reranker.scores("qq", hits) == [1.0, 3.0, -1.0]
    reranker.close()
    assert reranker.scores("qq", hits) == [1.0, 3.0, -1.0]


def test_a_model_that_cannot_be_loaded_is_named(installed):
    reranker = make_reranker(Rerank(provider="cross-encoder", model="unknown"), environ={})
    with pytest.raises(ConfigError, match=r"cannot load rerank\.model 'unknown'.*check the name"):
        reranker.scores("q", ranked("a", "b"))


def test_a_model_that_gives_several_numbers_a_passage_is_no_reranker(monkeypatch):
    module = types.ModuleType("sentence_transformers")
    vars(module).update({"CrossEncoder": FakeCrossEncoder})
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr(cross_encoder, "find_spec", lambda _: True)
    reranker = make_reranker(Rerank(provider="cross-encoder", model="classifier"), environ={})
    with pytest.raises(PermanentError, match="6 numbers for 2 passages"):
        reranker.scores("q", ranked("a", "b"))
