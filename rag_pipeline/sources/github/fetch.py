"""Bringing a mirror up to date: what changed since the last time, and exactly the threads it touches.

The listings of the whole repository come first; a pull request that was touched is then asked for its reviews and, when
its head moved, for its files. A thread is settled once all of it has been read. Whatever ends the reading early, the
next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rag_pipeline.errors import PermanentError, QuotaExhausted, ResourceGone, TransientError
from rag_pipeline.sources.github import resources
from rag_pipeline.sources.github.client import GitHubClient, Page
from rag_pipeline.sources.github.listings import SINCE_LISTINGS, FetchReport, Reader
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.store import Store
from rag_pipeline.sources.github.threads import Identity, bury, kind_of, settle

_MOST_FAILURES = 3
"""Of threads in a row, for reasons that may pass by themselves: more mean that it is not the thread's fault."""


def fetch(mirror: GitHubMirror, client: GitHubClient, *, now: datetime) -> FetchReport:
    """Read what changed on GitHub into the mirror.

    An exhausted quota, and errors that may pass by themselves, end the reading; the report says so. A thread that
    cannot be read stops no other: it is noted as a problem, and the next reading tries it again.

    Raises:
        SourceNotFound: there is no such repository, or the token may not read it.
        ConfigError: the token is refused.
    """
    report = FetchReport()
    with mirror.locked():
        identity = mirror.recognise(client)
        with mirror.open() as store:
            reader = Reader(store, client, repository=identity.full_name, now=now, report=report)
            update = ThreadUpdate(reader, identity, now=now)
            try:
                for listing in SINCE_LISTINGS:
                    reader.read_since(listing)
                reader.read_pulls()
                update.finish()
            except (QuotaExhausted, TransientError) as error:
                report.stopped = str(error)
            note_outcome(store, report)
    return report


def fetch_threads(mirror: GitHubMirror, client: GitHubClient, numbers: Iterable[int], *, now: datetime) -> FetchReport:
    """Read single threads whole, as deliveries ask for; raises as `fetch` does, and what may pass by itself too."""
    report = FetchReport()
    with mirror.locked():
        identity = mirror.recognise(client)
        with mirror.open() as store:
            reader = Reader(store, client, repository=identity.full_name, now=now, report=report)
            update = ThreadUpdate(reader, identity, now=now)
            try:
                for number in sorted(set(numbers)):
                    update.read_whole(number)
            finally:
                note_problems(store, report)
    return report


def note_outcome(store: Store, report: FetchReport) -> None:
    """Keep how the reading ended, for whoever looks at the mirror next."""
    report.waiting = len(store.touched())
    with store.transaction():
        store.set_note("stopped", report.stopped or None)
        note_problems(store, report)


def note_problems(store: Store, report: FetchReport) -> None:
    """Keep what could not be used, until it can."""
    with store.transaction():
        for name, reason in report.malformed:
            store.set_problem(name, reason)


class ThreadUpdate:
    """Completes and settles threads that were touched."""

    def __init__(self, reader: Reader, identity: Identity, *, now: datetime) -> None:
        self._reader = reader
        self._store = reader.store
        self._identity = identity
        self._now = now

    def finish(self) -> None:
        """Read what the touched threads lack, and settle them: issues first, which mostly lack nothing."""
        self._follow_rename()
        touched = self._store.touched()
        pulls = [number for number in touched if (self._store.body("issue", number) or {}).get("is_pull_request")]
        failures = 0
        for number in [*(number for number in touched if number not in set(pulls)), *pulls]:
            failures = 0 if self.attempt(number, self._finish) else failures + 1
            if failures == _MOST_FAILURES:
                raise TransientError(f"{failures} threads in a row could not be read: {self._reader.report.malformed[-1][1]}")

    def attempt(self, number: int, read: Callable[[int], None]) -> bool:
        """Read something of a thread; whether that worked. Why it did not is noted, unless it ends all reading."""
        try:
            read(number)
        except ResourceGone as error:
            if self.exists(number):
                self._reader.report.malformed.append((f"thread {number}", str(error)))
            else:
                self.bury(number)
        except QuotaExhausted:
            raise
        except (TransientError, PermanentError) as error:
            self._reader.report.malformed.append((f"thread {number}", str(error)))
            return isinstance(error, PermanentError)
        return True
