"""Resources to whole threads: what a mirror knows of an issue or pull request, as one piece of JSON.

A thread is settled when everything it is made of has been read, so that nobody ever sees half of one. The same
resources give the same bytes, whatever way they came in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from rag_pipeline.sources.github.references import closes, mentions
from rag_pipeline.sources.github.resources import Body, instant, precise
from rag_pipeline.sources.github.store import Store

_PLACES = {"issue": "issues", "pull_request": "pull", "discussion": "discussions"}
_OTHER = {"issue": "pull_request", "pull_request": "issue"}
_ENTRIES = {
    "issue": ("comment",),
    "pull_request": ("comment", "review", "review_comment"),
    "discussion": ("discussion_comment",),
    "release": (),
}
_SAID = ("id", "author", "created_at", "updated_at", "body", "anchor")
_MORE = {
    "review": ("verdict",),
    "review_comment": ("path", "line", "start_line", "diff_hunk", "reply_to", "review"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which repository a mirror is of."""

    id: int
    full_name: str
    """`owner/name`, as it is called now."""
    html_url: str
    """Of its page, without a slash at the end."""

    @property
    def host(self) -> str:
        """Of GitHub's pages."""
        return urlsplit(self.html_url).netloc


def kind_of(issue: Mapping[str, Any]) -> str:
    """`issue` or `pull_request`."""
    return "pull_request" if issue.get("is_pull_request") else "issue"


def settle(store: Store, kind: str, number: int, *, identity: Identity, now: datetime) -> bool:
    """Keep the thread as it stands now; whether that is another state than before. One without its head is left."""
    thread = assemble(store, kind, number, identity=identity)
    if thread is None:
        return False
    entries: list[dict[str, Any]] = thread["entries"]
    changed = max([thread["updated_at"], *(entry["updated_at"] for entry in entries)])
    content = json.dumps(thread, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
    former = store.thread(_OTHER.get(kind, ""), number)
    if former and not former.deleted:
        # GitHub's API can make a pull request of an issue; it keeps its number.
        _tombstone(store, former.kind, number, now=now)
    return store.settle(
        kind, number, digest=_digest(content), changed_at=changed or instant(now.timestamp()), as_of=now, deleted=False,
        content=content,
    )  # fmt: skip


def bury(store: Store, kind: str, number: int, *, now: datetime, again: bool = False) -> bool:
    """Keep that a thread is gone with all that was said in it, known or not; whether that was news.

    With `again` it is news even if it was known, for an index that still shows the thread.
    """
    head, at = {"pull_request": "issue"}.get(kind, kind), precise(now)
    for entry_kind in _ENTRIES[kind]:
        for id_ in store.living_of(entry_kind, number):
            store.delete(entry_kind, id_, number=number, at=at)
    store.delete(head, number, number=number, at=at)
    return _tombstone(store, kind, number, now=now, again=again)


def assemble(store: Store, kind: str, number: int, *, identity: Identity) -> dict[str, Any] | None:
    """The thread as JSON, its entries in the order they happened; None when its head is not known."""
    head = store.body("issue" if kind == "pull_request" else kind, number)
    if head is None or head.get("forgotten"):
        return None
    entries = sorted(_entries(store, kind, number), key=lambda e: (e["created_at"], e["type"], e["id"]))
    thread: dict[str, Any] = {
        "kind": kind,
        "number": None if kind == "release" else number,
        "reference": _reference(kind, number, head, identity),
        "url": str(head.get("url")) if kind == "release" else f"{identity.html_url}/{_PLACES[kind]}/{number}",
        "entries": entries,
    }
    for key in ("title", "body", "state", "state_reason", "author", "created_at", "updated_at", "closed_at"):
        thread[key] = head[key]
    for key in ("labels", "milestone", "assignees"):
        thread[key] = head[key]
    if kind == "pull_request":
        thread |= _pull_fields(store, number, thread, identity)
    texts = [str(head["body"]), *(str(entry["body"]) for entry in entries)]
    own = {str(thread["reference"]), *thread.get("closes", ())}
    found = mentions(texts, repository=identity.full_name, host=identity.host)
    thread["links"] = [link for link in found if link not in own]
    return thread


def _tombstone(store: Store, kind: str, number: int, *, now: datetime, again: bool = False) -> bool:
    at = instant(now.timestamp())
    digest = at if again else ""
    return store.settle(kind, number, digest=digest, changed_at=at, as_of=now, deleted=True, content=b"")


def _reference(kind: str, number: int, head: Body, identity: Identity) -> str:
    return f"{identity.full_name}@{head.get('tag')}" if kind == "release" else f"{identity.full_name}#{number}"


def _entries(store: Store, kind: str, number: int) -> Iterator[dict[str, Any]]:
    for entry_kind in _ENTRIES[kind]:
        kept = (*_SAID, *_MORE.get(entry_kind, ()))
        for id_, body in store.bodies(entry_kind, number):
            if body.get("verdict") == "pending" or body.get("forgotten"):
                continue  # GitHub shows the token's owner reviews that are still drafts.
            entry = {key: value for key, value in body.items() if key in kept}
            yield entry | {"id": id_, "type": "comment" if entry_kind == "discussion_comment" else entry_kind}


def _pull_fields(store: Store, number: int, thread: Mapping[str, Any], identity: Identity) -> dict[str, Any]:
    pull: Mapping[str, Any] = store.body("pull", number) or {}
    files: Mapping[str, Any] = store.body("files", number) or {}
    merged_at = pull.get("merged_at")
    return {
        "state": "merged" if merged_at else thread["state"],
        "draft": bool(pull.get("draft")),
        "merged_at": merged_at,
        "merge_commit": pull.get("merge_commit"),
        "base": _branch(pull.get("base"), identity),
        "head": _branch(pull.get("head"), identity),
        "files": files.get("files") or [],
        "closes": closes(str(thread["body"]), repository=identity.full_name, host=identity.host),
    }


def _branch(branch: Mapping[str, Any] | None, identity: Identity) -> Mapping[str, Any]:
    if not branch:
        return {"ref": "", "sha": "", "repository": None}
    return {**branch, "repository": identity.full_name if branch["repository"] == "" else branch["repository"]}


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
