"""Claims: two runs at once over one database embed, and pay for, each text once."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import pytest

from rag_pipeline.embedding import EmbeddedBatch, EmbeddingReport, Spending, Text, embed_missing
from rag_pipeline.errors import TransientError
from rag_pipeline.index.claims import Claims
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.spaces import SpaceVectors
from rag_pipeline.index.usage import RunLedger
from rag_pipeline.model import EmbeddingSpace, text_hash
from rag_pipeline.settings import Limits
from rag_pipeline_tests.embedding.test_reuse import FakeEmbedder
from rag_pipeline_tests.knowledge import space_of

TEXTS = [f"text {n}" for n in range(40)]
BUFFER = 4
PATIENCE_S = 60.0


class StoppedEmbedder(FakeEmbedder):
    """Does something before it answers its first texts, while they are under way."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self._meanwhile: Callable[[], None] | None = meanwhile

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        yield from super().embed(texts)


class OtherRun:
    """A run in a thread, over a connection of its own; it says when it waits for texts of another run."""

    def __init__(self, database: str, texts: Sequence[str], **how: int) -> None:
        self.embedder = FakeEmbedder(seed=1)
        self.waits = threading.Event()
        self.report: EmbeddingReport | None = None
        self._thread = threading.Thread(target=self._work, args=(database, texts, how), daemon=True)

    def start_and_wait(self) -> None:
        self._thread.start()
        assert self.waits.wait(PATIENCE_S)

    def end(self) -> EmbeddingReport:
        self._thread.join(PATIENCE_S)
        assert self.report is not None
        return self.report

    def _work(self, database: str, texts: Sequence[str], how: dict[str, int]) -> None:
        with connected(database) as connection:
            self.report = run(connection, texts, embedder=self.embedder, sleep=self._sleep, name="other", **how)

    def _sleep(self, seconds: float) -> None:
        self.waits.set()
        threading.Event().wait(min(seconds, 0.02))


def run(
    connection: Connection,
    texts: Sequence[str],
    *,
    embedder: FakeEmbedder,
    tenant: str = "acme",
    name: str = "one",
    buffer_texts: int = BUFFER,
    sleep: Callable[[float], object] = lambda _: None,
) -> EmbeddingReport:
    """Embed the texts as a run does, on its tenant's account."""
    space = space_of(connection)
    ledger = RunLedger(
        connection,
        tenant=tenant,
        run_id=name,
        provider="fake",
        model="test",
        price=1.0,
        clock=lambda: datetime(2024, 1, 1, tzinfo=UTC),
    )
    claims = Claims(connection, space)
    try:
        return embed_missing(
            (Text(text_hash(text), text, "repository") for text in texts),
            embedder=embedder,
            vectors=SpaceVectors(connection, space, tenant=tenant, claims=claims),
            buffer_texts=buffer_texts,
            sleep=sleep,
            spending=Spending(tenant=tenant, model="test", limits=Limits(), price=1.0, ledger=ledger),
        )
    finally:
        claims.close()


def tokens_paid(connection: Connection) -> int:
    row = connection.execute("SELECT sum(tokens)::bigint FROM rag.usage").fetchone()
    assert row is not None
    return int(row[0])


def stored(connection: Connection, space: EmbeddingSpace) -> int:
    vectors = SpaceVectors(connection, space, tenant="acme")
    return len(vectors.known([text_hash(text) for text in TEXTS]))


def is_tidy(connection: Connection) -> bool:
    """No claim is left, and no lock of one."""
    claims = connection.execute("SELECT count(*) FROM rag.embedding_claims").fetchone()
    locks = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2").fetchone()
    return claims == locks == (0,)


@pytest.mark.parametrize("tenant", ["acme", "globex"])
def test_two_runs_at_once_embed_each_text_once(connection, database, tenant):
    other = OtherRun(database, TEXTS)
    embedder = StoppedEmbedder(other.start_and_wait)
    report = run(connection, TEXTS, embedder=embedder, tenant=tenant)
    of_other = other.end()
    assert sorted(embedder.sent + other.embedder.sent) == sorted(TEXTS)
    assert embedder.sent and other.embedder.sent
    assert report.embedded + of_other.embedded == len(TEXTS) == tokens_paid(connection)
    assert report.embedded + report.reused == of_other.embedded + of_other.reused == len(TEXTS)
    assert stored(connection, space_of(connection)) == len(TEXTS)
    assert is_tidy(connection)


def test_runs_in_opposite_orders_do_not_wait_for_each_other(connection, database):
    other = OtherRun(database, TEXTS[::-1], buffer_texts=1)
    other._thread.start()
    embedder = FakeEmbedder()
    report = run(connection, TEXTS, embedder=embedder, buffer_texts=1, sleep=other._sleep)
    assert report.embedded + other.end().embedded == len(TEXTS)
    assert sorted(embedder.sent + other.embedder.sent) == sorted(TEXTS)


def test_what_another_run_is_refused_is_tried_here(connection, database):
    texts = ["!bad", *TEXTS[:3]]
    other = OtherRun(database, texts)
    embedder = StoppedEmbedder(other.start_and_wait)
    report = run(connection, texts, embedder=embedder)
    assert [reason for _, reason in report.failures] == [reason for _, reason in other.end().failures] == ["refused"]
    assert other.embedder.sent == ["!bad"]


def test_what_a_run_that_fails_had_claimed_is_taken_over(connection, database):
    other = OtherRun(database, TEXTS)
    embedder = StoppedEmbedder(other.start_and_wait)
    texts = [*TEXTS[:3], "BREAK"]
    with pytest.raises(TransientError):
        run(connection, texts, embedder=embedder, buffer_texts=len(texts))
    other.end()
    assert stored(connection, space_of(connection)) == len(TEXTS)
    assert is_tidy(connection)


_KILLED = """
import sys, time
from uuid import UUID
from rag_pipeline.index.claims import Claims
from rag_pipeline.index.database import connected
from rag_pipeline.index.spaces import numbered_space
with connected(sys.argv[1]) as connection:
    hashes = [UUID(value) for value in sys.argv[3:]]
    assert Claims(connection, numbered_space(connection, int(sys.argv[2]))).take(hashes) == set(hashes)
    print("claimed", flush=True)
    time.sleep(600)
"""


def test_a_run_that_is_killed_frees_its_claims(connection, database):
    space = space_of(connection)
    claimed = [str(text_hash(text)) for text in TEXTS[:20]]
    command = [sys.executable, "-c", _KILLED, database, str(space.space_id), *claimed]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
        try:
            assert killed.stdout is not None and killed.stdout.readline() == "claimed\n"
            other = OtherRun(database, TEXTS, buffer_texts=10)
            other.start_and_wait()
            assert sorted(other.embedder.sent) == sorted(TEXTS[20:])
        finally:
            killed.kill()
    assert other.end().embedded == len(TEXTS)
    assert sorted(other.embedder.sent) == sorted(TEXTS)
    assert is_tidy(connection)


def test_a_run_that_hangs_loses_its_claims_after_an_hour(connection, database):
    space, hashes = space_of(connection), [text_hash(text) for text in TEXTS]
    with connected(database) as hanging:
        assert Claims(hanging, space).take(hashes) == set(hashes)
        assert Claims(connection, space).take(hashes) == set()
        connection.execute("UPDATE rag.embedding_claims SET claimed_at = now() - interval '61 minutes'")
        assert Claims(connection, space).take(hashes) == set(hashes)


def test_claims_of_one_space_leave_another_alone(connection, database):
    hashes = [text_hash(text) for text in TEXTS]
    with connected(database) as other:
        Claims(other, space_of(other)).take(hashes)
        assert Claims(connection, space_of(connection, model="larger")).take(hashes) == set(hashes)


def test_a_run_alone_claims_once_for_each_buffer_that_lacks_something(connection, monkeypatch):
    taken: list[int] = []
    take = Claims.take

    def counted(self: Claims, hashes: Sequence[object]) -> object:
        taken.append(len(hashes))
        return take(self, hashes)  # type: ignore[arg-type]

    monkeypatch.setattr(Claims, "take", counted)
    run(connection, TEXTS, embedder=FakeEmbedder())
    assert taken == [BUFFER] * (len(TEXTS) // BUFFER)
    taken.clear()
    run(connection, TEXTS, embedder=FakeEmbedder())
    assert taken == []
