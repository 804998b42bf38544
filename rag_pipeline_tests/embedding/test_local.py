"""The local model: the right tokens, sensible neighbours, and vectors that depend on nothing but their text."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from rag_pipeline.embedding import local, local_model, make_embedder, wordpiece
from rag_pipeline.embedding.local import DIMENSIONS, WINDOW_TOKENS, LocalEmbedder
from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import Embedding

SENTENCE = "Retries use exponential backoff with jitter, so that clients do not come back together. "


@pytest.fixture(scope="module")
def embedder() -> Iterator[LocalEmbedder]:
    made = LocalEmbedder(Embedding(threads=2))
    yield made
    made.close()


def embedded(embedder: LocalEmbedder, texts: Sequence[str]) -> np.ndarray:
    vectors = np.full((len(texts), DIMENSIONS), np.nan, dtype=np.float32)
    for batch in embedder.embed(texts):
        vectors[batch.indices] = batch.vectors
    return vectors


@pytest.mark.parametrize(
    ("text", "ids"),
    [  # from the model's published tokenizer.json
        ("Hello, World!", [7592, 1010, 2088, 999]),
        ("naïve café", [15743, 7668]),
        ("東京 is Tokyo", [1879, 1755, 2003, 5522]),
        ("os.path.join(a, 'c')", [9808, 1012, 4130, 1012, 3693, 1006, 1037, 1010, 1005, 1039, 1005, 1007]),
        ("emoji 😀 end", [7861, 29147, 2072, 100, 2203]),
        ("[MASK] ![x]", [103, 999, 1031, 1060, 1033]),
        ("a" * 101, [100]),
        ("\x00tab\there\u200b", [21628, 2182]),
        ("", []),
    ],
)
def test_the_tokens_are_those_of_the_published_tokenizer(text, ids):
    assert wordpiece.wordpiece().encode(text, add_special_tokens=False).ids == ids


def test_texts_that_mean_the_same_are_close(embedder):
    pairs = [
        ("How do I run the test suite?", "To execute all tests, call pytest in the project's root folder."),
        ("What happens when the rate limit is reached?", "Requests over the quota get status 429 and must wait."),
        ("How to connect to the database", "Set DATABASE_URL to the address of your PostgreSQL server."),
        ("Who may review a pull request?", "Every change needs an approval by a code owner before it is merged."),
    ]
    questions = np.stack([embedder.embed_query(question) for question, _ in pairs])
    answers = embedded(embedder, [answer for _, answer in pairs])
    assert (questions @ answers.T).argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_a_vector_does_not_depend_on_the_batch(embedder):
    texts = [SENTENCE * (1 + n % 4) + f"Number {n}." for n in range(24)] + ["", "x", "def f(): return 1"]
    together = embedded(embedder, texts)
    alone = np.stack([embedder.embed_query(text) for text in texts])
    np.testing.assert_allclose(together, alone, atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(embedded(embedder, texts[::-1])[::-1], together, atol=2e-6)


def test_every_text_comes_back_once_with_its_tokens(embedder, monkeypatch):
    monkeypatch.setattr(local, "_YIELD_TEXTS", 4)
    texts = [f"word {n}" for n in range(200)]
    batches = list(embedder.embed(texts))
    assert sorted(index for batch in batches for index in batch.indices) == list(range(200))
    assert len(batches) > 3
    marks = 2 * len(texts)
    assert sum(batch.tokens for batch in batches) == sum(embedder.count_tokens(texts)) + marks


def test_the_end_of_a_long_text_counts(embedder):
    long = SENTENCE * 40
    assert embedder.count_tokens([long])[0] > 2 * WINDOW_TOKENS
    ends = [long + "Bake the bread for forty minutes.", long + "The orchestra tuned its violins."]
    vectors = embedded(embedder, [SENTENCE, long, *ends])
    assert vectors[0] @ vectors[1] > 0.8
    assert abs(vectors[2] - vectors[3]).max() > 1e-3


def test_blank_texts_and_lone_surrogates_have_vectors(embedder):
    vectors = embedded(embedder, ["", " \n ", "lone \ud800 surrogate", "\x00"])
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(vectors[0], vectors[1], atol=2e-6)
    assert list(embedder.embed([])) == []


def test_time_in_the_model_is_wall_clock_time(embedder):
    before = embedder.model_seconds
    embedded(embedder, [SENTENCE] * 8)
    assert before < embedder.model_seconds


def test_it_can_be_used_again_after_close():
    embedder = LocalEmbedder(Embedding(threads=1))
    first = embedder.embed_query("again")
    embedder.close()
    embedder.close()
    np.testing.assert_array_equal(embedded(embedder, ["again"])[0], first)
    embedder.close()


def test_a_key_in_the_environment_changes_nothing_and_no_connection_is_made(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    embedder = make_embedder(Embedding(), environ={"OPENAI_API_KEY": "sk-real"})
    assert (embedder.provider, embedder.model, embedder.dimensions) == ("local", "all-MiniLM-L6-v2", 384)
    assert embedder.embed_query("hello").shape == (384,)
    embedder.close()


def test_another_model_or_length_is_refused_with_what_there_is():
    with pytest.raises(ConfigError, match="'all-MiniLM-L6-v2'"):
        make_embedder(Embedding(model="bge-small"), environ={})
    with pytest.raises(ConfigError, match="has 384"):
        make_embedder(Embedding(dimensions=128), environ={})


def test_a_changed_model_file_or_vocabulary_is_refused(monkeypatch, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"something else")
    monkeypatch.setattr(local_model, "_file", lambda: tmp_path / "model.onnx")
    with pytest.raises(ConfigError, match=r"model\.onnx has sha256 .* expected 8199be6f"):
        LocalEmbedder(Embedding()).embed_query("x")
    monkeypatch.setattr(wordpiece, "VOCABULARY_SHA256", "0" * 64)
    with pytest.raises(ConfigError, match=r"vocab\.txt has sha256 07eced37"):
        wordpiece._vocabulary()


def test_what_the_model_will_read_is_known_before(embedder):
    texts = ["", "Hello, World!", SENTENCE * 30, "lone \ud800 surrogate", "a b\tc", SENTENCE * 9]
    assert sum(embedder.input_tokens(texts)) == sum(batch.tokens for batch in embedder.embed(texts))
    for text in texts:
        assert embedder.input_tokens([text]) == [sum(batch.tokens for batch in embedder.embed([text]))]
