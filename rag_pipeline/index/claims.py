"""Claims on texts: two runs at once never embed, and pay for, the same one.

A claim is a row that counts while its run holds an advisory lock of its session. A run that is killed loses its
session, and with it all its claims at once, without anyone waiting for a timeout.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final
from uuid import UUID

import psycopg

from rag_pipeline.index.database import Connection
from rag_pipeline.index.locks import Lock
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import EmbeddingSpace

_LEASE: Final = timedelta(hours=1)
"""A run that has embedded nothing of what it claimed for so long hangs: others go on without it."""
_NUMBERS: Final = 2**31


class Claims:
    """What one run claims in one space, over the connection that it embeds with; `close` it when it embeds no more.

    Costs nothing until a text is claimed.
    """

    def __init__(self, connection: Connection, space: EmbeddingSpace) -> None:
        self._connection = connection
        self._space = space
        self._run: int | None = None
        self._done: list[UUID] = []

    def take(self, hashes: Sequence[UUID]) -> set[UUID]:
        """Claim the texts that no other living run has claimed; returns them. What is done is given up."""
        values = {
            "space": self._space.space_id,
            "hashes": list(hashes),
            "run": self._number(),
            "lock": int(Lock.CLAIMS),
            "done": self._done,
            "lease": _LEASE,
        }
        taken = {row[0] for row in self._connection.execute(queries("claims")["take"], values)}
        self._done = []
        return taken

    def done(self, hashes: Sequence[UUID]) -> None:
        """These are embedded, or refused: others may have them, from the next `take` on."""
        self._done += hashes

    def close(self) -> None:
        """Give up all that was claimed."""
        if self._run is None:
            return
        values = {"run": self._run, "lock": int(Lock.CLAIMS)}
        self._run = None
        # A broken connection ends, and with it the lock that makes claims count.
        with suppress(psycopg.Error):
            self._connection.execute(queries("claims")["give_up"], values)
            self._connection.execute(queries("claims")["leave"], values)

    def _number(self) -> int:
        """The run's own number, whose lock is held from now on."""
        while self._run is None:
            values = {"lock": int(Lock.CLAIMS), "run": secrets.randbelow(_NUMBERS)}
            entered = self._connection.execute(queries("claims")["enter"], values).fetchone()
            if entered and entered[0]:
                self._run = values["run"]
                self._connection.execute(queries("claims")["remove_dead"], values)
        return self._run
