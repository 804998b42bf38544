"""Budgets: what is sent never costs more than is left, and what was sent is on the right account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.embedding import EmbeddedBatch, Spending, Text, embed_missing
from rag_pipeline.embedding.spending import Wanted, rooms, shares
from rag_pipeline.errors import BudgetExceeded, ConfigError, TransientError
from rag_pipeline.model import Spent, text_hash
from rag_pipeline.settings import Limits, usd
from rag_pipeline_tests.embedding.test_reuse import FakeEmbedder, MemoryVectors


class MemoryLedger:
    """`Ledger` in a dictionary, of one run in one month."""

    def __init__(self, *, price: float = 0.0, month: int = 0) -> None:
        self.price = price
        self.earlier = month
        self.tokens: Counter[str] = Counter()
        self.aside: Counter[str] = Counter()
        self.requests = 0
        self.locked = False

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        self.locked = True
        yield
        self.locked = False

    def spent(self) -> tuple[Spent, Spent]:
        assert self.locked
        own = self.tokens.total() + self.aside.total()
        return self._spent(own), self._spent(own + self.earlier)

    def set_aside(self, tokens: Mapping[str, int]) -> None:
        self.aside.update(tokens)

    def book(self, tokens: Mapping[str, int], *, released: Mapping[str, int], requests: int, seconds: float) -> None:
        assert all(self.aside[name] >= count for name, count in released.items())
        self.tokens.update(tokens)
        self.aside.subtract(released)
        self.requests += requests

    def _spent(self, tokens: int) -> Spent:
        return Spent(tokens=tokens, usd=usd(tokens, self.price))


class LengthEmbedder(FakeEmbedder):
    """A text is as many tokens as it has characters."""

    def _part(self, texts: Sequence[str], part: Sequence[int]) -> EmbeddedBatch:
        found = super()._part(texts, part)
        tokens = sum(len(texts[index]) for index in found.indices)
        return EmbeddedBatch(indices=found.indices, vectors=found.vectors, tokens=tokens, failures=found.failures)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


class AheadEmbedder(LengthEmbedder):
    """Reads texts as a stream, some of them ahead, and answers one at a time."""

    def __init__(self, *, ahead: int, charged: int = 1) -> None:
        super().__init__()
        self._ahead = ahead
        self._charged = charged

    def embed_stream(self, texts: Iterable[str]) -> Iterator[EmbeddedBatch]:
        waiting = enumerate(texts)
        held: list[tuple[int, str]] = []
        while True:
            held += islice(waiting, self._ahead - len(held))
            if not held:
                return
            index, text = held.pop(0)
            self.sent.append(text)
            part = self._part([text], [0])
            yield EmbeddedBatch(indices=[index], vectors=part.vectors, tokens=self._charged * part.tokens)


def spending(ledger: MemoryLedger, *, price: float | None = 0.0, **limits: float) -> Spending:
    """The account of tenant `acme`."""
    return Spending(
        tenant="acme", model="large", limits=Limits.model_validate(limits), price=price, ledger=ledger
    )  # fmt: skip


def of(texts: Sequence[str], repository: str = "one") -> list[Text]:
    return [Text(text_hash(text), text, repository) for text in texts]


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=40), limit=st.integers(0, 400), spent=st.integers(0, 100),
    buffer=st.integers(1, 50), ahead=st.integers(0, 30),
)  # fmt: skip
def test_no_token_more_than_the_budget_is_sent_and_no_text_fewer_than_fit(lengths, limit, spent, buffer, ahead):
    texts = [f"{number:02}"[:length].ljust(length, "x") + f"#{number}" for number, length in enumerate(lengths)]
    embedder = AheadEmbedder(ahead=ahead) if ahead else LengthEmbedder()
    ledger, vectors = MemoryLedger(month=spent), MemoryVectors()
    needed = sum(map(len, texts))
    account = spending(ledger, month_tokens=limit)
    try:
        embed_missing(of(texts), embedder=embedder, vectors=vectors, spending=account, buffer_texts=buffer)
        assert needed <= max(0, limit - spent)
    except BudgetExceeded:
        assert needed > limit - spent
        first_that_did_not_fit = texts[len(embedder.sent)]
        assert spent + sum(map(len, embedder.sent)) + len(first_that_did_not_fit) > limit
    assert ledger.tokens.total() == sum(map(len, embedder.sent)) <= max(0, limit - spent)
    # All that was paid for is stored, nothing stays set aside, and what was sent are the first of the texts.
    assert set(vectors.rows) == {text_hash(text) for text in embedder.sent}
    assert not +ledger.aside
    assert set(embedder.sent) == set(texts[: len(embedder.sent)])


def test_a_higher_budget_goes_on_and_pays_for_the_rest_only():
    texts = [f"text number {number}" for number in range(30)]
    ledger, vectors = MemoryLedger(), MemoryVectors()
    with pytest.raises(BudgetExceeded):
        embed_missing(of(texts), embedder=LengthEmbedder(), vectors=vectors, spending=spending(ledger, run_tokens=100))
    again = LengthEmbedder()
    embed_missing(of(texts), embedder=again, vectors=vectors, spending=spending(ledger, run_tokens=10_000))
    assert len(vectors.stored) == len(set(vectors.stored)) == 30
    assert ledger.tokens.total() == sum(map(len, texts))


def test_money_is_counted_at_the_price_to_the_token():
    ledger = MemoryLedger(price=0.02)
    account = spending(ledger, price=0.02, run_usd=0.00002)  # 1,000 tokens
    assert account.allow([Wanted(repository="a", tokens=400)] * 5) == 2
    assert account.allow([Wanted(repository="a", tokens=200)]) == 1
    with pytest.raises(BudgetExceeded, match=r"budget\.run_usd of tenant 'acme' is 0\.0000 USD"):
        account.allow([Wanted(repository="a", tokens=1)])


def test_the_message_says_which_budget_and_what_to_do():
    ledger = MemoryLedger(month=995)
    with pytest.raises(BudgetExceeded) as raised:
        spending(ledger, month_tokens=1_000, run_tokens=50_000).allow([Wanted(repository="a", tokens=7)])
    said = str(raised.value)
    assert said.startswith("budget.month_tokens of tenant 'acme' is 1,000 tokens; runs of this month have spent")
    for words in ("995 tokens", "next text for large needs 7 tokens", "[budget.tenants.acme]", "not paid for twice"):
        assert words in said


def test_a_budget_in_usd_needs_a_price_and_one_in_tokens_does_not():
    wanted = [Wanted(repository="a", tokens=7)]
    with pytest.raises(ConfigError, match=r'there is no price for model \'large\': add `"large" = USD'):
        spending(MemoryLedger(), price=None, run_usd=5).allow(wanted)
    assert spending(MemoryLedger(), price=None, run_tokens=7).allow(wanted) == 1
    # What costs nothing is stopped by no budget in USD.
    assert spending(MemoryLedger(), price=0.0, run_usd=0).allow(wanted * 9) == 9


def test_a_service_that_charges_more_than_we_count_is_held_to_the_budget_after_its_first_answer():
    class Dear(LengthEmbedder):
        def _part(self, texts: Sequence[str], part: Sequence[int]) -> EmbeddedBatch:
            found = super()._part(texts, part)
            return EmbeddedBatch(indices=found.indices, vectors=found.vectors, tokens=3 * found.tokens)

    ledger, texts = MemoryLedger(), [f"text {number:02}" for number in range(60)]
    with pytest.raises(BudgetExceeded):
        embed_missing(
            of(texts), embedder=Dear(), vectors=MemoryVectors(), spending=spending(ledger, run_tokens=400),
            buffer_texts=4,
        )  # fmt: skip
    assert 400 - 3 * 7 < ledger.tokens.total() <= 400

    ledger = MemoryLedger()
    with pytest.raises(BudgetExceeded):
        embed_missing(
            of(texts), embedder=AheadEmbedder(ahead=20, charged=3), vectors=MemoryVectors(),
            spending=spending(ledger, run_tokens=400), buffer_texts=4,
        )  # fmt: skip
    assert 400 - 3 * 7 < ledger.tokens.total() <= 400


def test_each_repository_pays_for_what_it_brought_first():
    ledger = MemoryLedger()
    texts = [*of(["aaaa", "bb"], "one"), *of(["bb", "ccc"], "two")]
    embed_missing(texts, embedder=LengthEmbedder(), vectors=MemoryVectors(), spending=spending(ledger))
    assert ledger.tokens == {"one": 6, "two": 3}


def test_what_was_set_aside_is_free_again_after_an_error():
    ledger, vectors = MemoryLedger(), MemoryVectors()
    texts = [*(f"text {number}" for number in range(8)), "BREAK"]
    with pytest.raises(TransientError):
        embed_missing(
            of(texts), embedder=LengthEmbedder(seed=3), vectors=vectors, spending=spending(ledger, run_tokens=500)
        )
    assert not +ledger.aside
    assert ledger.tokens.total() == 6 * len(vectors.rows)


@given(total=st.integers(0, 10**6), weights=st.lists(st.integers(0, 1000), min_size=1, max_size=20))
def test_shares_add_up(total, weights):
    found = shares(total, weights)
    assert sum(found) == total
    assert min(found) >= 0
    if sum(weights) == total:
        assert found == weights or not total


def test_the_narrowest_room_comes_first():
    limits = Limits(run_tokens=100, month_tokens=1_000, month_usd=1.0)
    run, month = Spent(tokens=10, usd=0.0), Spent(tokens=950, usd=0.5)
    assert [(room.key, room.tokens) for room in rooms(limits, price=1.0, run=run, month=month)] == [
        ("month_tokens", 50), ("run_tokens", 90), ("month_usd", 500_000),
    ]  # fmt: skip
