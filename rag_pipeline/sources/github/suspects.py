"""What of a mirror seems to be gone from GitHub: it waits in the file until `removals` judges it."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from rag_pipeline.sources.github.mirror_file import MirrorFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """Something that seems to be gone from GitHub."""

    kind: str
    """Of the resource; the head of a thread stands for all of it."""
    id: int
    number: int
    """Of its thread."""
    thread_kind: str
    """What the thread was, where only the index knows it."""
    at: str
    """When that was found last."""


class Suspects(MirrorFile):
    """The part of a mirror file that remembers removals: those that wait, and those that were carried out lately."""

    def suspect(self, kind: str, id_: int, *, number: int, thread_kind: str, at: str) -> None:
        """Note that a living resource seems to be gone; it stays as it is until that is judged."""
        self._db.execute(
            "INSERT OR REPLACE INTO removals VALUES (?, ?, ?, ?, ?, 0)", (kind, id_, number, thread_kind, at)
        )

    def clear(self, kind: str, ids: Collection[int]) -> list[int]:
        """These were seen alive; the threads of those that seemed to be gone."""
        listed = json.dumps(list(ids))
        chosen = "kind = ? AND id IN (SELECT value FROM json_each(?))"
        rows = self._db.execute(f"SELECT number, done FROM removals WHERE {chosen}", (kind, listed)).fetchall()
        if rows:
            self._db.execute(f"DELETE FROM removals WHERE {chosen}", (kind, listed))
        return [number for number, done in rows if not done]

    def suspects(self) -> list[Suspect]:
        """All that seems to be gone and still waits."""
        rows = self._db.execute("SELECT kind, id, number, thread_kind, at FROM removals WHERE NOT done ORDER BY 1, 2")
        return [Suspect(kind=kind, id=id_, number=n, thread_kind=thread, at=at) for kind, id_, n, thread, at in rows]

    def suspected_at(self, kind: str, id_: int) -> str:
        """When it was found last to seem gone; "": it does not."""
        found = "SELECT at FROM removals WHERE kind = ? AND id = ? AND NOT done"
        row = self._db.execute(found, (kind, id_)).fetchone()
        return str(row[0]) if row else ""

    def has_suspects(self, number: int, *, at: str) -> bool:
        """Whether something of a thread was found at this time to seem gone."""
        found = "SELECT 1 FROM removals WHERE number = ? AND at = ? AND NOT done"
        return self._db.execute(found, (number, at)).fetchone() is not None

    def removed(self, suspect: Suspect, *, at: str) -> None:
        """Keep that a removal was carried out then."""
        self._db.execute(
            "UPDATE removals SET done = 1, at = ? WHERE kind = ? AND id = ?", (at, suspect.kind, suspect.id)
        )

    def removed_since(self, at: str) -> dict[str, int]:
        """By kind, how many removals were carried out after a time."""
        return dict(self._db.execute("SELECT kind, count(*) FROM removals WHERE done AND at > ? GROUP BY kind", (at,)))

    def forget_removals(self, until: str) -> None:
        """Forget which removals were carried out up to a time."""
        self._db.execute("DELETE FROM removals WHERE done AND at <= ?", (until,))
