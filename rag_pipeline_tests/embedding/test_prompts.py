"""Words around what is embedded: they reach the model, and make another space."""

from __future__ import annotations

import numpy as np

from rag_pipeline.embedding import make_embedder
from rag_pipeline.settings import Embedding

PLAIN = Embedding(threads=1)
PROMPTED = Embedding(threads=1, passage_prefix="passage: ", query_prefix="query: ")


def test_prefixes_are_embedded_with_the_text():
    plain, prompted = make_embedder(PLAIN, environ={}), make_embedder(PROMPTED, environ={})
    (expected,) = plain.embed(["passage: a cat"])
    (found,) = prompted.embed(["a cat"])
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    np.testing.assert_array_equal(prompted.embed_query("a cat"), plain.embed_query("query: a cat"))
    assert prompted.count_tokens(["a cat"]) == [2]
    prompted.close()
    plain.close()


def test_each_recipe_is_a_space_of_its_own():
    others = [Embedding(threads=1, context=context) for context in ("none", "headings")]
    recipes = {make_embedder(settings, environ={}).recipe for settings in (PLAIN, PROMPTED, *others)}
    assert len(recipes) == 4
    assert make_embedder(PLAIN, environ={}).recipe == make_embedder(Embedding(threads=2), environ={}).recipe
