"""A stage's work over several processes: the same rows in the same batches, and only the culprit is quarantined."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.errors import ItemError
from rag_pipeline.isolated_pool import IsolatedPool
from rag_pipeline.isolation import SMALL_CHARS
from rag_pipeline.lake.schemas import CHUNKS, DOCUMENTS, chunks_of, documents_of, to_batches
from rag_pipeline.lake.spread import spread
from rag_pipeline.model import Chunk, Document, Failure, chunk_id, failure_of, text_hash
from rag_pipeline.progress import Advance, silent
from rag_pipeline_tests.knowledge import entry

DOCUMENT = entry("one", "text").document


@dataclass(frozen=True, slots=True)
class Words:
    """A chunk for each word, which says where it was made; some words do something else."""

    schema: ClassVar[pa.Schema] = CHUNKS
    sized_by: ClassVar[str] = "text"
    worth: ClassVar[int] = 1_000

    def read(self, batch: pa.RecordBatch, /) -> Iterator[Document]:
        return documents_of(batch)

    def check(self, size: int, /) -> None:
        if size > 4 * SMALL_CHARS:
            raise ItemError("it is too long")

    def made(self, document: Document, /) -> Sequence[Chunk]:
        words = document.text.split()
        match words[:1]:
            case ["stumble"]:
                raise KeyError("colour")
            case ["hang"]:
                sum(range(10**12))
            case ["grow"]:
                bytearray(4 << 30)
            case ["crash"]:
                os.kill(os.getpid(), signal.SIGSEGV)
            case ["crash-once"] if not (there := Path(words[1])).exists():
                there.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return [_chunk(document, place, word) for place, word in enumerate(words)]

    def failure(self, document: Document, error: Exception, /) -> Failure:
        return failure_of(document, stage="words", reason=f"{type(error).__name__}: {error}")


def _chunk(document: Document, place: int, word: str) -> Chunk:
    return Chunk(
        tenant=document.tenant, document_id=document.document_id, chunk_id=chunk_id(document.document_id, word, place),
        position=place, text=word, text_hash=text_hash(word), heading_path=(), start_char=0, end_char=0, start_line=1,
        end_line=1, tokens=1, anchor=None if len(word) % 2 else word[:3],
    )  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Iterator[IsolatedPool]:
    """Two processes; ten seconds and 1 GB for each task: on a busy machine a process takes some to start."""
    with IsolatedPool(2, timeout_s=10, memory_bytes=1 << 30) as pool:
        yield pool


@pytest.fixture(scope="module")
def single() -> Iterator[IsolatedPool]:
    """What there is on a machine with one core."""
    with IsolatedPool(1, timeout_s=10, memory_bytes=1 << 30) as pool:
        yield pool


def run(texts: Sequence[str], pool: IsolatedPool) -> tuple[list[pa.RecordBatch], list[Failure], int]:
    """The batches that come out, the failures, and how many rows were told to be done."""
    documents = [replace(DOCUMENT, source_id=str(number), text=text) for number, text in enumerate(texts)]
    failures: list[Failure] = []
    told: list[int] = [0]

    def progress(stage: str, *, done: int, total: int | None, unit: str) -> None:
        silent(stage, done=done, total=total, unit=unit)
        told.append(done)

    advance = Advance(progress, "words", total=len(texts), unit="items")
    batches = list(spread(to_batches(documents, DOCUMENTS), Words(), pool=pool, failures=failures, advance=advance))
    return batches, failures, told[-1]


def words_of(batches: Sequence[pa.RecordBatch]) -> list[str]:
    return [chunk.text for batch in batches for chunk in chunks_of(batch)]


texts = st.one_of(
    st.just("stumble"),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.integers(1, 700).map(lambda count: f"{'wort' * count} zwei"),
    st.integers(1, 700).map(lambda count: "w " * count),
    st.just("long" * (SMALL_CHARS // 4) + " words"),
    st.just("too long" * SMALL_CHARS),
)


@given(given_texts=st.lists(texts, min_size=1, max_size=20))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_comes_out_is_the_same_wherever_it_is_made(
    pool: IsolatedPool, single: IsolatedPool, given_texts: list[str]
) -> None:
    given_texts.append("and so on " * 200)  # so that it is always worth two processes
    beside, failed_beside, told_beside = run(given_texts, pool)
    here, failed_here, told_here = run(given_texts, single)
    assert len(beside) == len(here)
    assert all(one.equals(other) for one, other in zip(beside, here, strict=True))
    assert failed_beside == failed_here
    assert told_beside == told_here == len(given_texts)


def test_batches_end_where_their_text_is_too_much(pool: IsolatedPool, single: IsolatedPool) -> None:
    given_texts = [f"{'a' * 99_000} b"] * 100
    beside, here = run(given_texts, pool)[0], run(given_texts, single)[0]
    assert [batch.num_rows for batch in beside] == [batch.num_rows for batch in here]
    assert max(batch.num_rows for batch in here) < 200


def test_little_is_done_in_this_process_alone() -> None:
    with IsolatedPool(2, timeout_s=60, memory_bytes=1 << 30) as pool:
        assert words_of(run(["few words"] * 10, pool)[0]) == ["few", "words"] * 10
        assert pool.running() == 0
        run(["word " * 20] * 20, pool)
        assert pool.running() == 2


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        ("hang", "ItemError: it took longer than 10 s"),
        ("grow", "ItemError: it needs more memory than one document may take"),
        ("crash", "ItemError: it ended the process that read it"),
        ("stumble", "KeyError: 'colour'"),
    ],
)
def test_of_a_task_that_fails_only_the_culprit_is_quarantined(pool: IsolatedPool, hostile: str, reason: str) -> None:
    given_texts = [f"word{number} " * 5 for number in range(100)]
    given_texts[17] = hostile
    batches, failures, told = run(given_texts, pool)
    assert words_of(batches) == [word for text in given_texts if text != hostile for word in text.split()]
    assert [failure.source_id for failure in failures] == ["17"]
    assert re.match(reason, failures[0].reason)
    assert told == 100


def test_a_process_that_is_killed_costs_nothing_but_time(pool: IsolatedPool, tmp_path: Path) -> None:
    given_texts = [f"word{number} " * 5 for number in range(100)]
    given_texts[50] = f"crash-once {tmp_path / 'there'}"
    batches, failures, _ = run(given_texts, pool)
    assert (tmp_path / "there").exists()
    assert (words_of(batches), failures) == ([word for text in given_texts for word in text.split()], [])
