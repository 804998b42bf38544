"""Every point at which work becomes visible outside of its process, counted, so that it can die before any of them.

An effect is a statement or a row of COPY on its way to PostgreSQL, a commit of SQLite, a request over HTTP, a file that
is opened for writing, renamed or removed, a program that is started. Between two effects a death changes nothing that
others could see; so to die before each of them is to die at every moment.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import httpx
import psycopg

_FILES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "subprocess.Popen")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Effects:
    """Counts the effects of this process from now on; with `die_before`, kill -9 comes before that one.

    For a child that ends soon: what is hooked in here stays.
    """

    def __init__(self, counted: Path, *, die_before: int | None = None) -> None:
        """`counted`: where `report` writes how many there were."""
        self._counted = counted
        self._die_before = die_before
        self._count = 0
        self._busy = False
        sys.addaudithook(self._audit)
        self._hook(psycopg.Connection, "wait")
        self._hook(httpx.Client, "send")
        sqlite3.connect = self._sqlite(sqlite3.connect)  # type: ignore[assignment]

    def note(self) -> None:
        """One more is about to happen."""
        self._count += 1
        if self._count == self._die_before:
            os.kill(os.getpid(), signal.SIGKILL)

    def report(self) -> None:
        """Write down how many there were."""
        self._die_before = None
        self._counted.write_text(str(self._count), encoding="utf-8")

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FILES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING):
            self.note()

    def _hook(self, owner: type, name: str) -> None:
        original = getattr(owner, name)

        def noted(*args: Any, **kwargs: Any) -> Any:
            self.note()
            return original(*args, **kwargs)

        setattr(owner, name, noted)

    def _sqlite(self, connect: Any) -> Any:
        effects = self

        class Counted(sqlite3.Connection):
            def execute(self, *args: Any) -> sqlite3.Cursor:
                effects.note()
                return super().execute(*args)

            def executemany(self, *args: Any) -> sqlite3.Cursor:
                effects.note()
                return super().executemany(*args)

        return lambda *args, **kwargs: connect(*args, **{"factory": Counted, **kwargs})
