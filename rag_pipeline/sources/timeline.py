"""When a branch reached which state: its first-parent commits and the rewrites we saw, on one time line.

The branch's state is what people see, so its history is the first-parent chain of its head. A commit's time is the
latest committer date up to it, so that time never runs backwards along the chain. When the branch was moved to a commit
that does not continue it (a force-push, or a merge that made the old head a second parent), the difference of the two
states is a change of the moment we saw it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from rag_pipeline.sources.mirror import HEAD, HeadMove, Mirror

_CLOCK_SKEW = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of the branch's state: a commit, or a rewrite (`old` is the commit it replaced)."""

    commit: str
    at: datetime
    old: str | None = None

    @property
    def is_rewrite(self) -> bool:
        """Whether the branch jumped here instead of growing."""
        return self.old is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The part of a time line that a range of days covers."""

    base: str | None
    """The commit before the window; None: the empty tree."""
    end: str
    """The last commit of the window."""
    steps: Sequence[Step]
    """Oldest first."""
    first_day: date
    """Where days before the first partition are counted."""

    def day_of(self, at: datetime) -> date:
        """The partition of a moment."""
        return max(at.date(), self.first_day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a branch has been indexed."""

    commit: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A branch's steps, oldest first, with never decreasing times."""

    steps: Sequence[Step]

    @property
    def head(self) -> Position | None:
        """Where the branch stands."""
        return Position(commit=self.steps[-1].commit, at=self.steps[-1].at) if self.steps else None

    def window(self, *, first: date, last: date, first_day: date) -> Window | None:
        """The steps of the days `first` to `last`; None when there are none.

        A window that begins at (or before) `first_day`, the first partition, starts from the empty tree.
        """
        begin = 0 if first <= first_day else self._index(first)
        stop = self._index(last + timedelta(days=1))
        steps = self.steps[begin:stop]
        if not steps or last < first_day:
            return None
        before = next((s.commit for s in reversed(self.steps[:begin])), None)
        return Window(base=before, end=steps[-1].commit, steps=steps, first_day=first_day)

    def first_day_after(self, position: Position | None, *, first_day: date) -> date | None:
        """The first day with a step that came after `position`; None when there is none.

        A commit that is not (or no longer) on the line counts as never seen, unless a rewrite tells what followed it.
        """
        later = self.steps[self._index_after(position) :]
        return max(later[0].at.date(), first_day) if later else None

    def joins(self, position: Position | None, *, first: date, first_day: date) -> bool:
        """Whether a window from `first` on follows what was indexed up to `position` without a gap."""
        due = self.first_day_after(position, first_day=first_day)
        return due is None or first <= due

    def _index_after(self, position: Position | None) -> int:
        if position is None:
            return 0
        for index in range(len(self.steps) - 1, -1, -1):
            if self.steps[index].commit == position.commit and self.steps[index].at <= position.at:
                return index + 1
        return next((i for i, step in enumerate(self.steps) if step.old == position.commit), 0)

    def _index(self, day: date) -> int:
        return bisect_left(self.steps, day, key=lambda step: step.at.date())


def read_timeline(mirror: Mirror, *, now: datetime) -> Timeline:
    """The time line of a fetched mirror; `now` bounds dates that lie in the future by a broken clock."""
    if mirror.head() is None:
        return Timeline(steps=())
    output = mirror.run("log", "--first-parent", "--reverse", "--format=%H %ct", HEAD).decode()
    chain = [(line[:40], int(line[41:])) for line in output.splitlines()]
    position = {commit: index for index, (commit, _) in enumerate(chain)}
    rewrites = _rewrites(mirror, position)
    steps: list[Step] = []
    latest = datetime.min.replace(tzinfo=UTC)
    for index, (commit, seconds) in enumerate(chain):
        date_given = datetime.fromtimestamp(max(seconds, 0), UTC)
        if date_given <= now + _CLOCK_SKEW:
            latest = max(latest, date_given)
        elif latest.year == 1:
            latest = now
        while rewrites and rewrites[0][0] < index:
            latest = _insert(steps, rewrites.pop(0)[1], latest)
            latest = max(latest, steps[-1].at)
        steps.append(Step(commit=commit, at=latest))
    for _, move in rewrites:
        latest = _insert(steps, move, latest)
    return Timeline(steps=steps)


def _insert(steps: list[Step], move: HeadMove, latest: datetime) -> datetime:
    at = max(move.at, steps[-1].at) if steps else move.at
    steps.append(Step(commit=steps[-1].commit if steps else move.new, old=move.old, at=at))
    return max(latest, at)


def _rewrites(mirror: Mirror, position: dict[str, int]) -> list[tuple[int, HeadMove]]:
    """Moves of the branch that its present first-parent chain does not explain, with where on the chain they ended."""
    found = []
    for move in mirror.moves():
        end = position.get(move.new)
        if end is None:
            # The branch has been rewritten again since; where it then stood is where it joins today's chain.
            end = position.get(_joins(mirror, move.new, position), len(position) - 1)
            found.append((end, move))
        elif position.get(move.old, end + 1) > end:
            found.append((end, move))
    return sorted(found, key=lambda entry: entry[0])


def _joins(mirror: Mirror, commit: str, position: dict[str, int]) -> str:
    output = mirror.run("log", "--first-parent", "--format=%H", commit).decode()
    return next((line for line in output.splitlines() if line in position), "")
