"""Bringing what deliveries touch into a mirror: from the API where it can be reached, else from what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from rag_pipeline.errors import ConfigError, PermanentError, SourceNotFound, TransientError
from rag_pipeline.sources.github.client import GitHubClient
from rag_pipeline.sources.github.deliveries import Touch
from rag_pipeline.sources.github.fetch import fetch, fetch_threads
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.resources import Resource, precise
from rag_pipeline.sources.github.store import Store
from rag_pipeline.sources.github.threads import bury, settle

_LISTED = ("issue", "pull_request")
"""Kinds that the API can be asked for."""
_MANY = 25


@dataclass(slots=True, kw_only=True)
class ApplyReport:
    """What deliveries did to a mirror."""

    threads: set[tuple[str, int]] = field(default_factory=set)
    """(kind, number) of what was touched."""
    from_api: int = 0
    """Threads read from the API."""
    from_payload: int = 0
    """Threads known only as far as the payloads say."""
    unreachable: str = ""
    """Why the API could not be asked."""


def apply_touches(
    mirror: GitHubMirror, client: GitHubClient | None, touches: Sequence[tuple[Touch, datetime]], *, now: datetime
) -> ApplyReport:
    """Bring a repository's mirror to the state that its deliveries (with the times they were received) tell of.

    What the payloads say is kept first, older never over newer, so that nothing is lost when the API cannot be reached;
    then each touched thread is read whole.
    """
    report = ApplyReport()
    named = [touch.repository for touch, _ in touches if touch.repository]
    if mirror.id is None and named:
        mirror.remember(named[-1])
    with mirror.locked(), mirror.open() as store:
        for touch, received_at in sorted(touches, key=lambda entry: entry[1]):
            with store.transaction():
                _keep(store, touch, received_at, report, now=now)
    # What is gone needs no answer; GitHub's may lag behind what it has just told.
    gone = {touch.number for touch, _ in touches if touch.thread_gone}
    asked = sorted({number for kind, number in report.threads if kind in _LISTED} - gone)
    if client is not None and asked:
        try:
            _read(mirror, client, asked, now=now)
            report.from_api = len(asked)
        except (TransientError, PermanentError, ConfigError, SourceNotFound) as error:
            report.unreachable = str(error)
    with mirror.locked(), mirror.open() as store:
        identity, waiting = mirror.identity(store), set(store.touched())
        for kind, number in sorted(report.threads):
            if kind in _LISTED and report.from_api and number not in waiting:
                continue
            with store.transaction():
                # Settled as far as it is known; that reviews or files were never read stays noted for the next fetch.
                settle(store, kind, number, identity=identity, now=now)
                report.from_payload += 1
    return report


def _read(mirror: GitHubMirror, client: GitHubClient, numbers: Sequence[int], *, now: datetime) -> None:
    """Each thread by itself; very many with the listings of the whole repository, which then cost less."""
    with mirror.open() as store:
        loaded = store.note("loaded:pull") is not None
    if len(numbers) <= _MANY or not loaded:
        fetch_threads(mirror, client, numbers, now=now)
        return
    with mirror.locked(), mirror.open() as store:
        store.touch(*numbers)
    report = fetch(mirror, client, now=now)
    if report.stopped:
        raise TransientError(report.stopped)


def _keep(store: Store, touch: Touch, received_at: datetime, report: ApplyReport, *, now: datetime) -> None:
    report.threads.add((touch.kind, touch.number))
    at = precise(received_at)
    if touch.thread_gone:
        bury(store, touch.kind, touch.number, now=now)
        store.done(touch.number)
        return
    changed = False
    for resource in _shown(store, touch):
        if resource.kind == "issue" and resource.body["comments"] is None:
            known = store.body("issue", resource.number) or {}
            resource = replace(resource, body=resource.body | {"comments": known.get("comments")})
        changed |= store.put(resource, seen_at=at, newer_only=True)
    for kind, id_ in touch.gone:
        changed |= store.delete(kind, id_, number=touch.number, at=at)
    if changed and touch.kind in _LISTED:
        store.touch(touch.number)


def _shown(store: Store, touch: Touch) -> list[Resource]:
    """What a delivery shows, without what was deleted since: what a thread that was read in a newer state lacks."""
    # An issue that came from another repository shows nothing yet.
    newest = store.versions("issue", [touch.number]) if touch.kind in _LISTED and touch.resources else []
    if not newest or touch.number in store.touched() or touch.resources[0].version >= newest[0]:
        return list(touch.resources)
    return [resource for resource in touch.resources if store.versions(resource.kind, [resource.id])]
