"""Which drops hold what is forgotten, and taking them out of the inbox and its archive."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.errors import ItemError
from rag_pipeline.forgotten import Forgotten
from rag_pipeline.model import SourceItem, document_id
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline.sources.drops.parse import parse_drop
from rag_pipeline.sources.github.mirror import GitHubMirror

_THREADS = {
    "issue": ("github_issue", "github_pull_request"), "pull_request": ("github_pull_request",),
    "discussion": ("github_discussion",), "release": ("github_release",),
}  # fmt: skip
_LINES = (".ndjson", ".jsonl")


def holds_forgotten(content: bytes, items: Sequence[SourceItem], forgotten: Forgotten, settings: Settings) -> bool:
    """Whether a drop, which says `items`, says something that is forgotten: then its file is not kept either."""
    if any(forgotten.left_of(item) is not item for item in items):
        return True
    delivery = _value(content) if not items else None
    return isinstance(delivery, dict) and _delivery_is(delivery, forgotten, settings)


def purge_inbox(
    inbox: Inbox, forgotten: Forgotten, settings: Settings, *, names: Sequence[str], now: datetime, remove: bool
) -> Counter[str]:
    """Remove what holds forgotten things from the inbox and its archive; how many files, by where they lie.

    A file that waits and holds other records, too, keeps those. What was rejected cannot be read: it goes when it holds
    one of `names`, by which the forgotten is known as long as somebody is at it.
    """
    found: Counter[str] = Counter()
    words = [re.compile(rb"(?<![\w])" + re.escape(name.encode()) + rb"(?![\w])") for name in names if name]
    for path in inbox.archived():
        content = inbox.content(path)
        items = _items(path, content, settings, now)
        if holds_forgotten(content, items, forgotten, settings) or (
            not items and any(word.search(content) or word.search(path.encode()) for word in words)
        ):
            found["rejected" if path.startswith("rejected/") else "accepted"] += 1
            found["notes"] += purge_notes(inbox, items, remove=remove)
            if remove:
                inbox.remove(path)
    waiting = inbox.waiting(now=now, settle_s=0)
    for file in [*waiting, *inbox.unusable(now=now, settle_s=0)]:
        content = inbox.content(file.name)
        items = _items(file.name, content, settings, now)
        if holds_forgotten(content, items, forgotten, settings):
            found["waiting"] += 1
            found["notes"] += purge_notes(inbox, items, remove=remove)
            left = b"".join(_left(file.name, content, forgotten, settings, now)) if items and file in waiting else b""
            if remove and left:
                inbox.replace(file.name, left)
            elif remove:
                inbox.remove(file.name)
    return found


def purge_notes(inbox: Inbox, items: Sequence[SourceItem], *, remove: bool) -> int:
    """Remove what was noted of these items, which are not named there but by their hashes; how many notes."""
    found = 0
    for item in items:
        subject = document_id(tenant=item.tenant, source_type=item.source_type, source_id=item.source_id).hex
        for note in inbox.notes(subject):
            found += 1
            if remove:
                inbox.remove_note(subject, note)
    return found


def _left(name: str, content: bytes, forgotten: Forgotten, settings: Settings, now: datetime) -> Iterator[bytes]:
    """The records of a file that may stay, a line each."""
    if PurePath(name).suffix.lower() in _LINES:
        records = [line for line in content.split(b"\n") if line.strip()]
    else:
        values = _value(content)
        records = [json.dumps(value).encode() for value in values] if isinstance(values, list) else []
    for record in records:
        items = _items("record.json", record, settings, now)
        if items and not holds_forgotten(record, items, forgotten, settings):
            yield record + b"\n"


def _value(content: bytes) -> Any:
    """What the JSON says; None when it says nothing that can be read."""
    try:
        return parse_json(content)
    except ValueError:
        return None


def _items(path: str, content: bytes, settings: Settings, now: datetime) -> Sequence[SourceItem]:
    try:
        parsed = parse_drop(PurePath(path).name, content, modified_at=now, now=now, tenant=settings.tenant)
    except (ItemError, ValueError):
        return ()
    return parsed.items if parsed else ()


def _delivery_is(delivery: dict[str, Any], forgotten: Forgotten, settings: Settings) -> bool:
    about = delivery.get("payload", delivery)
    about = about if isinstance(about, dict) else {}
    tenants = {mark.tenant for mark in forgotten.marks}
    logins = set(_logins(about))
    if any(forgotten.author(tenant, login) for tenant in tenants for login in logins):
        return True
    named = about.get("repository")
    place: dict[str, Any] = named if isinstance(named, dict) else {}
    for repository in settings.repositories:
        if not repository.github or not _is(repository.github, place, GitHubMirror(settings, repository).id):
            continue
        if forgotten.repository(repository.tenant, repository.name):
            return True
        host = GitHubMirror(settings, repository).host
        for key, types in _THREADS.items():
            thread = about.get(key)
            number = thread.get("id" if key == "release" else "number") if isinstance(thread, dict) else None
            source_id = f"{host}/{place.get('id')}#{number}"
            if number and any(forgotten.document(repository.tenant, kind, source_id) for kind in types):
                return True
    return False


def _is(name: str, place: dict[str, Any], known: int | None) -> bool:
    return place.get("id") == known if known is not None else str(place.get("full_name")).lower() == name.lower()


def _logins(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("login"), str):
            yield value["login"]
        for inner in value.values():
            yield from _logins(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _logins(inner)
