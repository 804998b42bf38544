"""Filters keep what they say and nothing else, in every leg, and k hits come back whenever k exist."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.errors import ConfigError, UnknownSource
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.writer import Entry
from rag_pipeline.model import EmbeddingSpace, SearchHit
from rag_pipeline.retrieval import search as search_module
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.databases import empty
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write

VECTOR = np.ones(8, dtype=np.float32)

ITEM = st.fixed_dictionaries(
    {
        "repository": st.sampled_from(["api", "web"]),
        "source_type": st.sampled_from(["docs", "github_issue"]),
        "language": st.sampled_from([None, "python"]),
        "at": st.sampled_from([1, 30, 60]),
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "author": st.sampled_from(["ada", "bob"]),
                "state": st.sampled_from(["open", "merged"]),
                "labels": st.lists(st.sampled_from(["bug", "docs", "ci"]), unique=True),
                "milestone": st.sampled_from(["3.0", 3, None]),
            },
        ),
    }
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "repository": st.sampled_from(["api", "web"]),
        "source_type": st.sampled_from(["docs", "github_issue"]),
        "language": st.just("python"),
        "path_prefix": st.sampled_from(["1", ""]),
        "author": st.sampled_from(["ada", "bob"]),
        "labels": st.sampled_from([("bug",), ("bug", "ci"), ("none",)]),
        "state": st.sampled_from(["open", "merged"]),
        "updated_from": st.sampled_from([date(2024, 5, 1), date(2024, 5, 2)]),
        "updated_to": st.sampled_from([date(2024, 5, 2), date(2024, 5, 3)]),
        "metadata": st.sampled_from([{"milestone": "3.0"}, {"milestone": 3}, {"milestone": None}]),
    },
)


def keeps(made: Entry, where: dict[str, Any]) -> bool:
    """What the filters mean, said once more."""
    document = made.document
    known = dict(document.metadata)
    day = document.source_updated_at.date()
    wanted = [
        ("repository", document.repository), ("source_type", document.source_type), ("language", document.language),
        ("author", known.get("author")), ("state", known.get("state")),
    ]  # fmt: skip
    return (
        all(name not in where or where[name] == value for name, value in wanted)
        and str(document.path).startswith(where.get("path_prefix", ""))
        and set(where.get("labels", ())) <= set(known.get("labels", ()))
        and all(name in known and known[name] == value for name, value in where.get("metadata", {}).items())
        and where.get("updated_from", day) <= day <= where.get("updated_to", day)
    )


def fill(connection: Connection, entries: list[Entry]) -> EmbeddingSpace:
    space = space_of(connection)
    rng = np.random.default_rng(1)
    store_vectors(connection, space, {c.text: rng.random(8) for e in entries for c in e.chunks})
    write(connection, *entries)
    return space


def ask(connection: Connection, space: EmbeddingSpace, **where: Any) -> list[SearchHit]:
    query = SearchQuery(text="install", tenant="acme", **where)
    return search(connection, query, space=space, vector=VECTOR, settings=Retrieval())


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(items=st.lists(ITEM, min_size=1, max_size=14), where=FILTERS, exact_up_to=st.sampled_from([10_000, 0]))
def test_every_leg_finds_what_the_filters_keep(items, where, exact_up_to, reused_database):
    empty(reused_database)
    entries = [entry(f"{n}.md", f"install part {n}", **item) for n, item in enumerate(items)]
    expected = {made.document.document_id for made in entries if keeps(made, where)}
    with connected(reused_database) as connection, pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "EXACT_UP_TO", exact_up_to)
        space = fill(connection, entries)
        for legs in ("lexical", "vector", "fused"):
            if not all(is_known(entries, name, value) for name, value in where.items()):
                with pytest.raises(UnknownSource):
                    ask(connection, space, legs=legs, k=200, **where)
                continue
            assert {hit.document_id for hit in ask(connection, space, legs=legs, k=200, **where)} == expected
            assert len(ask(connection, space, legs=legs, k=3, **where)) == min(3, len(expected))


def is_known(entries, name, value):
    """A repository or a type that no living document has is an error."""
    if name not in ("repository", "source_type"):
        return True
    return any(getattr(made.document, name) == value and not made.document.deleted for made in entries)


def test_k_hits_come_back_however_far_down_the_matching_ones_are(connection, monkeypatch):
    monkeypatch.setattr(search_module, "EXACT_UP_TO", 100)
    many = [entry(f"{n}.md", *(f"install install {n} {part}" for part in range(20))) for n in range(40)]
    # Long and with one word of the question, so that all others are ranked before them.
    few = entry("few.md", *(f"{'word ' * 40} install {part}" for part in range(150)), repository="far")
    space = fill(connection, [*many, few])
    for legs in ("lexical", "vector", "fused"):
        hits = ask(connection, space, legs=legs, k=120, repository="far")
        assert len(hits) == 120
        assert {hit.repository for hit in hits} == {"far"}


def test_hits_below_the_least_score_are_left_out(connection):
    space = fill(connection, [entry("a.md", "install", "deploy"), entry("b.md", "monitor")])
    hits = ask(connection, space, k=10)
    least = hits[0].score
    assert [hit.text for hit in ask(connection, space, k=10, min_score=least)] == [hits[0].text]
    assert ask(connection, space, k=10, min_score=2.0) == []


def test_a_range_of_days_that_is_none_is_refused(connection):
    with pytest.raises(ConfigError, match="no day is from 2024-05-02 to 2024-05-01"):
        ask(connection, space_of(connection), updated_from=date(2024, 5, 2), updated_to=date(2024, 5, 1))
