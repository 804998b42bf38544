"""Many requests at once: how many are under way, what a slow or overloaded server changes, what is read and held."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.embedding import Text, embed_missing
from rag_pipeline.embedding.concurrency import AdaptiveLimit
from rag_pipeline.embedding.embedder import Vectors
from rag_pipeline.errors import TransientError
from rag_pipeline.model import text_hash
from rag_pipeline_tests.embedding.fake_service import (
    Reply,
    Request,
    Script,
    embedder_on,
    embeddings,
    error,
    fake_service,
)
from rag_pipeline_tests.embedding.test_reuse import MemoryVectors, hashed

PATIENCE_S = 60.0
"""When a test gives up; none of them takes as long."""


class Gauge:
    """Requests that a script is answering: now, and at most."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    @contextmanager
    def counted(self) -> Iterator[int]:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            now = self.now
        try:
            yield now
        finally:
            with self._lock:
                self.now -= 1


def gathering(gauge: Gauge, wanted: int) -> Script:
    """Answers the first `wanted` requests only when all of them are there."""
    together, lock, left = threading.Barrier(wanted, timeout=PATIENCE_S), threading.Lock(), [wanted]

    def script(request: Request) -> Reply:
        with gauge.counted():
            with lock:
                left[0] -= 1
                is_early = left[0] >= 0
            if is_early:
                together.wait()
            return embeddings(request)

    return script


class TellingVectors(MemoryVectors):
    """Tells a callback after each store how many vectors there are."""

    def __init__(self, told=lambda count: None) -> None:
        super().__init__()
        self._told = told

    def store(self, hashes: Sequence, vectors: Vectors) -> int:
        new = super().store(hashes, vectors)
        self._told(len(self.rows))
        return new


@pytest.mark.parametrize("concurrency", [1, 5, 16])
def test_as_many_requests_are_under_way_as_allowed_and_never_more(concurrency):
    gauge, vectors = Gauge(), MemoryVectors()
    with embedder_on(gathering(gauge, concurrency), concurrency=concurrency, batch_texts=2) as (embedder, _, _):
        # Smaller buffers than requests hold together: no buffer may be the end of the stream.
        report = embed_missing(
            hashed([f"text {n}" for n in range(48)]), embedder=embedder, vectors=vectors, buffer_texts=3
        )
    assert gauge.most == concurrency
    assert report.embedded == len(vectors.rows) == 48


def test_a_request_that_hangs_does_not_hold_up_the_others():
    others_are_stored = threading.Event()

    def script(request: Request) -> Reply:
        if "text 0" in request.texts:
            assert others_are_stored.wait(PATIENCE_S)
        return embeddings(request)

    def told(count: int) -> None:
        if count == 59:
            others_are_stored.set()

    vectors = TellingVectors(told)
    with embedder_on(script, concurrency=3, batch_texts=1) as (embedder, service, _):
        texts = hashed([f"text {n}" for n in range(60)])
        embed_missing(texts, embedder=embedder, vectors=vectors, buffer_texts=10)
        assert len(service.requests) == 60
    assert len(vectors.rows) == 60


def test_what_is_read_does_not_outrun_what_is_answered():
    vectors, read, furthest = MemoryVectors(), 0, 0

    def stream() -> Iterator[Text]:
        nonlocal read, furthest
        for text in hashed([f"text {n}" for n in range(120)]):
            read += 1
            furthest = max(furthest, read - len(vectors.rows))
            yield text

    with embedder_on(concurrency=4, batch_texts=2) as (embedder, _, _):
        embed_missing(stream(), embedder=embedder, vectors=vectors, buffer_texts=5)
    assert len(vectors.rows) == 120
    # Twice the concurrency in batches, the batch that is being filled, and a buffer.
    assert furthest <= 2 * 4 * 2 + 2 + 5


def test_a_text_that_comes_again_while_it_is_under_way_is_sent_once():
    with embedder_on(concurrency=8, batch_texts=1) as (embedder, service, _):
        texts = [f"text {n % 4}" for n in range(40)]
        report = embed_missing(hashed(texts), embedder=embedder, vectors=MemoryVectors(), buffer_texts=4)
        assert sorted(service.texts) == ["text 0", "text 1", "text 2", "text 3"]
    assert report.texts == 40 == report.embedded + report.reused + report.repeated


def test_an_overloaded_service_is_asked_less_and_every_text_is_answered():
    gauge, lock, refusals = Gauge(), threading.Lock(), []

    def script(request: Request) -> Reply:
        with gauge.counted() as now:
            if now > 3:
                with lock:
                    refusals.append(now)
                return error(429, "too many requests")
            return embeddings(request)

    with embedder_on(script, concurrency=24, batch_texts=1, max_retries=60) as (embedder, service, _):
        report = embed_missing(hashed([f"t{n}" for n in range(90)]), embedder=embedder, vectors=MemoryVectors())
        assert (report.embedded, len(report.failures)) == (90, 0)
        assert len(service.requests) == 90 + len(refusals)
    # Each would be refused again and again by a client that does not slow down: 24 under way where 3 are taken.
    assert len(refusals) < 90


def test_a_service_that_takes_small_batches_is_given_small_ones_from_then_on():
    def small(request: Request) -> Reply:
        return embeddings(request) if len(request.texts) <= 4 else error(422, "batch size 32 > maximum 4")

    with embedder_on(small, batch_texts=32, concurrency=2) as (embedder, service, _):
        report = embed_missing(hashed([f"t{n}" for n in range(300)]), embedder=embedder, vectors=MemoryVectors())
        refused = [request for request in service.requests if len(request.texts) > 4]
        assert (report.embedded, len(report.failures)) == (300, 0)
        # Those that were cut before the first answer came: at most four batches, each refused at 32, 16 and 8, and each
        # perhaps in both ways to write vectors. Whoever learns nothing is refused 70 times, in one way.
        assert len(refused) <= 2 * 4 * (1 + 2 + 4)
        assert max(len(request.texts) for request in service.requests[-30:]) == 4


def test_paid_answers_are_stored_when_another_request_fails_for_good():
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def script(request: Request) -> Reply:
        both.wait()
        return error(402, "no credit left") if request.texts == ["bad"] else embeddings(request)

    vectors = MemoryVectors()
    with embedder_on(script, batch_texts=1, concurrency=2) as (embedder, _, _), pytest.raises(Exception, match="402"):
        embed_missing(hashed(["bad", "good"]), embedder=embedder, vectors=vectors)
    assert set(vectors.rows) == {text_hash("good")}


def test_an_error_while_reading_ends_the_stream_after_what_is_under_way():
    vectors = MemoryVectors()

    def broken() -> Iterator[Text]:
        yield from hashed([f"t{n}" for n in range(6)])
        raise OSError("the lake is gone")

    with embedder_on(concurrency=2, batch_texts=1) as (embedder, service, _):
        with pytest.raises(OSError, match="lake"):
            embed_missing(broken(), embedder=embedder, vectors=vectors, buffer_texts=6)
        assert set(vectors.rows) == {text_hash(text) for text in service.texts}


INTERRUPTED = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have switched it off
from rag_pipeline.embedding import make_embedder
from rag_pipeline.settings import Embedding
embedder = make_embedder(
    Embedding(provider="openai", model="m", base_url=sys.argv[1], batch_texts=1, concurrency=4), environ={}
)
try:
    list(embedder.embed([f"text {n}" for n in range(50)]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
finally:
    embedder.close()
"""


def test_ctrl_c_ends_a_run_while_the_service_still_hangs():
    asked, the_end = threading.Barrier(5), threading.Event()

    def hang(request: Request) -> Reply:
        asked.wait(PATIENCE_S)
        the_end.wait(PATIENCE_S)
        return embeddings(request)

    with fake_service(hang) as service:
        process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, service.url], stdout=subprocess.PIPE, text=True)
        try:
            asked.wait(PATIENCE_S)
            process.send_signal(signal.SIGINT)
            # The service answers nobody before the process is gone.
            assert process.communicate(timeout=PATIENCE_S)[0] == "interrupted\n"
            assert process.returncode == 0
        finally:
            process.kill()
            the_end.set()


def test_nobody_waits_for_a_slot_after_the_end():
    limit, stopped = AdaptiveLimit(1), threading.Event()
    refusals: list[TransientError] = []

    def wait() -> None:
        try:
            with limit.slot(stopped):
                pass
        except TransientError as refused:
            refusals.append(refused)

    with limit.slot(stopped):
        waiting = threading.Thread(target=wait)
        waiting.start()
        stopped.set()
        limit.wake()
        waiting.join(PATIENCE_S)
    assert len(refusals) == 1


@given(most=st.integers(1, 64), outcomes=st.lists(st.booleans(), max_size=300))
def test_the_limit_halves_when_refused_and_comes_back_one_by_one(most, outcomes):
    limit, stopped = AdaptiveLimit(most), threading.Event()
    for is_refused in outcomes:
        before = limit.now
        with limit.slot(stopped) as slot:
            (limit.refused if is_refused else limit.answered)(slot)
        assert 1 <= limit.now <= most
        assert limit.now == max(1, before // 2) if is_refused else before <= limit.now <= before + 1
    for _ in range(most * (most + 1)):
        with limit.slot(stopped) as slot:
            limit.answered(slot)
    assert limit.now == most


def test_requests_that_were_refused_together_halve_the_limit_once():
    limit, stopped = AdaptiveLimit(8), threading.Event()
    with limit.slot(stopped) as first, limit.slot(stopped) as second:
        limit.refused(first)
        limit.refused(second)
        assert limit.now == 4
        limit.answered(first)  # sent before the limit was halved: says nothing of it
    assert limit.now == 4
