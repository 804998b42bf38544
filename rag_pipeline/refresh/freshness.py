"""How fresh the index is: what is known of each source against what the settings ask for. Pure: no clock, no database.

A source is fresh when the position at which it was last read is the one up to which everything is in the index or in
the quarantine. It is complete up to the moment whose run read it, covered the day of that reading, and left nothing
over: a run over an old day makes nothing fresh, and one that failed does not either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from rag_pipeline.index.bookkeeping import SourceKey
from rag_pipeline.index.freshness import SourceFreshness
from rag_pipeline.model import DayRange
from rag_pipeline.refresh.day_ranges import merge_ranges
from rag_pipeline.settings import Settings
from rag_pipeline.sources.kinds.registry import blocks_of, kinds
from rag_pipeline.sources.kinds.stage import first_day_of


class State(StrEnum):
    """How a source stands."""

    FRESH = "fresh"
    BEHIND = "behind"
    """It shows more than the index holds, and not for too long yet."""
    STALE = "stale"
    NEVER = "never indexed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one source of the settings stands."""

    seen: SourceFreshness
    state: State
    lag: timedelta | None
    """Since everything it showed was in the index; None: it never was."""
    due: Sequence[DayRange]
    """The days that runs have to cover to make it fresh, first of all those since it was complete."""
    why: str
    """What is wrong with it, in a few words; empty when nothing is."""
    unreadable: bool = False
    """It could not be read just now, so that no run would help."""

    @property
    def key(self) -> SourceKey:
        """Which source."""
        return self.seen.key

    @property
    def is_stale(self) -> bool:
        """Whether somebody must hear of it."""
        return self.state in (State.STALE, State.NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What whoever looked at the sources found beside what the database remembers."""

    pending: Mapping[SourceKey, Sequence[date]]
    """Days that the index has not seen, by what was read of a source; one that was never read has no entry."""
    unreadable: Mapping[SourceKey, str]
    """Why a source could not be read just now."""
    waiting_since: datetime | None = None
    """When the oldest drop that waits in the inbox was written."""


NOTHING_KNOWN = Known(pending={}, unreadable={})


def required_sources(settings: Settings) -> dict[SourceKey, date]:
    """The sources that the settings name, each with its first partition. Drops are not: nobody knows when they come."""
    git = {
        SourceKey(tenant=r.tenant, repository=r.name, source="git"): settings.first_day_of(r)
        for r in settings.git_repositories
    }
    github = {
        SourceKey(tenant=r.tenant, repository=r.name, source="github"): settings.first_day_of(r)
        for r in settings.github_repositories
    }
    further = {
        SourceKey(tenant=block.tenant, repository=block.name, source=kind.name): first_day_of(block, settings)
        for kind in kinds()
        for block in blocks_of(kind, settings)
    }
    return git | github | further


def judge(
    rows: Iterable[SourceFreshness], settings: Settings, *, now: datetime, known: Known = NOTHING_KNOWN
) -> list[Standing]:
    """How each source stands, in order of tenant, repository and source.

    A source of the settings that was never indexed is among them, one that left the settings is not. Drops are stale
    only when one of them waits for too long: no drop is no reason to complain.
    """
    by_key = {row.key: row for row in rows}
    found = [
        _judge(by_key.get(key, SourceFreshness(key=key)), settings, first_day=first_day, now=now, known=known)
        for key, first_day in required_sources(settings).items()
    ]
    inbox = SourceKey(tenant=settings.tenant, repository="inbox", source="drops")
    drops = {key: row for key, row in by_key.items() if key.source == "drops"}
    if known.waiting_since is not None:
        drops.setdefault(inbox, SourceFreshness(key=inbox))
    found += [
        _judge_drops(
            row, settings, now=now, pending=known.pending.get(key, ()),
            waiting_since=known.waiting_since if key == inbox else None,
        )
        for key, row in drops.items()
    ]  # fmt: skip
    return sorted(found, key=lambda standing: (standing.key.tenant, standing.key.repository, standing.key.source))


def missing_days(standings: Iterable[Standing]) -> list[DayRange]:
    """The days to run, with those of small holes between them; a source that cannot be read now asks for none."""
    return merge_ranges(days for standing in standings if not standing.unreadable for days in standing.due)


def staleness_lines(standings: Iterable[Standing]) -> list[str]:
    """What somebody must hear of, a line per source; none when the index is fresh."""
    return [
        f"{key.repository} ({key.source}, tenant {key.tenant}): {standing.why}"
        for standing in standings
        if standing.is_stale
        for key in [standing.key]
    ]


def spoken_lag(lag: timedelta | None) -> str:
    """A length of time for people, such as `3 d 4 h`; `-` for none."""
    if lag is None:
        return "-"
    minutes = max(int(lag.total_seconds()) // 60, 0)
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def _judge(row: SourceFreshness, settings: Settings, *, first_day: date, now: datetime, known: Known) -> Standing:
    problem = known.unreadable.get(row.key) or row.problem
    pending = known.pending.get(row.key)
    lag = now - row.complete_until if row.complete_until else None
    state, why = _state(row, lag, settings, has_pending=bool(pending))
    due: list[DayRange] = []
    if state is not State.FRESH:
        # What a source that was never read holds is anybody's guess.
        since = row.complete_until.date() if row.complete_until else first_day if pending is None else now.date()
        due = _due(max(since, first_day), pending or (), source=row.key.source, today=now.date())
    if problem:
        why = f"{why}; cannot be read: {problem}" if why else f"cannot be read: {problem}"
    return Standing(seen=row, state=state, lag=lag, due=due, why=why, unreadable=row.key in known.unreadable)


def _state(row: SourceFreshness, lag: timedelta | None, settings: Settings, *, has_pending: bool) -> tuple[State, str]:
    if lag is None or row.complete_until is None:
        return State.NEVER, "never wholly indexed"
    if lag > timedelta(hours=settings.freshness.max_lag_hours):
        return State.STALE, f"complete until {row.complete_until:%Y-%m-%d %H:%M} UTC, {spoken_lag(lag)} ago"
    newest = row.newest_item_at
    # The time of a change proves nothing, where it is known what was indexed: it may be shown long after it was made.
    if row.all_indexed is not True and newest is not None and newest > row.complete_until:
        return State.BEHIND, f"shows a change of {newest:%Y-%m-%d %H:%M} UTC that is not indexed"
    if has_pending or row.all_indexed is False:
        return State.BEHIND, "shows changes that are not indexed"
    return State.FRESH, ""


def _judge_drops(
    row: SourceFreshness, settings: Settings, *, now: datetime, pending: Sequence[date], waiting_since: datetime | None
) -> Standing:
    longest = timedelta(hours=settings.freshness.max_lag_hours)
    lag = now - row.complete_until if row.complete_until else None
    newest, until = row.newest_item_at, row.complete_until
    is_ahead = bool(pending) or row.all_indexed is False
    if row.all_indexed is None:
        is_ahead = is_ahead or (newest is not None and (until is None or newest > until))
    state, why = (State.BEHIND, "drops were taken and are not indexed yet") if is_ahead else (State.FRESH, "")
    if waiting_since is not None and not is_ahead:
        state, why = State.BEHIND, "drops wait in the inbox"
    if is_ahead and newest is not None and now - newest > longest:
        state, why = State.STALE, f"drops were taken {spoken_lag(now - newest)} ago and are not indexed"
    if waiting_since is not None and now - waiting_since > longest:
        state, why = State.STALE, f"drops have waited in the inbox for {spoken_lag(now - waiting_since)}"
    # Fresh drops are the drop sensor's business.
    due = _due(now.date(), pending, source="drops", today=now.date()) if state is State.STALE else []
    return Standing(seen=row, state=state, lag=lag, due=due, why=why)


def _due(since: date, pending: Sequence[date], *, source: str, today: date) -> list[DayRange]:
    first = min(since, today)
    if pending and source == "git":
        # Commits build on each other: from the first new one on, one run reads them all.
        first = min(first, *pending)
    earlier = [DayRange(first=day, last=day) for day in pending if day < first]
    return [DayRange(first=first, last=today), *earlier]
