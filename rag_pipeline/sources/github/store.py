"""The file in which a repository's mirror keeps what GitHub said: resources, remembered pages, and settled threads.

One SQLite file per repository and tenant: a page and what it held are written in one transaction, so a killed run loses
at most the page it was reading. It stores and finds; what the resources mean is `resources`' and `threads`' business.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from rag_pipeline.errors import PermanentError, TransientError
from rag_pipeline.sources.github.network_folders import is_on_network
from rag_pipeline.sources.github.resources import Body, Resource, precise
from rag_pipeline.sources.sqlite_file import in_words, is_taken, spoken, transaction

_FORMAT = "2"
_MOST_TRIES = 200
_SCHEMA = """
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS resources (
    kind TEXT NOT NULL, id INTEGER NOT NULL, number INTEGER NOT NULL, version TEXT NOT NULL, seen_at TEXT NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL, PRIMARY KEY (kind, id)
);
CREATE INDEX IF NOT EXISTS resources_thread ON resources (number, kind);
CREATE TABLE IF NOT EXISTS pages (
    url TEXT PRIMARY KEY, list TEXT NOT NULL, etag TEXT NOT NULL, next TEXT, kind TEXT NOT NULL, ids TEXT NOT NULL,
    held TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS pages_list ON pages (list);
CREATE TABLE IF NOT EXISTS touched (number INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS threads (
    kind TEXT NOT NULL, number INTEGER NOT NULL, digest TEXT NOT NULL, seq INTEGER NOT NULL, changed_at TEXT NOT NULL,
    as_of TEXT NOT NULL, deleted INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (kind, number)
);
CREATE INDEX IF NOT EXISTS threads_seq ON threads (seq);
CREATE INDEX IF NOT EXISTS threads_changed ON threads (changed_at);
CREATE TABLE IF NOT EXISTS problems (name TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A thread as it stood whole; `seq` grows with every change of any thread."""

    kind: str
    number: int
    digest: str
    seq: int
    changed_at: datetime
    """The last change that GitHub shows; of a tombstone, when it was noticed."""
    as_of: datetime
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedPage:
    """What is known of a page that GitHub says has not changed."""

    etag: str
    next: str | None
    ids: Sequence[int]


class Store:
    """An open mirror file; a context manager. `transaction` makes what is written inside it one change."""

    def __init__(self, path: Path, *, refused: Callable[[Resource], Resource] = lambda resource: resource) -> None:
        """`refused` says what may be kept of a resource: all of it, or a stub."""
        self.refused = refused
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with in_words(path):
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Store:
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
        if (found := self.note("format") or _FORMAT) != _FORMAT:
            raise PermanentError(
                f"{self._path} has format {found}, this code knows {_FORMAT}: update the code, or delete the file"
            )
        self.set_note("format", _FORMAT)

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

    # Resources -------------------------------------------------------------------------------------------------------

    def put(self, resource: Resource, *, seen_at: str, newer_only: bool = False) -> bool:
        """Keep a resource; whether that changed anything. An older version never replaces a newer one.

        What GitHub lists is there: it also replaces another state of the same version, and what was deleted lives. With
        `newer_only`, for what deliveries say, of two states of the same version the one seen later (`seen_at`, as
        `precise` writes it) stays, whatever comes first; and what was deleted stays deleted.
        """
        resource = self.refused(resource)
        row = self._db.execute(
            "SELECT deleted, version, seen_at, body, number FROM resources WHERE kind = ? AND id = ?",
            (resource.kind, resource.id),
        ).fetchone()
        version, body = resource.version, _dump(resource.body)
        if row is not None:
            deleted, *known, number = row
            if newer_only and (deleted or [version, seen_at, body] <= known):
                return False
            if not deleted and version < known[0]:
                return False
            if not deleted and (body, resource.number) == (known[2], number):
                if [version, seen_at] > known[:2]:
                    self._db.execute(
                        "UPDATE resources SET version = ?, seen_at = max(?, seen_at) WHERE kind = ? AND id = ?",
                        (version, seen_at, resource.kind, resource.id),
                    )
                return False
        self._db.execute(
            "INSERT OR REPLACE INTO resources VALUES (?, ?, ?, ?, ?, 0, ?)",
            (resource.kind, resource.id, resource.number, version, seen_at, body),
        )
        return True

    def body(self, kind: str, id_: int) -> Body | None:
        """What a resource holds; None when it is not known or was deleted."""
        row = self._db.execute(
            "SELECT body FROM resources WHERE kind = ? AND id = ? AND NOT deleted", (kind, id_)
        ).fetchone()
        return json.loads(row[0]) if row else None

    def bodies(self, kind: str, number: int) -> list[tuple[int, Body]]:
        """(id, body) of a thread's living resources of a kind, by id."""
        rows = self._db.execute(
            "SELECT id, body FROM resources WHERE number = ? AND kind = ? AND NOT deleted ORDER BY id", (number, kind)
        )
        return [(row[0], json.loads(row[1])) for row in rows]

    def living(self, kind: str) -> dict[int, int]:
        """Thread number by id, of all living resources of a kind."""
        return dict(self._db.execute("SELECT id, number FROM resources WHERE kind = ? AND NOT deleted", (kind,)))

    def living_of(self, kind: str, number: int) -> list[int]:
        """Ids of a thread's living resources of a kind."""
        rows = self._db.execute(
            "SELECT id FROM resources WHERE number = ? AND kind = ? AND NOT deleted", (number, kind)
        )
        return [row[0] for row in rows]

    def versions(self, kind: str, ids: Sequence[int]) -> list[str]:
        """Of these resources, in this order; those that are not known are left out."""
        rows = self._db.execute(
            "SELECT id, version FROM resources WHERE kind = ? AND id IN (SELECT value FROM json_each(?))",
            (kind, json.dumps(list(ids))),
        )  # fmt: skip
        found = dict(rows)
        return [found[id_] for id_ in ids if id_ in found]

    def is_deleted(self, kind: str, id_: int) -> bool:
        """Whether a resource is known to be gone."""
        row = self._db.execute("SELECT deleted FROM resources WHERE kind = ? AND id = ?", (kind, id_)).fetchone()
        return bool(row and row[0])

    def delete(self, kind: str, id_: int, *, number: int, at: str) -> bool:
        """Keep that a resource is gone, known or not: late news of it cannot bring it back. Whether it was news."""
        row = self._db.execute(
            "SELECT deleted, number FROM resources WHERE kind = ? AND id = ?", (kind, id_)
        ).fetchone()
        if row and row[0]:
            return False
        self._db.execute(
            "INSERT OR REPLACE INTO resources VALUES (?, ?, ?, ?, ?, 1, '{}')",
            (kind, id_, row[1] if row else number, at, at),
        )
        return True

    def resources(self) -> list[Resource]:
        """Every living resource there is."""
        rows = self._db.execute("SELECT kind, id, number, version, body FROM resources WHERE NOT deleted")
        return [
            Resource(kind=kind, id=id_, number=number, version=version, body=json.loads(body))
            for kind, id_, number, version, body in rows
        ]

    def rewrite(self, resource: Resource) -> None:
        """Put another body in place of a resource's, whatever its version."""
        values = (_dump(resource.body), resource.kind, resource.id)
        self._db.execute("UPDATE resources SET body = ? WHERE kind = ? AND id = ?", values)

    def compact(self) -> None:
        """Write the file anew, so that nothing of what was deleted is left in it or in its log."""
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # Threads ---------------------------------------------------------------------------------------------------------

    def touch(self, *numbers: int) -> None:
        """Note that something of these threads may have changed."""
        self._db.executemany("INSERT OR IGNORE INTO touched VALUES (?)", [(number,) for number in numbers])

    def touched(self) -> list[int]:
        """The threads that were touched and not yet dealt with."""
        return [row[0] for row in self._db.execute("SELECT number FROM touched ORDER BY number")]

    def done(self, number: int) -> None:
        """It was dealt with."""
        self._db.execute("DELETE FROM touched WHERE number = ?", (number,))

    def settle(
        self, kind: str, number: int, *, digest: str, changed_at: str, as_of: datetime, deleted: bool, content: bytes
    ) -> bool:
        """Keep a thread's state; False when it is the one that is kept already."""
        row = self._db.execute(
            "SELECT digest, deleted, as_of FROM threads WHERE kind = ? AND number = ?", (kind, number)
        ).fetchone()
        if row and (row[0], bool(row[1])) == (digest, deleted):
            return False
        # Two looks within one tick of the clock still have an order.
        seen = max(precise(as_of), _just_after(row[2]) if row else "")
        self._db.execute(
            "INSERT OR REPLACE INTO threads"
            " VALUES (?, ?, ?, (SELECT coalesce(max(seq), 0) + 1 FROM threads), ?, ?, ?, ?)",
            (kind, number, digest, changed_at, seen, int(deleted), zlib.compress(content, 3)),
        )
        return True

    def forget_thread(self, kind: str, number: int) -> None:
        """Keep nothing of what was settled of a thread."""
        self._db.execute("DELETE FROM threads WHERE kind = ? AND number = ?", (kind, number))

    def threads(self, *, after: int = 0) -> list[Settled]:
        """The settled threads that changed after `after` (a `seq`), oldest change first; without their contents."""
        rows = self._db.execute(
            "SELECT kind, number, digest, seq, changed_at, as_of, deleted FROM threads WHERE seq > ?"
            " ORDER BY changed_at, kind, number", (after,),
        )  # fmt: skip
        return [_settled(row) for row in rows]

    def threads_between(self, first: str, last: str) -> list[Settled]:
        """The settled threads whose last change lies between two moments (as text, both included)."""
        rows = self._db.execute(
            "SELECT kind, number, digest, seq, changed_at, as_of, deleted FROM threads WHERE changed_at BETWEEN ? AND ?"
            " ORDER BY changed_at, kind, number", (first, last),
        )  # fmt: skip
        return [_settled(row) for row in rows]

    def thread(self, kind: str, number: int) -> Settled | None:
        """One settled thread."""
        row = self._db.execute(
            "SELECT kind, number, digest, seq, changed_at, as_of, deleted FROM threads WHERE kind = ? AND number = ?",
            (kind, number),
        ).fetchone()
        return _settled(row) if row else None

    def content(self, kind: str, number: int) -> bytes:
        """A settled thread's content."""
        row = self._db.execute("SELECT content FROM threads WHERE kind = ? AND number = ?", (kind, number)).fetchone()
        return zlib.decompress(row[0]) if row else b""

    def newest_change(self) -> datetime | None:
        """When the newest change of a settled thread was; None: there is none."""
        newest = self._db.execute("SELECT max(changed_at) FROM threads").fetchone()[0]
        return datetime.fromisoformat(newest) if newest else None

    def last_seq(self) -> int:
        """The newest change there is; 0: none."""
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM threads").fetchone()[0])

    # Pages and problems ----------------------------------------------------------------------------------------------

    def page(self, url: str) -> RememberedPage | None:
        """What is remembered of a page; None when what it held has changed here since, so that it proves nothing."""
        row = self._db.execute("SELECT etag, next, ids, kind, held FROM pages WHERE url = ?", (url,)).fetchone()
        if row is None or self._held(row[3], row[2]) != row[4]:
            return None
        return RememberedPage(etag=row[0], next=row[1], ids=json.loads(row[2]))

    def remember_page(
        self, url: str, *, listing: str, etag: str | None, next_url: str | None, kind: str, ids: Sequence[int]
    ) -> None:
        """Remember a page, once its resources are kept, under its listing's name; without an ETag nothing is."""
        if etag:
            listed = json.dumps(list(ids))
            row = (url, listing, etag, next_url, kind, listed, self._held(kind, listed))
            self._db.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _held(self, kind: str, ids: str) -> str:
        """A digest of the state that resources have here; `ids` is a JSON list."""
        rows = self._db.execute(
            "SELECT id, number, deleted, body FROM resources"
            " WHERE kind = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY id", (kind, ids),
        )  # fmt: skip
        digest = hashlib.blake2b(digest_size=16)
        for row in rows:
            digest.update(repr(row).encode())
        return digest.hexdigest()

    def forget_pages(self, listing: str, *, keep: Sequence[str] = ()) -> None:
        """Forget a listing's pages but these: their addresses hold times that are never asked for again."""
        rows = self._db.execute("SELECT url FROM pages WHERE list = ?", (listing,)).fetchall()
        self._db.executemany("DELETE FROM pages WHERE url = ?", [row for row in rows if row[0] not in keep])

    def set_problem(self, name: str, reason: str) -> None:
        """Something that GitHub sent could not be used."""
        self._db.execute("INSERT OR REPLACE INTO problems VALUES (?, ?)", (name, reason))

    def clear_problem(self, name: str) -> None:
        """It is none any more."""
        self._db.execute("DELETE FROM problems WHERE name = ?", (name,))

    def clear_problems(self) -> None:
        """Forget them: they are met again if they are still there."""
        self._db.execute("DELETE FROM problems")

    def problems(self) -> list[tuple[str, str]]:
        """(name, reason) of what could not be used."""
        return self._db.execute("SELECT name, reason FROM problems ORDER BY name").fetchall()


def _settled(row: Sequence[object]) -> Settled:
    kind, number, digest, seq, changed_at, as_of, deleted = row
    return Settled(
        kind=str(kind), number=int(str(number)), digest=str(digest), seq=int(str(seq)),
        changed_at=datetime.fromisoformat(str(changed_at)), as_of=datetime.fromisoformat(str(as_of)),
        deleted=bool(deleted),
    )  # fmt: skip


def _dump(body: Mapping[str, object]) -> str:
    # Lone surrogates, which JSON may carry, have no place in a UTF-8 file.
    return json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _just_after(as_of: str) -> str:
    return precise(datetime.fromisoformat(as_of) + timedelta(microseconds=1))
