"""What people at a terminal are told of an error: ours as it is, those of PostgreSQL and the file system in words."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import Final

from rag_pipeline.errors import RagPipelineError

_OF_DRIVER: Final = re.compile(r"\(psycopg2\.(?:errors\.)?(?P<kind>\w+)\) (?P<said>.+)")
"""How SQLAlchemy prints what Dagster's driver raised."""


def in_words(error: BaseException) -> RagPipelineError | None:
    """The error of ours that this is or stands for, or one that it came of; None: nobody foresaw it."""
    if isinstance(error, RagPipelineError):
        return error
    from rag_pipeline.index import refusals as of_database
    from rag_pipeline.lake import refusals as of_files

    for cause in _chain(error):
        if isinstance(cause, RagPipelineError):
            return cause
        if found := of_database.spoken(cause) or _of_dagster(cause):
            return found
        # A reader of ours that has gone away (`| head`) is nobody's trouble.
        if isinstance(cause, OSError) and cause.errno != errno.EPIPE and (refused := of_files.spoken(cause)):
            return refused
    return None


def told_in_words(said: str) -> RagPipelineError | None:
    """Our error for one of Dagster's own records that is left only as it was printed; None: nobody foresaw it."""
    import psycopg

    from rag_pipeline.index.refusals import spoken_state

    found = _OF_DRIVER.search(said)
    if found is None:
        return None
    kind = getattr(psycopg.errors, found["kind"], psycopg.Error)
    return spoken_state(kind.sqlstate, found["said"], lost=issubclass(kind, psycopg.OperationalError))


def _of_dagster(error: BaseException) -> RagPipelineError | None:
    """Dagster keeps its records by another driver (SQLAlchemy over psycopg2), which gives the same codes."""
    from rag_pipeline.index.refusals import spoken_state

    driver = getattr(error, "orig", error)
    if type(driver).__module__.partition(".")[0] != "psycopg2":
        return None
    kinds = {kind.__name__ for kind in type(driver).__mro__}
    lost = not kinds.isdisjoint({"OperationalError", "InterfaceError"})
    return spoken_state(getattr(driver, "pgcode", None), str(driver), lost=lost)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it came of, the nearest first."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
