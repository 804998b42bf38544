"""Documents that a service receives become drops: the same rules as for files, and the last one received is what stays.

A drop says when it was received, so that it does not matter in which order files are read. That a document is received
again as it is already is known by a note in the inbox, which names the newest drop of a document. It is written before
the drop: a note without its drop costs a drop too many, a drop without its note could be taken for the newest state
when it is not.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from rag_pipeline.errors import ItemError
from rag_pipeline.model import Json, SourceItem, document_id
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline.sources.drops.parse import parse_drop

INBOX: Final = "inbox"
"""The repository of documents that name none."""
_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"
_INSTANT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What became of a document."""

    name: str
    """Of the drop that holds it."""
    is_new: bool
    """False: it is the newest state already, and nothing was written."""


class ReceivedDocuments:
    """Puts documents into an inbox; may be used from several threads, and beside other processes."""

    def __init__(self, inbox: Inbox, *, clock: Callable[[], datetime], max_drop_bytes: int) -> None:
        self._inbox = inbox
        self._clock = clock
        self._max_drop_bytes = max_drop_bytes
        self._last = datetime.min.replace(tzinfo=UTC)
        self._lock = threading.Lock()

    def understood(self, record: Mapping[str, Json], *, repository: str = INBOX) -> SourceItem:
        """The item that the pipeline will make of a record; `tenant` must be among its keys.

        Raises:
            ItemError: the pipeline would reject it; the message names the field.
        """
        now = self._clock()
        return _item(_drop(record, repository=repository, received_at=now), now=now, most=self._max_drop_bytes)

    def receive(self, record: Mapping[str, Json], *, repository: str = INBOX) -> Received:
        """Drop a record, durably: of all that is received for its document, the last one stays.

        Raises:
            ItemError: as `understood`. Whatever the inbox raises when it cannot be written; then try again.
        """
        item = self.understood(record, repository=repository)
        document = document_id(tenant=item.tenant, source_type=item.source_type, source_id=item.source_id)
        digest = _digest(record, repository)
        known = [note for note in self._inbox.notes(document.hex) if _is_note(note)]
        if known and known[-1].endswith(f".{digest}") and self._inbox.knows(_name(document, known[-1])):
            return Received(name=_name(document, known[-1]), is_new=False)
        received_at = self._moment(after=_received_at(known[-1]) if known else None)
        note = f"{received_at.strftime(_STAMP)}.{digest}"
        drop = _drop(record, repository=repository, received_at=received_at)
        _item(drop, now=received_at, most=self._max_drop_bytes)
        self._inbox.note(document.hex, note)
        self._inbox.put(_name(document, note), drop)
        for old in known:
            self._inbox.remove_note(document.hex, old)
        return Received(name=_name(document, note), is_new=True)

    def _moment(self, *, after: datetime | None) -> datetime:
        """Now; but later than all that was received before, even where a clock went back."""
        with self._lock:
            earlier = max(self._last, after) if after else self._last
            self._last = max(self._clock().astimezone(UTC), earlier + _INSTANT)
            return self._last


def _drop(record: Mapping[str, Json], *, repository: str, received_at: datetime) -> bytes:
    wrapped = {"received_at": received_at.isoformat(), "repository": repository, "document": record}
    return json.dumps(wrapped, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _item(drop: bytes, *, now: datetime, most: int) -> SourceItem:
    """Read it as the pipeline will."""
    if len(drop) > most:
        raise ItemError(f"is larger than {most:,} bytes (drops.max_drop_bytes)")
    parsed = parse_drop("document.json", drop, modified_at=now, now=now, tenant="")
    if parsed is None or len(parsed.items) != 1:
        raise ItemError("is not one document")
    return parsed.items[0]


def _digest(record: Mapping[str, Json], repository: str) -> str:
    canonical = json.dumps([repository, record], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


def _name(document: UUID, note: str) -> str:
    return f"document.{document.hex}.{note}.json"


def _is_note(name: str) -> bool:
    return len(name) == _NOTE_LENGTH


def _received_at(note: str) -> datetime:
    return datetime.strptime(note.rpartition(".")[0], _STAMP).replace(tzinfo=UTC)


_NOTE_LENGTH: Final = len(datetime(2024, 1, 1, tzinfo=UTC).strftime(_STAMP)) + 1 + 32
