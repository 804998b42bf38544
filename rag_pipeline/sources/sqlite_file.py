"""Files of ours that SQLite keeps: changes that are whole, and what it refuses, in words that say what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rag_pipeline.errors import RagPipelineError, StorageUnavailable, TransientError

_KEPT: Final = "what was done so far is kept, and the next run goes on from there"
_TAKEN: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_ADVICE: Final = {
    sqlite3.SQLITE_FULL: "make room there, or let RAG_HOME name a larger disk",
    sqlite3.SQLITE_IOERR: "look at the disk: it is full, or it fails",
    sqlite3.SQLITE_CANTOPEN: "see that it is a file, and that this user may read and write it and its folder",
    sqlite3.SQLITE_READONLY: "give this user the right to write it and its folder",
    sqlite3.SQLITE_PERM: "give this user the right to read and write it",
}


def spoken(error: BaseException | None, file: Path) -> RagPipelineError | None:
    """Our error for what SQLite refused about a file; None: nobody foresaw it, it is a defect.

    Codes: https://www.sqlite.org/rescode.html
    """
    if not isinstance(error, sqlite3.Error):
        return None
    code = _code(error)
    if code in _TAKEN:
        return TransientError(f"another process has kept {file} locked: {error}; try again")
    if code in _DAMAGED:
        return StorageUnavailable(
            f"{file} is damaged: {error}: delete that file, and {file.name}-wal and {file.name}-shm if they are beside "
            "it, then run again: what it held is read from its source anew, and what is indexed stays"
        )
    if code in _ADVICE:
        return StorageUnavailable(f"{file} cannot be used: {error}: {_ADVICE[code]}; {_KEPT}")
    return None


def is_taken(error: sqlite3.Error) -> bool:
    """Whether another process has the file, which passes."""
    return _code(error) in _TAKEN


@contextmanager
def in_words(file: Path) -> Iterator[None]:
    """What SQLite refuses about the file inside is raised as one of our errors.

    Raises:
        TransientError: another process kept the file for too long.
        StorageUnavailable: somebody has to do something first.
    """
    try:
        yield
    except sqlite3.Error as error:
        ours = spoken(error, file)
        if ours is None:
            raise
        raise ours from error


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; nothing inside another one."""
    if database.in_transaction:
        yield
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        # A full disk has ended it already: then there is nothing to roll back, and the disk is what to speak of.
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise


def _code(error: sqlite3.Error) -> int:
    # Extended codes hold the primary one in their lowest byte; errors of Python's own have none.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
