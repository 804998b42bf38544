"""The file in which a repository's mirror keeps what GitHub said: resources, remembered pages, and settled threads.

One SQLite file per repository and tenant: a page and what it held are written in one transaction, so a killed run loses
at most the page it was reading. It stores and finds; what the resources mean is `resources`' and `threads`' business.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from pathlib import Path

from rag_pipeline.sources.github.resources import Body, Resource, precise
from rag_pipeline.sources.github.suspects import Suspects


class Change(IntEnum):
    """What keeping a resource changed."""

    NONE = 0
    MOVED = 1
    """Nothing but the time of its last change: something happened that the resource does not show."""
    STATE = 2


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


class Store(Suspects):
    """What a mirror file holds, by resource, thread, page and problem."""

    def __init__(self, path: Path, *, refused: Callable[[Resource], Resource] = lambda resource: resource) -> None:
        """`refused` says what may be kept of a resource: all of it, or a stub."""
        self.refused = refused
        super().__init__(path)

    # Resources -------------------------------------------------------------------------------------------------------

    def put(self, resource: Resource, *, seen_at: str, newer_only: bool = False) -> Change:
        """Keep a resource that was seen at a time (`seen_at`, as `precise` writes it); what that changed.

        What GitHub lists now is true now, even where an earlier look showed a later version, as before a server was
        restored; and what was deleted lives. Only of what was seen at the same time or before, the greater version
        stays: pages of one reading may be out of order.

        With `newer_only`, for what deliveries say: nothing that was sent before GitHub last listed the resource counts;
        of two states the greater version stays, of the same version the one seen later, whatever comes first; and what
        was deleted stays deleted.
        """
        resource = self.refused(resource)
        row = self._db.execute(
            "SELECT version, seen_at, body, deleted, number, listed_at FROM resources WHERE kind = ? AND id = ?",
            (resource.kind, resource.id),
        ).fetchone()
        version, body, listed_at = resource.version, _dump(resource.body), "" if newer_only else seen_at
        change = Change.STATE
        if row is not None:
            *known, deleted, number, known_listed_at = row
            listed_at = max(listed_at, known_listed_at)
            if newer_only and (deleted or seen_at < listed_at or [version, seen_at, body] <= known):
                return Change.NONE
            if not deleted:
                if version < known[0] and seen_at <= known[1]:
                    return Change.NONE
                if (body, resource.number) == (known[2], number):
                    if [version, seen_at, listed_at] != [known[0], known[1], known_listed_at]:
                        self._db.execute(
                            "UPDATE resources SET version = ?, seen_at = max(?, seen_at), listed_at = ?"
                            " WHERE kind = ? AND id = ?",
                            (version, seen_at, listed_at, resource.kind, resource.id),
                        )
                    return Change.NONE
                if _timeless(resource.body) == _timeless(json.loads(known[2])):
                    change = Change.MOVED
            seen_at = max(seen_at, known[1])
        self._db.execute(
            "INSERT OR REPLACE INTO resources (kind, id, number, version, seen_at, body, listed_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (resource.kind, resource.id, resource.number, version, seen_at, body, listed_at),
        )
        return change

    def contradicts(self, resource: Resource, *, seen_at: str) -> bool:
        """Whether a delivery shows another state, not an older one, than GitHub listed after it was sent."""
        row = self._db.execute(
            "SELECT version, listed_at, body FROM resources WHERE kind = ? AND id = ? AND NOT deleted",
            (resource.kind, resource.id),
        ).fetchone()
        if row is None or seen_at >= row[1] or resource.version < row[0]:
            return False
        return _dump(self.refused(resource).body) != str(row[2])

    def listed_at(self, kind: str, id_: int) -> str:
        """When GitHub itself last showed a living resource, as `precise` writes it; "": never."""
        row = self._db.execute(
            "SELECT listed_at FROM resources WHERE kind = ? AND id = ? AND NOT deleted", (kind, id_)
        ).fetchone()
        return str(row[0]) if row else ""

    def newer_than(self, kind: str, version: str) -> dict[int, str]:
        """Version by id of the living resources of a kind that changed after this version."""
        return dict(
            self._db.execute(
                "SELECT id, version FROM resources WHERE kind = ? AND version > ? AND NOT deleted", (kind, version)
            )
        )

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
            "INSERT OR REPLACE INTO resources (kind, id, number, version, seen_at, deleted, body)"
            " VALUES (?, ?, ?, ?, ?, 1, '{}')",
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

    def touch(self, *numbers: int, change: Change = Change.STATE) -> None:
        """Note that something of these threads may have changed; `change` says what is known of it."""
        rows = [(number,) for number in numbers]
        if change is Change.MOVED:
            self._db.executemany(
                "INSERT OR IGNORE INTO only_moved SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM touched WHERE number = ?1)",
                rows,
            )
        else:
            self._db.executemany("DELETE FROM only_moved WHERE number = ?", rows)
        self._db.executemany("INSERT OR IGNORE INTO touched VALUES (?)", rows)

    def only_moved(self, number: int) -> bool:
        """Whether a touched thread shows nothing that changed but its time."""
        return self._db.execute("SELECT 1 FROM only_moved WHERE number = ?", (number,)).fetchone() is not None

    def touched(self) -> list[int]:
        """The threads that were touched and not yet dealt with."""
        return [row[0] for row in self._db.execute("SELECT number FROM touched ORDER BY number")]

    def done(self, number: int) -> None:
        """It was dealt with."""
        self._db.execute("DELETE FROM touched WHERE number = ?", (number,))
        self._db.execute("DELETE FROM only_moved WHERE number = ?", (number,))

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


def _timeless(body: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in body.items() if key != "updated_at"}


def _just_after(as_of: str) -> str:
    return precise(datetime.fromisoformat(as_of) + timedelta(microseconds=1))
