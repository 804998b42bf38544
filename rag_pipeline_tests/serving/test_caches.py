"""What is remembered of answers: for whom, for how long, and until when."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rag_pipeline.answering.answerer import Question
from rag_pipeline.answering.language_model import Message
from rag_pipeline.index.changes import IndexState
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.serving.caches import Cache, Key, query_key, question_key, sources_key


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def state(changes: int = 1) -> IndexState:
    return IndexState(space_id=1, changes=changes, newest=changes, digest=str(changes))


def cache(*, most: int = 3, ttl_s: float = 60.0, watch: Watch | None = None, most_chars: int = 100) -> Cache[str]:
    return Cache(most=most, ttl_s=ttl_s, monotonic=watch or Watch(), size=len, most_chars=most_chars)


def key(name: object = "a", tenant: str = "acme") -> Key:
    return Key(tenant=tenant, asked=name)  # type: ignore[arg-type]


def test_what_was_put_is_there_in_the_same_state_alone():
    kept = cache()
    kept.put(key(), state(1), "one")
    assert kept.get(key(), state(1)) == "one"
    assert kept.get(key(), state(2)) is None
    assert kept.get(key(tenant="globex"), state(1)) is None


def test_another_state_of_a_tenant_takes_what_the_tenant_had_before_with_it():
    kept = cache(most=10)
    for name in "abc":
        kept.put(key(name), state(1), name)
    kept.put(key("other", "globex"), state(1), "theirs")
    kept.put(key("new"), state(2), "new")
    assert len(kept) == 2
    assert kept.get(key("other", "globex"), state(1)) == "theirs"


def test_what_is_too_old_is_gone():
    watch = Watch()
    kept = cache(watch=watch, ttl_s=10)
    kept.put(key(), state(), "one")
    watch.now = 9.9
    assert kept.get(key(), state()) == "one"
    watch.now = 10.0
    assert kept.get(key(), state()) is None


def test_the_least_recently_asked_makes_room():
    kept = cache(most=2)
    kept.put(key("a"), state(), "a")
    kept.put(key("b"), state(), "b")
    kept.get(key("a"), state())
    kept.put(key("c"), state(), "c")
    assert [kept.get(key(name), state()) for name in "abc"] == ["a", None, "c"]


def test_many_characters_make_room_too_and_what_is_larger_than_all_is_not_kept():
    kept = cache(most=10, most_chars=10)
    kept.put(key("a"), state(), "x" * 6)
    kept.put(key("b"), state(), "x" * 6)
    assert kept.get(key("a"), state()) is None
    kept.put(key("c"), state(), "x" * 11)
    assert kept.get(key("c"), state()) is None
    assert kept.get(key("b"), state()) == "x" * 6


def test_a_cache_of_none_keeps_nothing():
    kept = cache(most=0)
    kept.put(key(), state(), "one")
    assert kept.get(key(), state()) is None


def test_who_counts_is_told_of_each_look():
    told: list[bool] = []
    kept: Cache[str] = Cache(most=1, ttl_s=1, monotonic=Watch(), looked=told.append)
    kept.get(key(), state())
    kept.put(key(), state(), "one")
    kept.get(key(), state())
    assert told == [False, True]


class Remembering(RuleBasedStateMachine):
    """Whatever comes in whatever order, what is given back is what was put last for that key in that very state."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Watch()
        self.cache = cache(most=3, ttl_s=5, watch=self.watch, most_chars=12)
        self.put_last: dict[tuple[Key, IndexState], tuple[str, float]] = {}

    @rule(name=st.sampled_from("abcd"), tenant=st.sampled_from("xy"), at=st.integers(1, 3), text=st.text(max_size=8))
    def put(self, name: str, tenant: str, at: int, text: str) -> None:
        self.cache.put(key(name, tenant), state(at), text)
        self.put_last[key(name, tenant), state(at)] = text, self.watch.now

    @rule(name=st.sampled_from("abcd"), tenant=st.sampled_from("xy"), at=st.integers(1, 3))
    def get(self, name: str, tenant: str, at: int) -> None:
        found = self.cache.get(key(name, tenant), state(at))
        if found is not None:
            text, when = self.put_last[key(name, tenant), state(at)]
            assert found == text and self.watch.now - when < 5

    @rule(seconds=st.floats(0, 3))
    def wait(self, seconds: float) -> None:
        self.watch.now += seconds

    @invariant()
    def is_bounded(self) -> None:
        assert len(self.cache) <= 3


TestRemembering = Remembering.TestCase
# Drawing the steps takes long on a busy machine, which says nothing of the caches.
TestRemembering.settings = settings(
    max_examples=15, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

NAMES = st.sampled_from(["acme", "globex", "user:ada", "user:bob", "docs"])
OPTIONAL = st.none() | NAMES
QUERIES = st.builds(
    SearchQuery,
    text=NAMES, tenant=NAMES, scopes=st.lists(NAMES, max_size=2).map(tuple), k=st.integers(1, 2),
    legs=st.sampled_from(["fused", "lexical"]), min_score=st.sampled_from([None, 0.0, 1.0]), repository=OPTIONAL,
    source_type=OPTIONAL, language=OPTIONAL, path_prefix=OPTIONAL, author=OPTIONAL,
    labels=st.lists(NAMES, max_size=1).map(tuple), state=OPTIONAL,
    updated_from=st.sampled_from([None, date(2024, 1, 1)]), updated_to=st.sampled_from([None, date(2024, 1, 1)]),
    metadata=st.dictionaries(NAMES, st.sampled_from([1, True, "1", None, [1], ["1"]]), max_size=1),
    rerank=st.sampled_from([None, True, False]), diversity=st.sampled_from([None, 0.0, 1.0]), stitch=st.booleans(),
    linked=st.booleans(),
)  # fmt: skip


def exact(query: SearchQuery) -> str:
    """All that a query says; of scopes, which."""
    return repr(replace(query, scopes=tuple(sorted(set(query.scopes)))))


@settings(max_examples=40)
@given(QUERIES, QUERIES)
def test_two_searches_share_a_key_only_where_all_that_they_say_is_the_same(one, other):
    assert (query_key(one, settings="s") == query_key(other, settings="s")) == (exact(one) == exact(other))


@settings(max_examples=40)
@given(QUERIES, st.data())
def test_a_change_of_any_part_is_another_key(query, data):
    other = data.draw(QUERIES)
    part = data.draw(st.sampled_from(sorted(SearchQuery.__dataclass_fields__)))
    changed = replace(query, **{part: getattr(other, part)})
    same = exact(query) == exact(changed)
    assert (query_key(query, settings="s") == query_key(changed, settings="s")) == same


@settings(max_examples=40)
@given(QUERIES, st.lists(NAMES, max_size=3), st.lists(NAMES, max_size=3))
def test_nobody_shares_a_key_with_those_who_see_more_or_less(query, mine, theirs):
    one, other = replace(query, scopes=tuple(mine)), replace(query, scopes=tuple(theirs))
    same = set(mine) == set(theirs)
    assert (query_key(one, settings="s") == query_key(other, settings="s")) == same
    assert (sources_key("acme", mine) == sources_key("acme", theirs)) == same
    asked = [question_key(Question(query=q), settings="s") for q in (one, other)]
    assert (asked[0] == asked[1]) == same


@pytest.mark.parametrize("other", ["s", "t"])
def test_other_settings_and_another_conversation_are_another_key(other):
    query = SearchQuery(text="q", tenant="acme")
    assert (query_key(query, settings="s") == query_key(query, settings=other)) == (other == "s")
    turns = (Message(role="user", content="one"), Message(role="assistant", content="two"))
    asked = question_key(Question(query=query, history=turns), settings="s")
    assert asked == question_key(Question(query=query, history=list(turns)), settings="s")
    assert asked != question_key(Question(query=query, history=turns[:1]), settings="s")
    assert asked != question_key(Question(query=query), settings="s")
    assert asked != question_key(Question(query=query, history=turns), settings="t")
