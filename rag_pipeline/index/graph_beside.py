"""The first HNSW graph of a space, built on a connection of its own while documents are written on another.

The vectors are all there before the first document is written, and nobody writes them meanwhile; so the two have
nothing to wait for but each other's cores.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from threading import Event
from typing import Final, TypeAlias

import psycopg

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection
from rag_pipeline.index.graph import WORKERS, build_graph, lacks_graph
from rag_pipeline.index.spaces import numbered_space, vector_table
from rag_pipeline.machine import usable_cores
from rag_pipeline.model import EmbeddingSpace

_log = logging.getLogger(__name__)

Connect: TypeAlias = Callable[[], AbstractContextManager[Connection]]
"""Opens a connection as `connected` does."""
_LOOK_S: Final = 0.1


@contextmanager
def graph_beside(
    connection: Connection, space: EmbeddingSpace, *, connect: Connect | None
) -> Iterator[Callable[[], bool]]:
    """While this lasts, the space's graph is built, if it has none and holds vectors; nothing is done otherwise.

    Yields what waits for its end and says whether one was built; it raises what the build raised. When this ends by an
    error, so does the build. Statistics are not taken: the tables of chunks and documents are still being filled. Where
    there is no connection to be had for it (`connect` is None, or finds the database full), nothing is built either.
    """
    if connect is None or not lacks_graph(connection, space, vector_table(space)):
        yield lambda: False
        return
    # On the machine where we are ourselves, one core is ours.
    workers = max(1, usable_cores() - 1) if (connection.info.host or "/").startswith("/") else WORKERS
    build = _Build(space, connect=connect, workers=workers)
    with ThreadPoolExecutor(1, thread_name_prefix="graph") as pool:
        future = pool.submit(build.run)
        try:
            yield lambda: build.wait(future)
        except BaseException:
            build.end(future)
            raise


class _Build:
    def __init__(self, space: EmbeddingSpace, *, connect: Connect, workers: int) -> None:
        self._space, self._connect, self._workers = space, connect, workers
        self._connection: Connection | None = None
        self._asked_to_end = Event()

    def run(self) -> bool:
        try:
            with self._connect() as connection:
                self._connection = connection
                if self._asked_to_end.is_set():
                    return False
                space = numbered_space(connection, self._space.space_id)
                return build_graph(connection, space, vector_table(space), workers=self._workers, analyzed=False)
        except DatabaseUnavailable as error:
            _log.warning("the graph is built after the documents, not beside them: %s", error)
            return False

    def wait(self, future: Future[bool]) -> bool:
        """In pieces, so that Ctrl-C is heard."""
        while wait([future], timeout=_LOOK_S).not_done:
            pass
        return future.result()

    def end(self, future: Future[bool]) -> None:
        """Again and again: what is cancelled before its statement has begun goes on."""
        self._asked_to_end.set()
        while not future.done():
            if self._connection is not None and not self._connection.closed:
                try:
                    self._connection.cancel_safe(timeout=5)
                except psycopg.Error as error:
                    _log.warning("the build of the graph was not cancelled: %s", error)
            wait([future], timeout=_LOOK_S)
