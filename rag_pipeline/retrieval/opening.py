"""A connection of one's own to read with: of the replica, where one is configured and answers, else of the database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rag_pipeline.embedded import existing_database_url
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.settings import Settings

_log = logging.getLogger(__name__)


@contextmanager
def opened_for_reading(
    settings: Settings, *, primary: Callable[[Settings], str] = existing_database_url
) -> Iterator[Connection]:
    """A connection that speaks `halfvec`, closed at the end; `primary` gives the database's own address.

    Raises:
        DatabaseUnavailable: neither of them answers.
    """
    with ExitStack() as held:
        yield _opened(held, settings, primary)


def _opened(held: ExitStack, settings: Settings, primary: Callable[[Settings], str]) -> Connection:
    if settings.replica_url:
        try:
            return held.enter_context(connected(settings.replica_url))
        except DatabaseUnavailable as error:
            _log.warning("the database is read in place of its replica: %s", error)
    return held.enter_context(connected(primary(settings)))
