"""The raw stage for GitHub: mirrors to `raw_github_pull_requests` and `raw_github_issues`.

GitHub shows only the present, so each thread is on the day of its last change, as it stands now; older states are gone.
One reading of GitHub serves all days of a run, and what is settled in the mirror is all that is written.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from rag_pipeline.forgotten import NOTHING, Forgotten
from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Failure, Json, SourceItem
from rag_pipeline.progress import Progress, Together, silent
from rag_pipeline.remote.at_once import at_once, failures_of, pause
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources.github.client import GitHubClient, Usage, make_client
from rag_pipeline.sources.github.fetch import fetch
from rag_pipeline.sources.github.listings import FetchReport
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.removals import CONFIRM, Guard
from rag_pipeline.sources.github.store import Settled, Store
from rag_pipeline.sources.github.threads import Identity
from rag_pipeline.sources.places import github_places, stoppable
from rag_pipeline.sources.raw_parts import PartsReport, is_current, remove_stale, write_part

GITHUB_SOURCE_VERSION = "1"
STAGES = {"github_pull_request": "raw_github_pull_requests", "github_issue": "raw_github_issues"}
_CONTENT_TYPE = "application/vnd.github.thread+json"
_COPIED = (
    "state", "state_reason", "labels", "milestone", "assignees", "draft", "merged_at", "merge_commit", "closes",
    "links", "created_at", "closed_at", "number", "reference",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How GitHub is reached: from outside, so that tests decide."""

    environ: Mapping[str, str]
    clock: Callable[[], datetime]
    sleep: Callable[[float], None] = time.sleep
    progress: Progress = silent
    """Told of every request, and of waits before they begin."""


@dataclass(slots=True, kw_only=True)
class RepositoryReport:
    """What one repository gave."""

    repository: Repository
    full_name: str = ""
    """What it is called on GitHub now."""
    asked: bool = False
    """Whether GitHub was asked by this run; if not, it had been asked just before."""
    usage: Usage | None = None
    """Of the last reading; None when there was none."""
    outcome: str = ""
    """How the last reading ended."""
    threads: int = 0
    """Settled threads of these days."""


@dataclass(slots=True, kw_only=True)
class GitHubReport(PartsReport):
    """What the run's days hold, over all repositories; unreadable ones and unusable resources are failures."""

    repositories: list[RepositoryReport] = field(default_factory=list)

    def add(self, other: PartsReport) -> None:
        """As `PartsReport.add`; with its repositories."""
        PartsReport.add(self, other)
        if isinstance(other, GitHubReport):
            self.repositories += other.repositories


def client_of(settings: Settings, repository: Repository, access: Access) -> GitHubClient:
    """A client with the repository's address and token; see `make_client` for what it raises.

    A repository with an address of its own never gets the credentials that are meant for another GitHub.
    """
    github = settings.github
    if repository.github_base_url not in ("", github.base_url) and not repository.token_env:
        github = github.model_copy(update={"token_env": "", "app_id": ""})
    return make_client(
        github, base_url=repository.github_base_url, token_env=repository.token_env,
        repository=repository.github, environ=access.environ, clock=access.clock, sleep=access.sleep,
        progress=access.progress,
    )  # fmt: skip


def fetch_repository(settings: Settings, repository: Repository, access: Access) -> tuple[FetchReport, Usage]:
    """Ask GitHub what changed, and note in the mirror how that went; raises as `fetch` does."""
    mirror = GitHubMirror(settings, repository)
    with client_of(settings, repository, access) as client:
        report = fetch(mirror, client, now=access.clock())
    usage = client.usage
    told = dataclasses.asdict(usage) | {"outcome": report.stopped or f"{report.settled:,} threads changed"}
    with mirror.open() as store:
        store.set_note("last_reading", json.dumps(told, default=str))
    return report, usage


def last_reading(store: Store) -> tuple[Usage | None, str]:
    """What the last reading of GitHub asked for, and how it ended."""
    told = json.loads(store.note("last_reading") or "{}")
    if not told:
        return None, ""
    outcome = str(told.pop("outcome"))
    resets_at = datetime.fromisoformat(told["resets_at"]) if told["resets_at"] else None
    return Usage(**told | {"resets_at": resets_at}), outcome


def read_github(
    settings: Settings, lake: Lake, days: DayRange, *, access: Access, progress: Progress, ask: bool = True
) -> GitHubReport:
    """Ask GitHub what changed (unless that was just done) and bring the raw parts of these days up to date.

    `pools.github` repositories at once.

    A repository that cannot be read does not stop the others; it is in the report's failures. A reading that was cut
    short, as by an exhausted quota, keeps what it has, and is in the failures too.
    """
    together = Together(progress)
    # Waits for the quota may be long: they end with the work.
    access = dataclasses.replace(access, sleep=pause) if access.sleep is time.sleep else access
    repositories = settings.github_repositories
    reports = {
        number: GitHubReport(repositories=[RepositoryReport(repository=repository)])
        for number, repository in enumerate(repositories)
    }

    def read(number: int) -> None:
        (found,) = reports[number].repositories
        tell = stoppable(together.of(found.repository.name))
        if ask:
            fetch_repository(settings, found.repository, dataclasses.replace(access, progress=tell))
            found.asked = True
        write_days(settings, lake, found.repository, days, report=reports[number], found=found, now=access.clock())

    def told(done: int) -> None:
        together("raw_github", done=done, total=len(repositories), unit="repositories")

    report = GitHubReport()
    outcomes = at_once(list(reports), read, places=github_places(settings), told=told)
    for outcome in outcomes:
        report.add(reports[outcome.thing])
    for number, error in failures_of(outcomes):
        repository = repositories[number]
        report.unread.append(error)
        report.failures.append(_failure(repository, repository.name, str(error), days, access))
    return report


def write_days(
    settings: Settings, lake: Lake, repository: Repository, days: DayRange, *, report: GitHubReport,
    found: RepositoryReport, now: datetime,
) -> None:  # fmt: skip
    """Bring one repository's raw parts of these days to what its mirror has settled."""
    mirror = GitHubMirror(settings, repository)
    if not mirror.exists():
        return
    with mirror.open() as store:
        identity = mirror.identity(store)
        found.full_name = identity.full_name
        found.usage, found.outcome = last_reading(store)
        forgotten = settings.forgotten(now)
        by_day = threads_by_day(
            store, days, first_day=settings.first_day_of(repository), today=now.date(), forgotten=forgotten
        )
        kept: dict[str, set[date]] = {stage: set() for stage in STAGES.values()}
        for day, threads in sorted(by_day.items()):
            found.threads += len(threads)
            part = Part(tenant=repository.tenant, repository=repository.name, day=day)
            kinds = {f"github_{thread.kind}" for thread in threads}
            for kind in kinds:
                kept[STAGES[kind]].add(day)
            inputs = day_inputs(identity, threads)
            if is_current(lake, part, stages=STAGES, kinds=kinds, inputs=inputs, report=report):
                continue
            items = _items(mirror, store, identity, threads, day=day, now=now)
            write_part(lake, part, items, stages=STAGES, inputs=inputs, report=report, forgotten=forgotten)
        remove_stale(lake, days, tenant=repository.tenant, repository=repository.name, kept=kept, report=report)
        if stopped := store.note("stopped"):
            report.failures.append(_cut_short(repository, stopped, days, now))
        for withheld in Guard(store, settings.github, now=now).withheld():
            failed = f"{mirror.source_id(identity, 0)} {withheld.kind}"
            report.failures.append(_unusable(repository, failed, f"removal withheld: {withheld}: {CONFIRM}", days, now))
        for name, reason in store.problems():
            failed = f"{mirror.source_id(identity, 0)} {name}"
            report.failures.append(_unusable(repository, failed, reason, days, now))


def threads_by_day(
    store: Store, days: DayRange, *, first_day: date, today: date, forgotten: Forgotten = NOTHING
) -> dict[date, list[Settled]]:
    """The settled issues and pull requests of these days; what is older than the first partition is in that one.

    Those that are older than they are kept are left out.
    """
    first = "0000" if days.first <= first_day else f"{days.first.isoformat()}T00:00:00Z"
    # A clock at GitHub that is ahead of ours must not put a change where no partition is yet.
    last = "9999" if days.last >= today else f"{days.last.isoformat()}T23:59:59Z"
    found: dict[date, list[Settled]] = defaultdict(list)
    for thread in store.threads_between(first, last):
        if is_kept(thread, forgotten):
            found[day_of(thread, first_day=first_day, today=today)].append(thread)
    return found


def is_kept(thread: Settled, forgotten: Forgotten) -> bool:
    """Whether a thread has a stage, and is not older than it is kept."""
    kind = f"github_{thread.kind}"
    return kind in STAGES and not forgotten.expired(kind, thread.changed_at)


def day_of(thread: Settled, *, first_day: date, today: date) -> date:
    """The partition of a thread."""
    return max(min(thread.changed_at.date(), today), first_day)


def day_inputs(identity: Identity, threads: Sequence[Settled]) -> str:
    """Changes when reading a day's threads would give other items."""
    states = sorted(f"{thread.kind} {thread.number} {thread.digest} {thread.as_of.isoformat()}" for thread in threads)
    return combine(GITHUB_SOURCE_VERSION, str(identity.id), *states)


def item_of(
    mirror: GitHubMirror, store: Store, identity: Identity, thread: Settled, *, day: date, now: datetime
) -> SourceItem:
    """A settled thread, or its tombstone, as a source item of a day."""
    content = store.content(thread.kind, thread.number)
    about: Mapping[str, Any] = json.loads(content) if content else {}
    repository = mirror.repository
    return SourceItem(
        tenant=repository.tenant,
        source_type=f"github_{thread.kind}",
        source_id=mirror.source_id(identity, thread.number),
        repository=repository.name,
        day=day,
        source_updated_at=thread.changed_at,
        observed_at=now,
        as_of=thread.as_of,
        deleted=thread.deleted,
        content=content,
        title=about.get("title") or None,
        url=about.get("url"),
        metadata=_metadata(about) if about else {"number": thread.number},
    )


def _items(
    mirror: GitHubMirror, store: Store, identity: Identity, threads: Sequence[Settled], *, day: date, now: datetime
) -> Iterator[SourceItem]:
    for thread in threads:
        yield item_of(mirror, store, identity, thread, day=day, now=now)


def _metadata(about: Mapping[str, Any]) -> dict[str, Json]:
    found: dict[str, Json] = {key: about[key] for key in _COPIED if about.get(key) not in (None, [], "")}
    found["author"] = about["author"]["login"]
    found["content_type"] = _CONTENT_TYPE
    for branch in ("base", "head"):
        if about.get(branch):
            found[branch] = about[branch]["ref"]
    return found


def _failure(repository: Repository, source_id: str, reason: str, days: DayRange, access: Access) -> Failure:
    return _unusable(repository, source_id, reason, days, access.clock(), source_type="repository")


def _cut_short(repository: Repository, reason: str, days: DayRange, now: datetime) -> Failure:
    reason = f"not everything was read from GitHub, the next run goes on from there: {reason}"
    return _unusable(repository, repository.name, reason, days, now, source_type="repository")


def _unusable(
    repository: Repository, source_id: str, reason: str, days: DayRange, now: datetime, *, source_type: str = "github"
) -> Failure:
    return Failure(
        tenant=repository.tenant, source_type=source_type, source_id=source_id, stage="raw_github",
        repository=repository.name, day=days.last, source_updated_at=now, reason=reason[:500],
    )  # fmt: skip
