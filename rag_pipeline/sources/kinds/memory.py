"""What a block's listings showed, in one SQLite file per block: so that changes and deletions can be told.

Each change of any item gets the next number; progress is a number. A listing is taken in whole or not at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote
from uuid import uuid4

from filelock import FileLock, Timeout

from rag_pipeline.errors import PermanentError, TransientError
from rag_pipeline.forgotten import Forgotten
from rag_pipeline.settings import Settings
from rag_pipeline.sources.kinds.protocol import Listed, SourceBlock
from rag_pipeline.sources.sqlite_file import in_words, transaction

_LOCK_TIMEOUT_S = 3600
_SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    source_id TEXT PRIMARY KEY, version TEXT NOT NULL, changed_at TEXT NOT NULL, as_of TEXT NOT NULL,
    seq INTEGER NOT NULL, deleted INTEGER NOT NULL, failed INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS items_seq ON items (seq);
CREATE TABLE IF NOT EXISTS births (birth TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An item as the last listings showed it, or that they no longer show it."""

    source_id: str
    version: str
    changed_at: datetime
    """Of what is gone: when that was noticed."""
    as_of: datetime
    """When this state was first seen."""
    seq: int
    deleted: bool
    failed: bool
    """Reading it failed the last time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a listing said that was not known."""

    changed: int = 0
    removed: int = 0
    withheld: int = 0
    """Items that are no longer listed, and kept, because they are too many to be believed."""


class Memory:
    """An open memory."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
        try:
            self._db.executescript(_SCHEMA)
        except BaseException:
            self._db.close()
            raise

    @property
    def birth(self) -> str:
        """Names the file: one that was lost and is made again counts from one again."""
        with transaction(self._db):
            row = self._db.execute("SELECT birth FROM births").fetchone()
            if row is None:
                row = (uuid4().hex,)
                self._db.execute("INSERT INTO births VALUES (?)", row)
        return str(row[0])

    @contextmanager
    def listing(self) -> Iterator[None]:
        """The right to list: a listing that began earlier must not be taken in after a newer one.

        Raises:
            TransientError: another process held it for an hour.
        """
        try:
            with FileLock(self._path.with_suffix(".lock"), timeout=_LOCK_TIMEOUT_S):
                yield
        except Timeout as error:
            raise TransientError(
                f"another run has been listing {self._path.stem} for an hour: wait for it, or end it"
            ) from error

    def observe(self, listing: Iterable[Listed], *, block: SourceBlock, now: datetime) -> Observed:
        """Take a whole listing in.

        Raises:
            PermanentError: the listing names a time without a zone, or one thing twice.
        """
        listed: dict[str, Listed] = {}
        for item in listing:
            if item.changed_at.tzinfo is None:
                raise PermanentError(f"{block.name}: changed_at of {item.source_id!r} has no time zone: give it one")
            if item.source_id in listed:
                raise PermanentError(f"{block.name}: {item.source_id!r} is listed twice: a source_id is for one thing")
            listed[item.source_id] = item
        with transaction(self._db):
            known = {item.source_id: item for item in self.items()}
            last = max((item.seq for item in known.values()), default=0)
            changed = [item for item in listed.values() if _is_new(item, known.get(item.source_id))]
            gone = [item for item in known.values() if not item.deleted and item.source_id not in listed]
            alive = sum(not item.deleted for item in known.values())
            withheld = len(gone) > block.max_removed_items and len(gone) > block.max_removed_share * alive
            for item in changed:
                last += 1
                self._put(item.source_id, item.version, item.changed_at, now, last, deleted=False)
            for lost in [] if withheld else gone:
                last += 1
                self._put(lost.source_id, lost.version, now, now, last, deleted=True)
        return Observed(
            changed=len(changed), removed=0 if withheld else len(gone), withheld=len(gone) if withheld else 0
        )

    def items(self, *, after: int = 0) -> list[Known]:
        """All items whose last change has a number greater than `after`, in the order of their identities."""
        rows = self._db.execute(
            "SELECT source_id, version, changed_at, as_of, seq, deleted, failed FROM items WHERE seq > ? ORDER BY 1",
            (after,),
        )
        return [
            Known(
                source_id=row[0], version=row[1], changed_at=datetime.fromisoformat(row[2]),
                as_of=datetime.fromisoformat(row[3]), seq=row[4], deleted=bool(row[5]), failed=bool(row[6]),
            )
            for row in rows
        ]  # fmt: skip

    def note_reading(self, source_id: str, *, failed: bool) -> None:
        """Note whether reading an item failed."""
        self._db.execute("UPDATE items SET failed = ? WHERE source_id = ?", (int(failed), source_id))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _put(
        self, source_id: str, version: str, changed_at: datetime, as_of: datetime, seq: int, *, deleted: bool
    ) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, 0)",
            (
                source_id, version, changed_at.astimezone(UTC).isoformat(), as_of.astimezone(UTC).isoformat(), seq,
                int(deleted),
            ),
        )  # fmt: skip


def memory_path(settings: Settings, kind: str, block: SourceBlock) -> Path:
    """Where the memory of a block lies."""
    folder = _folder(settings.home) / kind / quote(block.tenant, safe="").replace(".", "%2E")
    return folder / f"{quote(block.name, safe='')}.sqlite"


def remove_memories(home: Path, forgotten: Forgotten, *, remove: bool) -> int:
    """Delete the memories of forgotten blocks and tenants, configured or not; how many there are, or were."""
    found = [
        path
        for path in sorted(_folder(home).glob("*/*/*.sqlite"))
        if forgotten.repository(unquote(path.parent.name), unquote(path.stem))
    ]
    for path in found if remove else ():
        for file in (path, *path.parent.glob(f"{path.name}-*")):
            file.unlink(missing_ok=True)
    return len(found)


def _folder(home: Path) -> Path:
    return home / "mirrors" / "listed"


@contextmanager
def memory_of(settings: Settings, kind: str, block: SourceBlock) -> Iterator[Memory]:
    """The memory of a block, open.

    Raises:
        StorageUnavailable: its file is damaged, or cannot be read or written.
        TransientError: another process kept it locked.
    """
    path = memory_path(settings, kind, block)
    with in_words(path), closing(Memory(path)) as memory:
        yield memory


def _is_new(item: Listed, known: Known | None) -> bool:
    return known is None or known.deleted or known.version != item.version
