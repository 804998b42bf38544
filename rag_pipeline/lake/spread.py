"""A stage's work on the rows of its input, spread over the cores where there is enough of it.

The rows that come out, their order and their batches are the same wherever the work is done. What passes between the
processes is Arrow: rows are made into nouns, and nouns into rows, where the work is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Final, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rag_pipeline.errors import ItemError
from rag_pipeline.isolated_pool import IsolatedPool
from rag_pipeline.isolation import SMALL_CHARS, Isolated
from rag_pipeline.lake.schemas import rebatched, to_batches
from rag_pipeline.machine import usable_cores
from rag_pipeline.model import Chunk, Document, Failure, SourceItem
from rag_pipeline.progress import Advance
from rag_pipeline.settings import Documents

_TASKS_WORTH_IT: Final = 5
"""A task is this part of what is worth starting a process for: a fifth of a second, beside which sending it there and
back is nothing."""
MAX_PROCESSES: Final = 8
"""One process that reads and writes Parquet keeps no more than this many busy."""

In = TypeVar("In", SourceItem, Document)
Out = TypeVar("Out", Document, Chunk, covariant=True)


class Step(Protocol[In, Out]):
    """What a stage makes of one row of its input. Picklable: it is taken to where the work is."""

    schema: ClassVar[pa.Schema]
    """Of what it makes."""
    sized_by: ClassVar[str]
    """The column of its input whose length says how much work a row is."""
    worth: ClassVar[int]
    """So much of that column is worth starting a process for."""

    def read(self, batch: pa.RecordBatch, /) -> Iterator[In]:
        """The nouns of a batch of its input."""

    def check(self, size: int, /) -> None:
        """Raises `ItemError` for a row that is too long to be looked at."""

    def made(self, noun: In, /) -> Sequence[Out]:
        """What becomes of one noun; whatever it raises is that noun's failure."""

    def failure(self, noun: In, error: Exception, /) -> Failure:
        """What is put on record of a noun that nothing could be made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """Rows that are worked on together: short ones, or a single long one."""

    rows: pa.RecordBatch
    size: int

    @property
    def is_long(self) -> bool:
        return self.size > SMALL_CHARS and self.rows.num_rows == 1

    def alone(self) -> Iterator[_Task]:
        """Each of the rows as a task of its own."""
        return (_Task(rows=self.rows.slice(row, 1), size=0) for row in range(self.rows.num_rows))


_Made = tuple[bytes, list[Failure]]
"""Batches in Arrow's stream format, and what could not be made into rows."""


def pool_of(processes: int | None, limits: Documents) -> IsolatedPool:
    """The processes of a stage, of which none is started yet; None: as many as there are cores to use."""
    count = processes or min(usable_cores(), MAX_PROCESSES)
    return IsolatedPool(count, timeout_s=limits.timeout_s, memory_bytes=limits.memory_bytes)


def spread(
    batches: Iterable[pa.RecordBatch], step: Step[In, Out], *, pool: IsolatedPool, failures: list[Failure],
    advance: Advance,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """What the step makes of all rows, in their order; what fails is appended to `failures`.

    A long row is worked on in a process of its own, with its limits of time and memory. So are all of them where there
    are enough for several processes.
    """
    task_size = step.worth // _TASKS_WORTH_IT
    tasks = _tasks(batches, step.sized_by, task_size=task_size)
    worth = step.worth if pool.running() < 2 else task_size  # those of the part before are still there
    first: list[_Task] = []
    size = 0
    while size < len(pool) * worth and (task := next(tasks, None)):
        first.append(task)
        size += task.size
    at_once = min(len(pool), size // worth)
    coming = chain(first, tasks)
    if at_once > 1:
        return _beside(coming, step, pool, failures, advance, at_once=at_once)
    return to_batches(_here(coming, step, pool, failures, advance), step.schema, size=_text_size)


def _text_size(noun: Document | Chunk) -> int:
    return len(noun.text)


def _tasks(batches: Iterable[pa.RecordBatch], sized_by: str, *, task_size: int) -> Iterator[_Task]:
    for batch in batches:
        start = size = 0
        for row, length in enumerate(_lengths(batch.column(sized_by))):
            if start < row and (length > SMALL_CHARS or size + length > task_size):
                yield _Task(rows=batch.slice(start, row - start), size=size)
                start, size = row, 0
            size += length
            if length > SMALL_CHARS:
                yield _Task(rows=batch.slice(row, 1), size=length)
                start, size = row + 1, 0
        if start < batch.num_rows:
            yield _Task(rows=batch.slice(start), size=size)


def _lengths(column: pa.Array) -> list[int]:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return (pc.utf8_length if is_text else pc.binary_length)(column).to_pylist()  # type: ignore[no-any-return]


def _here(
    tasks: Iterable[_Task], step: Step[In, Out], pool: IsolatedPool, failures: list[Failure], advance: Advance
) -> Iterator[Out]:
    for task in tasks:
        for noun in step.read(task.rows):
            advance()
            try:
                if task.is_long:
                    step.check(task.size)
                    with pool.one() as isolated:
                        made = isolated.call(step.made, noun)
                else:
                    made = step.made(noun)
            except Exception as error:
                # Whatever one of them does to a parser must not stop the others.
                failures.append(step.failure(noun, error))
            else:
                yield from made


def _beside(
    tasks: Iterable[_Task], step: Step[In, Out], pool: IsolatedPool, failures: list[Failure], advance: Advance, *,
    at_once: int,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    def work(isolated: Isolated, task: _Task) -> tuple[int, list[_Made]]:
        return task.rows.num_rows, _made_by(isolated, step, task)

    def received() -> Iterator[pa.RecordBatch]:
        for rows, made in pool.map(work, tasks, at_once=at_once):
            advance(rows)
            for content, failed in made:
                failures.extend(failed)
                if content:
                    yield from pa.ipc.open_stream(content)

    return rebatched(received(), sized_by="text")


def _made_by(isolated: Isolated, step: Step[In, Out], task: _Task) -> list[_Made]:
    """What another process makes of a task. Of one that it does not survive, each row gets another chance alone."""
    try:
        if task.is_long:
            step.check(task.size)
        return [isolated.call(_made, step, _sent([task.rows], task.rows.schema), is_long=task.is_long)]
    except ItemError as error:
        if task.rows.num_rows > 1:
            return [made for one in task.alone() for made in _made_by(isolated, step, one)]
        return [(b"", [step.failure(noun, error) for noun in step.read(task.rows)])]


def _made(step: Step[In, Out], content: bytes, *, is_long: bool) -> _Made:
    """What the step makes of the rows, in the process that does the work."""
    failures: list[Failure] = []

    def made() -> Iterator[Out]:
        for batch in pa.ipc.open_stream(content):
            for noun in step.read(batch):
                try:
                    yield from step.made(noun)
                except MemoryError:
                    raise  # it may be another one's doing
                except Exception as error:
                    if is_long:
                        raise
                    failures.append(step.failure(noun, error))

    return _sent(to_batches(made(), step.schema, size=_text_size), step.schema), failures


def _sent(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
