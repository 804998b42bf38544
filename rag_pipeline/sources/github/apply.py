"""Bringing what deliveries say into a mirror, and from the API what they do not say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from rag_pipeline.errors import ConfigError, PermanentError, SourceNotFound, TransientError
from rag_pipeline.sources.github.client import GitHubClient
from rag_pipeline.sources.github.deliveries import Touch
from rag_pipeline.sources.github.fetch import ThreadUpdate, fetch
from rag_pipeline.sources.github.listings import FetchReport, Reader
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.removals import Guard, Removed, Withheld
from rag_pipeline.sources.github.resources import Resource, precise
from rag_pipeline.sources.github.store import Store
from rag_pipeline.sources.github.threads import Identity, bury, settle

_LISTED = ("issue", "pull_request")
"""Kinds that the API can be asked for."""
_HEADS = {"pull_request": "issue"}
_FETCH_REQUESTS = 5
"""Of a reading of the whole repository that finds nothing new."""


@dataclass(slots=True, kw_only=True)
class ApplyReport:
    """What deliveries did to a mirror."""

    threads: set[tuple[str, int]] = field(default_factory=set)
    """(kind, number) of what was touched."""
    from_api: int = 0
    """Threads of which the API was asked what the payloads do not say."""
    from_payload: int = 0
    """Threads that are as the payloads say."""
    unreachable: str = ""
    """Why the API could not be asked."""
    withheld: list[Withheld] = field(default_factory=list)
    """What seems to be gone and is too much to be removed without confirmation."""


@dataclass(slots=True, kw_only=True)
class _Batch:
    """What deliveries leave open that came together."""

    report: ApplyReport
    now: datetime
    names: set[str]
    """What the repository is called in them."""
    untold: set[int] = field(default_factory=set)
    """Threads of which a delivery shows nothing, or what cannot be true as well."""
    late: list[tuple[Touch, str, int]] = field(default_factory=list)
    """What is said to be gone, kind and id, though GitHub listed it after that was sent."""
    remarks: dict[int, int | None] = field(default_factory=dict)
    """How many review comments pull requests have, where the payload says so."""


def apply_touches(
    mirror: GitHubMirror, client: GitHubClient | None, touches: Sequence[tuple[Touch, datetime]], *, now: datetime
) -> ApplyReport:
    """Bring a repository's mirror to the state that its deliveries (with the times they were received) tell of.

    What the payloads say is kept first, older never over newer. Of threads that this changed, the API is asked for what
    the payloads do not say: the reviews of a pull request, its files when its head moved, comments that were missed. A
    delivery that says nothing new asks nothing. Where one contradicts what GitHub itself listed after it was sent, the
    API is asked; without it the listing counts, and what is said to be gone is gone.
    """
    report = ApplyReport()
    named = [touch.repository for touch, _ in touches if touch.repository]
    if mirror.id is None and named:
        mirror.remember(named[-1])
    batch = _Batch(report=report, now=now, names={identity.full_name for identity in named})
    with mirror.locked(), mirror.open() as store:
        for touch, received_at in sorted(touches, key=lambda entry: entry[1]):
            with store.transaction():
                _keep(store, touch, received_at, batch)
    is_answered = client is not None
    if client is not None:
        try:
            report.from_api = _complete(mirror, client, batch)
        except (TransientError, PermanentError, ConfigError, SourceNotFound) as error:
            report.unreachable, is_answered = str(error), False
    with mirror.locked(), mirror.open() as store:
        for touch, kind, id_ in [] if is_answered else batch.late:
            with store.transaction():
                _lose(store, kind, id_, touch, now=now)
        guard, removed = Guard(store, mirror.limits, now=now), Removed(threads=[])
        # What an earlier batch suspected is asked for again first, by the next reading.
        for suspect in [each for each in guard.due() if each.at == precise(now)]:
            guard.carry_out(suspect, removed)
        report.withheld = guard.withheld()
        for kind, number in sorted(report.threads):
            with store.transaction():
                # Settled as far as it is known; what could not be asked stays noted for the next fetch.
                settle(store, kind, number, identity=mirror.identity(store), now=now)
    report.from_payload = len(report.threads) - report.from_api
    return report


def _complete(mirror: GitHubMirror, client: GitHubClient, batch: _Batch) -> int:
    """Ask for what changed threads lack, by themselves or with the listings, whichever is less; of how many threads."""
    now, untold = batch.now, batch.untold | {touch.number for touch, _, _ in batch.late}
    with mirror.locked(), mirror.open() as store:
        numbers = {number for kind, number in batch.report.threads if kind in _LISTED}
        wanted = sorted(numbers & set(store.touched()) | untold)
        is_loaded = store.note("loaded:pull") is not None
        identity = mirror.identity(store)
        update = ThreadUpdate(_reader(store, client, identity, now), identity, now=now)
        requests = sum(2 if number in untold else update.listed_requests(number) for number in wanted)
        is_many = is_loaded and requests > _FETCH_REQUESTS
        if is_many:
            store.touch(*wanted)
    asked = 0
    if is_many:
        if stopped := fetch(mirror, client, now=now).stopped:
            raise TransientError(stopped)
        asked = len(wanted)
        # What is gone, no listing of changes tells.
        wanted = sorted({touch.number for touch, _, _ in batch.late})
    is_renamed = is_loaded and not batch.names <= {identity.full_name}
    if not wanted and not is_renamed:
        return asked
    with mirror.locked():
        if is_renamed or not is_loaded:
            identity = mirror.recognise(client)
        with mirror.open() as store:
            update = ThreadUpdate(_reader(store, client, identity, now), identity, now=now)
            for number in wanted:
                before = client.usage.requests
                if number in untold or not is_loaded:
                    update.read_whole(number)
                else:
                    update.complete(number, remarks=batch.remarks.get(number))
                asked += not is_many and client.usage.requests > before
            update.conclude(mirror)
    return asked


def _reader(store: Store, client: GitHubClient, identity: Identity, now: datetime) -> Reader:
    return Reader(store, client, repository=identity.full_name, now=now, report=FetchReport())


def _keep(store: Store, touch: Touch, received_at: datetime, batch: _Batch) -> None:
    batch.report.threads.add((touch.kind, touch.number))
    at = precise(received_at)
    gone = ((_HEADS.get(touch.kind, touch.kind), touch.number),) if touch.thread_gone else touch.gone
    late = [(touch, kind, id_) for kind, id_ in gone if at < store.listed_at(kind, id_)]
    batch.late += late
    changed = False
    for kind, id_ in gone:
        changed |= (touch, kind, id_) not in late and _lose(store, kind, id_, touch, now=batch.now)
    if touch.thread_gone:
        store.done(touch.number)
        return
    if touch.kind in _LISTED and not touch.resources and not gone:
        batch.untold.add(touch.number)
    batch.remarks[touch.number] = touch.remarks
    for resource in _shown(store, touch):
        if resource.kind == "issue" and resource.body["comments"] is None:
            known = store.body("issue", resource.number) or {}
            resource = replace(resource, body=resource.body | {"comments": known.get("comments")})
        if store.contradicts(resource, seen_at=at):
            batch.untold.add(touch.number)
        changed |= bool(store.put(resource, seen_at=at, newer_only=True))
    if changed and touch.kind in _LISTED:
        store.touch(touch.number)


def _lose(store: Store, kind: str, id_: int, touch: Touch, *, now: datetime) -> bool:
    """Note that a thread or comment seems to be gone; whether that is news.

    Of what is not kept here nothing can be lost: that late news must not bring it in is all there is to note.
    """
    if store.body(kind, id_) is not None:
        store.suspect(kind, id_, number=touch.number, thread_kind="", at=precise(now))
        return True
    if touch.thread_gone:
        return bury(store, touch.kind, touch.number, now=now)
    return store.delete(kind, id_, number=touch.number, at=precise(now))


def _shown(store: Store, touch: Touch) -> list[Resource]:
    """What a delivery shows, without what was deleted since: what a thread that was read in a newer state lacks."""
    # An issue that came from another repository shows nothing yet.
    newest = store.versions("issue", [touch.number]) if touch.kind in _LISTED and touch.resources else []
    if not newest or touch.number in store.touched() or touch.resources[0].version >= newest[0]:
        return list(touch.resources)
    return [resource for resource in touch.resources if store.versions(resource.kind, [resource.id])]
