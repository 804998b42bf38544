"""The ledger in PostgreSQL: months, parallel runs, and runs that were killed."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from rag_pipeline.embedding import Spending
from rag_pipeline.embedding.spending import Wanted
from rag_pipeline.errors import BudgetExceeded
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.usage import RunLedger, book_answer, spent, tokens_per_second
from rag_pipeline.model import Spent
from rag_pipeline.settings import Limits

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)


class Clock:
    """Stands still until it is set."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


def account(
    connection: Connection, clock: Clock, *, run: str = "run", tenant: str = "acme", price: float = 0.02,
    **limits: float,
) -> Spending:  # fmt: skip
    ledger = RunLedger(
        connection, tenant=tenant, run_id=run, provider="openai", model="small", price=price, clock=clock
    )
    return Spending(tenant=tenant, model="small", limits=Limits.model_validate(limits), price=price, ledger=ledger)


def spend(spending: Spending, tokens: int, *, repository: str = "one") -> None:
    wanted = [Wanted(repository=repository, tokens=tokens)]
    assert spending.allow(wanted) == 1
    spending.record(wanted, tokens=tokens, requests=1, seconds=0.5)


def rows(connection: Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT used_at, tenant_id, repository, run_id, purpose, tokens, requests, round(cost_usd::numeric, 9)::text,"
        " reserved_tokens FROM rag.usage ORDER BY usage_id"
    ).fetchall()


def test_a_row_per_run_and_repository_grows_batch_by_batch(connection):
    clock = Clock()
    first = account(connection, clock)
    spend(first, 100)
    clock.now += timedelta(minutes=1)
    spend(first, 150)
    spend(first, 30, repository="two")
    spend(account(connection, clock, run="next"), 5)
    assert rows(connection) == [
        (clock.now, "acme", "one", "run", "embedding", 250, 2, "0.000005000", 0),
        (clock.now, "acme", "two", "run", "embedding", 30, 1, "0.000000600", 0),
        (clock.now, "acme", "one", "next", "embedding", 5, 1, "0.000000100", 0),
    ]
    assert tokens_per_second(connection, provider="openai", model="small") == pytest.approx(285 / 2.0)
    assert tokens_per_second(connection, provider="openai", model="large") is None


def test_a_month_ends_in_utc_and_the_next_begins_with_nothing_spent(connection):
    clock = Clock(datetime(2024, 1, 31, 23, 59, 59, tzinfo=UTC))
    run = account(connection, clock, month_tokens=100)
    spend(run, 90)
    with pytest.raises(BudgetExceeded, match="month_tokens"):
        run.allow([Wanted(repository="one", tokens=11)])
    # In another zone it is still January, in UTC it is not.
    clock.now = datetime(2024, 1, 31, 23, 0, tzinfo=UTC).astimezone() + timedelta(hours=1)
    spend(run, 11)
    _, month = spent(connection, tenant="acme", run_id="run", now=clock.now)
    assert month.tokens == 11
    run_spent, january = spent(connection, tenant="acme", run_id="run", now=NOON)
    assert (run_spent.tokens, january.tokens) == (101, 90)


def test_what_is_sent_in_the_last_second_is_of_that_month(connection):
    clock = Clock(datetime(2024, 1, 31, 23, 59, 59, tzinfo=UTC))
    run = account(connection, clock, month_tokens=100)
    wanted = [Wanted(repository="one", tokens=80)]
    run.allow(wanted)
    clock.now += timedelta(seconds=5)
    run.record(wanted, tokens=80, requests=1, seconds=1)
    assert spent(connection, tenant="acme", run_id="", now=clock.now)[1].tokens == 0
    assert spent(connection, tenant="acme", run_id="", now=NOON)[1].tokens == 80


def test_each_tenant_has_its_own_budget_and_a_run_counts_for_itself(connection):
    clock = Clock()
    spend(account(connection, clock, tenant="other"), 1_000)
    spend(account(connection, clock, run="before", run_tokens=100), 100)
    spend(account(connection, clock, run_tokens=100, month_tokens=200), 100)
    with pytest.raises(BudgetExceeded, match=r"budget\.(month|run)_tokens"):
        account(connection, clock, run="run", run_tokens=100, month_tokens=200).allow(
            [Wanted(repository="one", tokens=1)]
        )  # fmt: skip
    assert spent(connection, tenant="acme", run_id="run", now=NOON) == (
        Spent(tokens=100, usd=pytest.approx(100 * 0.02 / 1e6)), Spent(tokens=200, usd=pytest.approx(200 * 0.02 / 1e6)),
    )  # fmt: skip


def test_what_a_killed_run_set_aside_is_free_again_after_a_while(connection):
    clock = Clock()
    killed = account(connection, clock, run="killed", month_tokens=100)
    spend(killed, 20)
    killed.allow([Wanted(repository="one", tokens=70)])  # and nothing more is heard of it
    rest = [Wanted(repository="one", tokens=60)]
    with pytest.raises(BudgetExceeded):
        account(connection, clock, month_tokens=100).allow(rest)
    clock.now += timedelta(hours=1, seconds=1)
    assert account(connection, clock, month_tokens=100).allow(rest) == 1


def test_parallel_runs_never_exceed_the_month_together(connection, database):
    runs, limit, clock = 4, 1_000, Clock()
    ready = threading.Barrier(runs)
    stopped: list[str] = []

    def run(name: str) -> None:
        with connected(database) as own:
            spending = account(own, clock, run=name, month_tokens=limit)
            wanted = [Wanted(repository=name, tokens=7)] * 5
            ready.wait()
            try:
                while True:
                    allowed = wanted[: spending.allow(wanted)]
                    for one in allowed:
                        spending.record([one], tokens=one.tokens, requests=1, seconds=0)
            except BudgetExceeded:
                stopped.append(name)

    threads = [threading.Thread(target=run, args=(f"run {number}",)) for number in range(runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (total,) = connection.execute("SELECT sum(tokens)::int FROM rag.usage").fetchone() or (None,)
    # 142 texts of 7 tokens: nothing is left over that a text would have fitted into.
    assert total == limit // 7 * 7
    assert len(stopped) == runs


def test_what_an_answer_took_is_booked_and_counts_against_the_month(connection):
    book_answer(
        connection, tenant="acme", provider="openai", model="gpt", tokens=300, cost_usd=0.5, now=NOON, run_id="cli"
    )
    book_answer(connection, tenant="acme", provider="openai", model="other", tokens=10, cost_usd=None, now=NOON)
    book_answer(connection, tenant="acme", provider="openai", model="gpt", tokens=0, cost_usd=0.0, now=NOON)
    assert rows(connection) == [
        (NOON, "acme", "", "cli", "answer", 300, 1, "0.500000000", 0),
        (NOON, "acme", "", "", "answer", 10, 1, "0.000000000", 0),
    ]
    assert spent(connection, tenant="acme", run_id="run", now=NOON)[1] == Spent(tokens=310, usd=0.5)
    assert tokens_per_second(connection, provider="openai", model="gpt") is None
