"""The optional embedders, with stand-ins for their libraries: these need a model hub to load anything real."""

from __future__ import annotations

import importlib.machinery
import sys
import types

import numpy as np
import pytest

from rag_pipeline.embedding import hub, make_embedder
from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.embedding.fake_service import vector_of


class FakeSentenceTransformer:
    def __init__(self, name: str, *, truncate_dim: int | None) -> None:
        if name == "unknown":
            raise OSError("not found on the hub")
        self._dimensions = truncate_dim or 8

    def encode_document(self, texts: list[str], **_: object) -> np.ndarray:
        return np.stack([vector_of(f"document: {text}", self._dimensions) for text in texts])

    def encode_query(self, texts: list[str], **_: object) -> np.ndarray:
        return np.stack([vector_of(f"query: {text}", self._dimensions) for text in texts])


class FakeTextEmbedding:
    def __init__(self, name: str, *, threads: int | None) -> None:
        self.name, self.threads = name, threads

    def passage_embed(self, texts: list[str], **_: object):
        return (vector_of(f"document: {text}") for text in texts)

    def query_embed(self, text: str):
        return iter([vector_of(f"query: {text}")])


@pytest.fixture
def libraries(monkeypatch):
    for name, members in {
        "sentence_transformers": {"SentenceTransformer": FakeSentenceTransformer},
        "fastembed": {"TextEmbedding": FakeTextEmbedding},
    }.items():
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize("provider", ["sentence-transformers", "fastembed"])
def test_a_missing_extra_names_what_to_install(provider, monkeypatch):
    monkeypatch.setattr(hub, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=rf"pip install -e '\.\[{provider}\]'"):
        make_embedder(Embedding(provider=provider, model="m"), environ={})


@pytest.mark.parametrize("provider", ["sentence-transformers", "fastembed"])
def test_documents_and_questions_take_their_own_forms(provider, libraries):
    embedder = make_embedder(Embedding(provider=provider, model="m"), environ={})
    assert embedder.dimensions is None
    texts = [f"text {'x' * n}" for n in range(70)]
    batches = list(embedder.embed(texts))
    assert len(batches) == 2
    for batch in batches:
        for index, vector in zip(batch.indices, batch.vectors, strict=True):
            np.testing.assert_array_equal(vector, vector_of(f"document: {texts[index]}"))
    np.testing.assert_array_equal(embedder.embed_query("q"), vector_of("query: q"))
    assert embedder.dimensions == 8
    embedder.close()


def test_dimensions_and_model_names_are_checked(libraries):
    with pytest.raises(ConfigError, match="cannot shorten"):
        make_embedder(Embedding(provider="fastembed", model="m", dimensions=4), environ={})
    short = make_embedder(Embedding(provider="sentence-transformers", model="m", dimensions=4), environ={})
    assert short.embed_query("q").shape == (4,)
    unknown = make_embedder(Embedding(provider="sentence-transformers", model="unknown"), environ={})
    with pytest.raises(ConfigError, match=r"cannot load embedding\.model 'unknown'"):
        unknown.embed_query("q")
