"""The reuse of known vectors: what is sent to the model, what is stored, and when."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.embedding import EmbeddedBatch, EmbeddingProgress, Text, embed_missing
from rag_pipeline.embedding.embedder import Vectors
from rag_pipeline.errors import PermanentError, TransientError
from rag_pipeline.model import text_hash
from rag_pipeline_tests.embedding.fake_service import DIMENSIONS, vector_of


class FakeEmbedder:
    """Answers in shuffled parts of at most three; refuses texts that start with `!`, breaks down at `BREAK`."""

    provider = "fake"
    model = "fake-8"
    recipe = "text/v1"
    dimensions: int | None = DIMENSIONS

    def __init__(self, *, seed: int = 0) -> None:
        self.sent: list[str] = []
        self.model_seconds = 0.0
        self._random = random.Random(seed)

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        self.sent += texts
        order = self._random.sample(range(len(texts)), len(texts))
        for start in range(0, len(order), 3):
            yield self._part(texts, order[start : start + 3])

    def _part(self, texts: Sequence[str], part: Sequence[int]) -> EmbeddedBatch:
        if any(texts[index] == "BREAK" for index in part):
            raise TransientError("the service is down")
        self.model_seconds += 1.0
        good = [index for index in part if not texts[index].startswith("!")]
        vectors = np.array([vector_of(texts[index]) for index in good], dtype=np.float32)
        refused = [(index, "refused") for index in part if index not in good]
        return EmbeddedBatch(indices=good, vectors=vectors, tokens=len(good), failures=refused)

    def embed_query(self, text: str) -> Vectors:
        return vector_of(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return [1] * len(texts)

    def close(self) -> None:
        pass


class MemoryVectors:
    """`KnownVectors` in a dictionary."""

    def __init__(self) -> None:
        self.rows: dict[UUID, Vectors] = {}
        self.asked: list[int] = []
        self.stored: list[UUID] = []

    def known(self, hashes: Sequence[UUID]) -> set[UUID]:
        self.asked.append(len(hashes))
        return self.rows.keys() & set(hashes)

    def store(self, hashes: Sequence[UUID], vectors: Vectors) -> int:
        assert vectors.shape == (len(hashes), DIMENSIONS)
        self.stored += hashes
        new = len(set(hashes) - self.rows.keys())
        self.rows |= dict(zip(hashes, vectors, strict=True))
        return new


def hashed(texts: Sequence[str]) -> Iterator[Text]:
    return (Text(text_hash(text), text) for text in texts)


texts_with_repeats = st.lists(st.sampled_from([f"text {n}" for n in range(30)] + ["!bad", "!worse"]), max_size=80)


@given(texts=texts_with_repeats, before=texts_with_repeats, buffer_texts=st.integers(1, 20), seed=st.integers(0, 5))
def test_each_text_is_embedded_once_and_a_known_one_never(texts, before, buffer_texts, seed):
    vectors, embedder = MemoryVectors(), FakeEmbedder(seed=seed)
    embed_missing(hashed(before), embedder=FakeEmbedder(), vectors=vectors)
    stored_before = set(vectors.rows)
    vectors.stored.clear()

    report = embed_missing(hashed(texts), embedder=embedder, vectors=vectors, buffer_texts=buffer_texts)

    assert len(embedder.sent) == len(set(embedder.sent))
    assert not {text_hash(text) for text in embedder.sent} & stored_before
    assert len(vectors.stored) == len(set(vectors.stored)) == report.embedded == report.tokens
    assert set(vectors.rows) - stored_before <= {text_hash(text) for text in texts}
    assert report.texts == len(texts) == report.embedded + report.reused + report.repeated + len(report.failures)
    assert dict(report.failures).keys() == {text_hash(text) for text in texts if text.startswith("!")}
    assert report.model_seconds == embedder.model_seconds


@given(texts=st.lists(st.text(max_size=5).filter(lambda text: text[:1] != "!"), max_size=40), seed=st.integers(0, 9))
def test_the_stored_vectors_do_not_depend_on_order_or_buffers(texts, seed):
    one, other = MemoryVectors(), MemoryVectors()
    embed_missing(hashed(texts), embedder=FakeEmbedder(), vectors=one)
    embed_missing(hashed(texts[::-1]), embedder=FakeEmbedder(seed=seed), vectors=other, buffer_texts=1 + seed)
    assert one.rows.keys() == other.rows.keys()
    for text in texts:
        np.testing.assert_array_equal(one.rows[text_hash(text)], vector_of(text))
        np.testing.assert_array_equal(other.rows[text_hash(text)], vector_of(text))


def test_a_second_run_asks_the_model_for_nothing():
    vectors, embedder = MemoryVectors(), FakeEmbedder()
    texts = [f"text {n}" for n in range(10)]
    embed_missing(hashed(texts), embedder=FakeEmbedder(), vectors=vectors)
    report = embed_missing(hashed(texts), embedder=embedder, vectors=vectors)
    assert (embedder.sent, report.reused, report.embedded, report.tokens) == ([], 10, 0, 0)


def test_what_was_embedded_before_a_breakdown_is_kept():
    vectors = MemoryVectors()
    texts = [f"text {n}" for n in range(20)] + ["BREAK"]
    with pytest.raises(TransientError):
        embed_missing(hashed(texts), embedder=FakeEmbedder(seed=1), vectors=vectors, buffer_texts=7)
    kept = len(vectors.rows)
    assert kept >= 14
    retry = FakeEmbedder()
    embed_missing(hashed(texts[:-1]), embedder=retry, vectors=vectors)
    assert len(retry.sent) == 20 - kept


def test_no_more_texts_are_held_than_the_buffer_allows():
    vectors, read = MemoryVectors(), 0

    def stream() -> Iterator[Text]:
        nonlocal read
        for text in hashed([f"text {n}" for n in range(100)]):
            read += 1
            assert read - len(vectors.rows) <= 10
            yield text

    embed_missing(stream(), embedder=FakeEmbedder(), vectors=vectors, buffer_texts=10)
    assert vectors.asked == [10] * 10


def test_progress_is_told_after_every_stored_part():
    seen: list[EmbeddingProgress] = []
    texts = [f"text {n}" for n in range(9)] + ["!bad"]
    embed_missing(hashed(texts), embedder=FakeEmbedder(), vectors=MemoryVectors(), on_progress=seen.append)
    assert [p.embedded + p.failed for p in seen] == [0, 3, 6, 9, 10]
    assert seen[-1].texts == 10
    assert seen[-1].failed == 1


@pytest.mark.parametrize("answers", [[0, 0], [0], [0, 1, 2], [0, 7]])
def test_an_embedder_that_loses_or_invents_texts_is_not_trusted(answers):
    class Careless(FakeEmbedder):
        def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
            yield EmbeddedBatch(indices=answers, vectors=np.ones((len(answers), DIMENSIONS), np.float32), tokens=0)

    with pytest.raises(PermanentError, match="fake/fake-8"):
        embed_missing(hashed(["a", "b"]), embedder=Careless(), vectors=MemoryVectors())
