"""What is counted: requests in a minute, requests in a month, and work at once. Time is the tests' own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.pool import Pool
from rag_pipeline.index.quota import requests_served
from rag_pipeline.serving.quotas import Quotas, until_next_month
from rag_pipeline.serving.rates import RateLimits
from rag_pipeline.serving.workers import Workers
from rag_pipeline_tests.databases import empty

MAY, JUNE = date(2024, 5, 1), date(2024, 6, 1)
IN_MAY, IN_JUNE = datetime(2024, 5, 31, 23, 59, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)


@settings(max_examples=50)
@given(quarters=st.lists(st.integers(0, 160), max_size=40), per_minute=st.integers(1, 6))
def test_no_minute_ever_holds_more_than_its_limit_and_nothing_less_is_refused(
    quarters: list[int], per_minute: int
) -> None:
    now = 1_000.0
    limits = RateLimits(per_minute=per_minute, clock=lambda: now)
    granted: list[float] = []
    for quarter in quarters:
        now += quarter / 4
        within = [at for at in granted if at > now - 60]
        allowance = limits.hit("acme")
        assert allowance.is_granted == (len(within) < per_minute)
        if allowance.is_granted:
            granted.append(now)
            within.append(now)
        assert allowance.remaining == per_minute - len(within)
        assert 0 <= allowance.reset_s <= 60
        if not allowance.is_granted:
            assert within[0] + 60 <= now + allowance.reset_s < within[0] + 61


def test_one_tenants_requests_are_not_anothers() -> None:
    limits = RateLimits(per_minute=1, clock=lambda: 0.0)
    assert [limits.hit(tenant).is_granted for tenant in ("a", "b", "a", "b", "c")] == [True, True, False, False, True]


@pytest.fixture
def pool(reused_database: str):
    empty(reused_database)
    pool = Pool(reused_database, size=3, statement_s=10)
    yield pool
    pool.close()


def served(pool: Pool, tenant: str = "acme", month: date = MAY) -> int:
    with pool.connection() as connection:
        return requests_served(connection, tenant=tenant, month=month)


def test_a_quota_ends_with_its_last_request_and_begins_anew_with_the_month(pool: Pool) -> None:
    quotas = Quotas(pool, most=3)
    assert [quotas.take("acme", now=IN_MAY) for _ in range(5)] == [True, True, True, False, False]
    assert quotas.take("globex", now=IN_MAY)
    assert quotas.take("acme", now=IN_JUNE)
    quotas.flush()
    assert [served(pool), served(pool, "globex"), served(pool, month=JUNE)] == [3, 1, 1]
    assert not quotas.take("acme", now=IN_MAY)


def test_what_was_counted_before_a_restart_or_elsewhere_counts(pool: Pool) -> None:
    first, second = Quotas(pool, most=4), Quotas(pool, most=4)
    for quotas in (first, second):
        assert quotas.take("acme", now=IN_MAY)
        quotas.flush()
    # The second has seen what both counted; the first sees it with its next flush.
    assert [second.take("acme", now=IN_MAY) for _ in range(3)] == [True, True, False]
    second.flush()
    assert first.take("acme", now=IN_MAY)
    first.flush()
    assert not first.take("acme", now=IN_MAY)
    assert not Quotas(pool, most=4).take("acme", now=IN_MAY)


def test_nothing_is_written_until_the_flush_and_nothing_twice(pool: Pool) -> None:
    quotas = Quotas(pool, most=None)
    for _ in range(7):
        assert quotas.take("acme", now=IN_MAY)
    assert served(pool) == 0
    quotas.flush()
    quotas.flush()
    assert served(pool) == 7


def test_counting_from_many_threads_loses_nothing(pool: Pool) -> None:
    quotas = Quotas(pool, most=150)
    granted: list[bool] = []

    def ask() -> None:
        for _ in range(50):
            granted.append(quotas.take("acme", now=IN_MAY))
            if len(granted) % 20 == 0:
                quotas.flush()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    quotas.flush()
    assert (len(granted), sum(granted), served(pool)) == (200, 150, 150)


def test_without_a_database_counts_wait_and_a_quota_that_nobody_knows_is_no_answer(pool: Pool) -> None:
    gone = Pool("postgresql://postgres@127.0.0.1:1/rag", size=1, statement_s=1)
    try:
        quotas = Quotas(gone, most=None)
        assert quotas.take("acme", now=IN_MAY)
        quotas._pool = _Impatient(gone)  # type: ignore[assignment]
        with pytest.raises(DatabaseUnavailable):
            quotas.flush()
        quotas._pool = pool
        quotas.flush()
        assert served(pool) == 1
    finally:
        gone.close()


class _Impatient:
    """A pool that is asked without patience."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def connection(self):
        return self._pool.connection(patience_s=0.1)


@pytest.mark.parametrize(
    ("now", "days"),
    [(datetime(2024, 1, 1, tzinfo=UTC), 31), (datetime(2024, 2, 1, tzinfo=UTC), 29),
     (datetime(2024, 12, 31, tzinfo=UTC), 1), (datetime(2023, 1, 31, tzinfo=UTC), 1)],
)  # fmt: skip
def test_the_next_month_is_so_far_away(now: datetime, days: int) -> None:
    assert until_next_month(now) == timedelta(days=days)


# Work at once ---------------------------------------------------------------------------------------------------------


def with_workers(scenario: Callable[[Workers], object], **limits: float) -> None:
    workers = Workers(**({"max_concurrent": 2, "max_waiting": 1, "timeout_s": 30.0} | limits))  # type: ignore[arg-type]
    try:
        asyncio.run(scenario(workers))  # type: ignore[arg-type]
    finally:
        workers.close()


def test_work_beyond_what_may_wait_is_told_to_come_back() -> None:
    go_on = threading.Event()

    async def scenario(workers: Workers) -> None:
        at_work = [asyncio.create_task(workers.run(lambda: go_on.wait(30))) for _ in range(3)]
        await asyncio.sleep(0)
        assert workers.busy == 3
        with pytest.raises(HTTPException) as refused:
            await workers.run(lambda: None)
        assert (refused.value.status_code, refused.value.headers) == (503, {"Retry-After": "1"})
        go_on.set()
        assert await asyncio.gather(*at_work) == [True] * 3
        assert await workers.run(lambda: 7) == 7

    with_workers(scenario)


def test_work_that_takes_too_long_is_given_up_and_keeps_its_place_until_it_ends() -> None:
    go_on, taken, begun = threading.Event(), threading.Event(), []

    async def scenario(workers: Workers) -> None:
        with pytest.raises(HTTPException) as late:
            await workers.run(lambda: taken.set() or go_on.wait(30), timeout_s=1.0)
        assert taken.is_set()
        assert late.value.status_code == 504
        assert workers.busy == 1, "a thread that nobody waits for is still a thread"
        # What waits behind it and is given up is never begun.
        with pytest.raises(HTTPException):
            await workers.run(lambda: begun.append(1), timeout_s=0.05)
        go_on.set()
        while workers.busy:
            await asyncio.sleep(0.01)
        assert await workers.run(lambda: "again") == "again"
        assert begun == []

    with_workers(scenario, max_concurrent=1)


def test_what_work_raises_arrives_a_timeout_of_its_own_included() -> None:
    def fail(error: Exception) -> None:
        raise error

    async def scenario(workers: Workers) -> None:
        for error in (ValueError("x"), TimeoutError("its own")):
            with pytest.raises(type(error), match=str(error)):
                await workers.run(lambda error=error: fail(error))  # type: ignore[misc]

    with_workers(scenario)
