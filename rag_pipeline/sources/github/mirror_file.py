"""The SQLite file that a mirror is kept in: its schema and format, how it is opened, transactions, and notes.

What its tables hold is `store`'s business.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from rag_pipeline.errors import PermanentError, TransientError
from rag_pipeline.sources.github.network_folders import is_on_network
from rag_pipeline.sources.sqlite_file import in_words, is_taken, spoken, transaction

_FORMAT = "3"
_MOST_TRIES = 200
_UPGRADES = {
    # What was seen before this column counts as listed then: an older delivery must not replace it.
    "2": (
        "ALTER TABLE resources ADD COLUMN listed_at TEXT NOT NULL DEFAULT ''",
        "UPDATE resources SET listed_at = seen_at WHERE NOT deleted",
        "INSERT INTO notes SELECT 'complete', '1' FROM notes WHERE name = 'loaded:pull'",
        "UPDATE notes SET value = '3' WHERE name = 'format'",
    ),
}
"""What makes a file of a former format one of the next; nothing is asked of GitHub again."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS resources (
    kind TEXT NOT NULL, id INTEGER NOT NULL, number INTEGER NOT NULL, version TEXT NOT NULL, seen_at TEXT NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL, listed_at TEXT NOT NULL DEFAULT '', PRIMARY KEY (kind, id)
);
CREATE INDEX IF NOT EXISTS resources_thread ON resources (number, kind);
CREATE TABLE IF NOT EXISTS pages (
    url TEXT PRIMARY KEY, list TEXT NOT NULL, etag TEXT NOT NULL, next TEXT, kind TEXT NOT NULL, ids TEXT NOT NULL,
    held TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS pages_list ON pages (list);
CREATE TABLE IF NOT EXISTS touched (number INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS only_moved (number INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS removals (
    kind TEXT NOT NULL, id INTEGER NOT NULL, number INTEGER NOT NULL, thread_kind TEXT NOT NULL, at TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS removals_thread ON removals (number);
CREATE TABLE IF NOT EXISTS threads (
    kind TEXT NOT NULL, number INTEGER NOT NULL, digest TEXT NOT NULL, seq INTEGER NOT NULL, changed_at TEXT NOT NULL,
    as_of TEXT NOT NULL, deleted INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (kind, number)
);
CREATE INDEX IF NOT EXISTS threads_seq ON threads (seq);
CREATE INDEX IF NOT EXISTS threads_changed ON threads (changed_at);
CREATE TABLE IF NOT EXISTS problems (name TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
"""


class MirrorFile:
    """An open mirror file; a context manager. `transaction` makes what is written inside it one change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with in_words(path):
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        self.close()
        if (ours := spoken(error, self._path)) is not None:
            raise ours from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _prepare(self) -> None:
        # Where several machines may have it open, readers wait while a page is being written.
        self._share("TRUNCATE" if is_on_network(self._path.parent.resolve()) else "WAL")
        # A power cut may lose the last pages read, which are then read again; it cannot damage the file.
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(_SCHEMA)
        if (found := self._upgrade()) != _FORMAT:
            raise PermanentError(
                f"{self._path} has format {found}, this code knows {_FORMAT}: update the code, or delete the file"
            )
        self.set_note("format", _FORMAT)

    def _upgrade(self) -> str:
        """Bring a file of a former format to ours; the format that it has then."""
        if (found := self.note("format") or _FORMAT) in _UPGRADES:
            with self.transaction():
                # Another process may have been first.
                found = self.note("format") or _FORMAT
                for statement in _UPGRADES.get(found, ()):
                    self._db.execute(statement)
                found = self.note("format") or _FORMAT
        return found

    def _share(self, journal: str) -> None:
        """With WAL, readers read while somebody writes. A new file it wants for itself, and SQLite does not wait."""
        for _ in range(_MOST_TRIES):
            try:
                self._db.execute(f"PRAGMA journal_mode = {journal}")
                return
            except sqlite3.OperationalError as error:
                if not is_taken(error):
                    raise
                time.sleep(0.05)
        raise TransientError("another process has kept the mirror's file locked since it was created: try again")

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing; nothing inside another one."""
        return transaction(self._db)

    def note(self, name: str) -> str | None:
        """A value that was noted; None when there is none."""
        row = self._db.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def set_note(self, name: str, value: str | None) -> None:
        """Note a value, or forget it (None). The same value again writes nothing."""
        if value is None:
            self._db.execute("DELETE FROM notes WHERE name = ?", (name,))
        elif self.note(name) != value:
            self._db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))
