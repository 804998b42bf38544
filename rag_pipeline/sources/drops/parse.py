"""What a drop is: a GitHub delivery, knowledge as JSON or NDJSON, or a plain file.

Only told apart and cut into records here; what the fields of a record may say is the business of `knowledge`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from rag_pipeline.bounded_json import (
    Element,
    Malformed,
    checked,
    read_elements,
    read_value,
    storable,
    storable_text,
    text_of,
)
from rag_pipeline.errors import ItemError
from rag_pipeline.front_matter.attempts import names_scope
from rag_pipeline.model import Json, SourceItem, age_of
from rag_pipeline.sources.drops.github_events import GITHUB_EVENTS
from rag_pipeline.sources.drops.knowledge import (
    PLAIN_FILES,
    Intake,
    moment_of,
    plain_item,
    received_item,
    record_item,
)

EVENT_NAME = re.compile(r"[a-z0-9_]{1,64}")
"""Of a GitHub event, new ones included."""
DELIVERY_ID = re.compile(r"[A-Za-z0-9-]{1,100}")
"""Of a GitHub delivery (a UUID)."""

RECEIVED_KEYS = frozenset({"received_at", "repository", "document"})
"""Of the object that a record is wrapped in when a service received it."""

_NAMED = re.compile(r"([a-z0-9_]+)\.([A-Za-z0-9-]{1,100})\.(?:json|JSON)")
_LINES = (".ndjson", ".jsonl")
_STILL_WRITTEN_S = 60.0
_SHOWN_REASONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What GitHub sent to the webhook."""

    event: str
    delivery: str
    received_at: datetime
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A record that could not be taken, while others of its file were."""

    line: int
    """Where it begins in the file, from 1."""
    content: bytes
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a drop holds: a delivery, or items, of which each identity occurs once."""

    delivery: Delivery | None = None
    items: Sequence[SourceItem] = ()
    bad_lines: Sequence[BadLine] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    line: int
    content: bytes
    found: Element | Malformed


def parse_drop(
    name: str, content: bytes, *, modified_at: datetime, now: datetime, tenant: str, repository: str = "inbox"
) -> Parsed | None:
    """What the file of this name holds; None when it ends early and may still be being written.

    `tenant` is that of records which name none, `repository` what all its items are filed under.

    Raises:
        ItemError: nothing of the file can be taken; the message names the file, and the field where there is one.
    """
    received_at = min(modified_at, now).astimezone(UTC)
    intake = Intake(file_name=name, received_at=received_at, now=now, tenant=tenant, repository=repository)
    suffix = PurePath(name).suffix.lower()
    is_fresh = abs((now - modified_at).total_seconds()) < _STILL_WRITTEN_S
    try:
        if suffix in PLAIN_FILES:
            unfinished = is_fresh and _ends_early(content, is_json=suffix == ".ipynb")
            return None if unfinished else Parsed(items=[plain_item(content, intake)])
        if suffix in _LINES:
            return _parse_lines(content, intake, is_fresh=is_fresh)
        if suffix == ".json":
            return _parse_json(content, intake, is_fresh=is_fresh)
    except ItemError as error:
        raise ItemError(f"{name}: {error}") from error
    kinds = " ".join(sorted([".json", *_LINES, *PLAIN_FILES]))
    raise ItemError(f"{name}: files of this kind are not taken: drop one of {kinds}")


def _ends_early(content: bytes, *, is_json: bool) -> bool:
    """Whether a plain file lacks its end, as far as one can see."""
    if not is_json:
        return not content
    found = _read(content)
    return isinstance(found, Malformed) and found.ends_early


def _read(content: bytes) -> Element | Malformed:
    text = text_of(content)
    return text if isinstance(text, Malformed) else read_value(text)


def _parse_json(content: bytes, intake: Intake, *, is_fresh: bool) -> Parsed | None:
    text = text_of(content)
    if isinstance(text, Malformed):
        return _refused(text, is_fresh=is_fresh)
    if text.lstrip(" \t\r\n").startswith("["):
        elements = read_elements(text)
        if isinstance(elements, Malformed):
            return _refused(elements, is_fresh=is_fresh)
        return _parse_records(_records(text, elements), intake)
    element = read_value(text)
    if isinstance(element, Malformed):
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) > 1 and all(line.lstrip().startswith("{") for line in lines):
            return _parse_lines(content, intake, is_fresh=is_fresh)
        return _refused(element, is_fresh=is_fresh)
    value = checked(element.value)
    if not isinstance(value, Mapping):
        raise ItemError("must be a JSON object, an array of objects, or one object a line")
    if value.keys() == RECEIVED_KEYS:
        return Parsed(items=[received_item(value, intake)])
    delivery = _delivery(value, intake)
    return Parsed(delivery=delivery) if delivery else Parsed(items=[record_item(value, intake)])


def _parse_lines(content: bytes, intake: Intake, *, is_fresh: bool) -> Parsed | None:
    if json.detect_encoding(content) not in ("utf-8", "utf-8-sig"):
        text = text_of(content)
        if isinstance(text, Malformed):
            return _refused(text, is_fresh=is_fresh)
        content = text.encode("utf-8", "replace")
    lines = content.split(b"\n")
    for number, raw in enumerate(lines, start=1):
        if not raw.lstrip().startswith((b"{", b"[")) and names_scope(raw.decode("utf-8", "replace")):
            raise ItemError(f"line {number} says who may see the records: give scope as a key of each of them")
    last = _read(lines[-1])
    # A newline ends each record: only what stands behind the last one can be half a record.
    if is_fresh and isinstance(last, Malformed) and last.ends_early and (lines[-1].strip() or len(lines) == 1):
        return None
    numbered = enumerate(lines, start=1)
    return _parse_records(
        (_Record(line=n, content=raw, found=_read(raw)) for n, raw in numbered if raw.strip()), intake
    )


def _refused(malformed: Malformed, *, is_fresh: bool) -> Parsed | None:
    """None for what may still be being written, an error for the rest."""
    if is_fresh and malformed.ends_early:
        return None
    raise ItemError(malformed.reason)


def _records(text: str, elements: Sequence[Element]) -> Iterator[_Record]:
    """The elements of an array, with the lines they begin on."""
    line, counted = 1, 0
    for element in elements:
        line += text.count("\n", counted, element.start)
        counted = element.start
        yield _Record(line=line, content=text[element.start : element.end].encode("utf-8", "replace"), found=element)


def _parse_records(records: Iterator[_Record], intake: Intake) -> Parsed:
    """The newest state of each identity, the last of equally new ones, and the records that cannot be taken."""
    items: dict[tuple[str, str, str], SourceItem] = {}
    bad: list[tuple[_Record, str]] = []
    for record in records:
        try:
            item = _record_item(record, intake)
        except ItemError as error:
            bad.append((record, str(error)))
            continue
        key = (item.tenant, item.source_type, item.source_id)
        if key not in items or age_of(items[key]) <= age_of(item):
            items[key] = item
    if not bad and not items:
        raise ItemError("holds no record")
    if not items:
        reasons = "; ".join(f"line {record.line}: {reason}" for record, reason in bad[:_SHOWN_REASONS])
        more = f"; and {len(bad) - _SHOWN_REASONS:,} more" if len(bad) > _SHOWN_REASONS else ""
        raise ItemError(f"no record can be taken: {reasons}{more}")
    where = f"{intake.file_name}, line"
    return Parsed(
        items=list(items.values()),
        bad_lines=[BadLine(line=r.line, content=r.content, reason=f"{where} {r.line}: {reason}") for r, reason in bad],
    )


def _record_item(record: _Record, intake: Intake) -> SourceItem:
    if isinstance(record.found, Malformed):
        raise ItemError(record.found.reason)
    return record_item(checked(record.found.value), intake)


def _delivery(value: Mapping[str, Json], intake: Intake) -> Delivery | None:
    """The delivery that an object is, wrapped or named by its file; None when it is knowledge."""
    if "id" in value and ("content" in value or "deleted" in value):
        return None
    received_at = intake.received_at
    if "event" in value and "payload" in value:
        event, delivery, payload = value["event"], value.get("delivery"), value["payload"]
        received_at = moment_of(value.get("received_at"), "received_at", received_at=received_at, now=intake.now)
    elif (named := _NAMED.fullmatch(intake.file_name)) and named[1] in GITHUB_EVENTS:
        event, delivery, payload = named[1], named[2], value
    else:
        return None
    if not isinstance(event, str) or not EVENT_NAME.fullmatch(event):
        raise ItemError("event must be the name of a GitHub event")
    if not isinstance(delivery, str) or not DELIVERY_ID.fullmatch(delivery):
        raise ItemError("delivery must be the id of a GitHub delivery")
    if not isinstance(payload, Mapping):
        raise ItemError("payload must be an object")
    clean = {storable_text(key): storable(item) for key, item in payload.items()}
    return Delivery(event=event, delivery=delivery, received_at=received_at, payload=clean)
