"""Late interaction with the real local model: the arithmetic, and that it corrects an order and no more."""

from __future__ import annotations

import numpy as np
import pytest

from rag_pipeline.embedding.local import DIMENSIONS, LocalEmbedder, TokenVectors
from rag_pipeline.embedding.wordpiece import wordpiece
from rag_pipeline.errors import ConfigError
from rag_pipeline.retrieval.rerank import make_reranker, reranked
from rag_pipeline.retrieval.rerank.maxsim import max_similarity
from rag_pipeline.settings import Embedding, Rerank
from rag_pipeline_tests.retrieval.hits import hit, ranked


def tokens(ids: list[int], *rows: list[float]) -> TokenVectors:
    return TokenVectors(ids=ids, vectors=np.array(rows, dtype=np.float32).reshape(len(ids), 2))


def test_each_token_of_the_question_counts_its_nearest_and_rare_ones_count_more():
    asked = tokens([1, 2], [1, 0], [0, 1])
    common, both = tokens([1], [1, 0]), tokens([1, 2], [1, 0], [0, 1])
    weights = np.log1p(np.array([0.5 / 2.5, 1.5 / 1.5]))
    expected = [weights[0] / weights.sum(), 1.0]
    np.testing.assert_allclose(max_similarity(asked, [common, both]), expected)


def test_what_has_no_tokens_scores_nothing():
    assert max_similarity(tokens([]), [tokens([1], [1, 0])]).tolist() == [0.0]
    assert max_similarity(tokens([1], [1, 0]), [tokens([])]).tolist() == [0.0]


def test_token_vectors_are_those_of_the_model_without_its_marks():
    embedder = LocalEmbedder(Embedding(threads=2))
    texts = ["Deploy the service with helm", "", "word " * 600]
    found = embedder.token_vectors(texts)
    encoded = [wordpiece().encode(text, add_special_tokens=False).ids for text in texts]
    assert list(found[0].ids) == encoded[0]
    assert sorted(found[2].ids) == sorted(encoded[2])
    for vectors in found:
        assert vectors.vectors.shape == (len(vectors.ids), DIMENSIONS)
        np.testing.assert_allclose(np.linalg.norm(vectors.vectors, axis=1), 1, atol=1e-5)
    alone = embedder.token_vectors(texts[:1])[0].vectors
    np.testing.assert_allclose(found[0].vectors, alone, atol=1e-4)
    embedder.close()


def test_a_passage_that_has_the_words_rises_over_an_equal_one_that_has_not():
    hits = [
        hit("The weather in Paris is mild in spring.", rank=1, score=0.5),
        hit("Rotate the signing key with the rotate-key command.", rank=2, document="b.md", score=0.5),
    ]
    reranker = make_reranker(Rerank(provider="local-maxsim"), environ={})
    found, problem = reranked("How do I rotate the signing key?", hits, reranker, 30)
    assert problem is None
    assert [h.document_id for h in found] == [hits[1].document_id, hits[0].document_id]
    reranker.close()
    reranker.close()


def test_the_best_hit_by_far_stays_the_best():
    hits = ranked("The weather in Paris.", "Rotate the key.", "Rotate the signing key.")
    far = [hit(h.text, rank=h.rank, score=s) for h, s in zip(hits, (9.0, 1.0, 0.5), strict=True)]
    reranker = make_reranker(Rerank(provider="local-maxsim"), environ={})
    assert reranked("rotate the signing key", far, reranker, 30)[0][0].text == far[0].text
    assert reranker.scores("", far) == pytest.approx([1.0, 0.5 / 8.5, 0.0])
    reranker.close()


def test_it_has_one_model():
    with pytest.raises(ConfigError, match=r"remove rerank\.model"):
        make_reranker(Rerank(provider="local-maxsim", model="colbert"), environ={})
