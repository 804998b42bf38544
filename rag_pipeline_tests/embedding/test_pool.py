"""Working ahead, retries and the busy clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag_pipeline.embedding.pool import BusyClock, Workers, run_ahead
from rag_pipeline.errors import PermanentError, TransientError
from rag_pipeline.remote.retry import backoff_s, retrying


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def test_jobs_are_taken_only_as_far_ahead_as_allowed(pool):
    taken = 0

    def jobs() -> Iterator[int]:
        nonlocal taken
        for job in range(40):
            taken += 1
            yield job

    yielded = 0
    for _ in run_ahead(pool, lambda job: job, jobs(), ahead=4):
        # The one that the caller holds still counts: the next is read when it has been stored.
        assert taken - yielded <= 4
        yielded += 1
    assert yielded == 40


def test_an_error_of_the_jobs_is_raised_after_those_that_run(pool):
    def jobs() -> Iterator[int]:
        yield from range(3)
        raise ValueError("no more")

    results = []
    with pytest.raises(ValueError, match="no more"):
        # Not list(): what counts is what a caller holds when the error comes.
        for result in run_ahead(pool, lambda job: job, jobs(), ahead=2):
            results.append(result)  # noqa: PERF402
    assert sorted(results) == [0, 1, 2]


def test_threads_that_hang_do_not_keep_anybody_waiting_and_call_when_they_end():
    release, ended = threading.Event(), threading.Event()
    workers = Workers(2, name="test")
    hanging = workers.submit(release.wait, 20.0)
    assert workers.submit(str, 7).result(timeout=15) == "7"
    workers.close(then=ended.set)
    assert not ended.is_set()
    with pytest.raises(RuntimeError):
        workers.submit(str, 8)
    release.set()
    assert ended.wait(timeout=30)
    assert hanging.result()


def test_work_goes_on_while_the_caller_stores(pool):
    done = threading.Event()

    def work(job: int) -> int:
        if job == 1:
            done.set()
        return job

    results = run_ahead(pool, work, range(2), ahead=2)
    next(results)
    assert done.wait(timeout=30)
    assert len(list(results)) == 1


def test_after_an_error_nothing_is_started(pool):
    started = []

    def work(job: int) -> int:
        started.append(job)
        if job == 0:
            raise TransientError("down")
        return job

    with pytest.raises(TransientError):
        list(run_ahead(pool, work, range(1000), ahead=4))
    assert len(started) < 20


def test_overlapping_runs_are_counted_once():
    clock = BusyClock()
    barrier = threading.Barrier(2, timeout=30)

    def run() -> None:
        with clock.running():
            barrier.wait()
            time.sleep(0.05)

    threads = [threading.Thread(target=run) for _ in range(2)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.05 <= clock.seconds <= time.perf_counter() - started
    total = clock.seconds
    time.sleep(0.01)
    assert clock.seconds == total


def test_backoff_doubles_up_to_a_limit_and_is_jittered():
    assert [backoff_s(n, asked=None, jitter=lambda: 1.0) for n in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert backoff_s(5, asked=None, jitter=lambda: 0.25) == 4
    assert backoff_s(5, asked=2.0, jitter=lambda: 0.0) == 2.0


def test_only_transient_errors_are_retried_and_only_until_stopped():
    calls = []

    def fail(error: Exception) -> None:
        calls.append(error)
        raise error

    stopped = threading.Event()
    with pytest.raises(PermanentError):
        retrying(lambda: fail(PermanentError("no")), max_retries=5, sleep=lambda _: None, stopped=stopped)
    assert len(calls) == 1
    with pytest.raises(TransientError):
        retrying(lambda: fail(TransientError("busy")), max_retries=2, sleep=lambda _: None, stopped=stopped)
    assert len(calls) == 4
    with pytest.raises(TransientError):
        retrying(lambda: fail(TransientError("busy")), max_retries=9, sleep=lambda _: stopped.set(), stopped=stopped)
    assert len(calls) == 5
