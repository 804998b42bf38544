"""When a branch reached which state: its first-parent commits and the rewrites we saw, on one time line.

The branch's state is what people see, so its history is the first-parent chain of its head. The mirror's reflog says
when we saw which head; the time line is that log replayed, and what was once placed on it keeps its place and time:

- A commit's time is its committer date, but not before its parent's, not before a rewrite that was seen earlier, and
  not after the moment we first saw it (by a clock that runs fast).
- When the branch moves to a commit that does not continue it (a force-push, or a merge that made the old head a second
  parent), that is a change of the moment we saw it, of everything in which the two states differ and of everything
  that the abandoned commits had touched.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from rag_pipeline.sources.git.mirror import HeadMove, Mirror

_CLOCK_SKEW_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of the branch's state: a commit, or a rewrite (`old` is the head it replaced)."""

    commit: str
    at: datetime
    old: str | None = None
    dropped: Sequence[str] = ()
    """Commits that a rewrite took off the branch, newest first."""

    @property
    def is_rewrite(self) -> bool:
        """Whether the branch jumped here instead of growing."""
        return self.old is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a branch has been indexed."""

    commit: str
    at: datetime


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

    @property
    def reached(self) -> Position:
        """Where the window ends."""
        return Position(commit=self.steps[-1].commit, at=self.steps[-1].at)

    def day_of(self, at: datetime) -> date:
        """The partition of a moment."""
        return max(at.date(), self.first_day)


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
        stop = self._index(last + timedelta(days=1)) if last < date.max else len(self.steps)
        steps = self.steps[begin:stop]
        if not steps or last < first_day:
            return None
        before = self.steps[begin - 1].commit if begin else None
        return Window(base=before, end=steps[-1].commit, steps=steps, first_day=first_day)

    def first_day_after(self, position: Position | None, *, first_day: date) -> date | None:
        """The first day with a step that came after `position`; None when there is none.

        A commit that was taken off the branch is followed by the rewrite that did it; one that never was on it counts
        as never seen.
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
        return next((i for i, step in enumerate(self.steps) if position.commit in step.dropped), 0)

    def _index(self, day: date) -> int:
        return bisect_left(self.steps, day, key=lambda step: step.at.date())


def read_timeline(mirror: Mirror, *, now: datetime) -> Timeline:
    """The time line of a fetched mirror; `now` is when it was fetched, should its own record of that be lost."""
    moves = mirror.moves()
    if not moves:
        head = mirror.head()
        moves = [HeadMove(old=None, new=head, at=now)] if head else []
    if not moves:
        return Timeline(steps=())
    seen = (tuple(moves), mirror.shallow_boundary())
    if mirror.path not in _KNOWN or _KNOWN[mirror.path][0] != seen:
        _KNOWN[mirror.path] = seen, _replay(mirror, moves)
    return _KNOWN[mirror.path][1]


# A run asks several times, and the answer depends on nothing but what the mirror saw.
_KNOWN: dict[Path, tuple[object, Timeline]] = {}


def _replay(mirror: Mirror, moves: Sequence[HeadMove]) -> Timeline:
    history = _read_history(mirror, {move.new for move in moves})
    replay = _Replay(history)
    for move in moves:
        # A head whose commit the mirror lost (it was damaged) tells nothing any more.
        if move.new in history.parent:
            replay.see(move.new, at=int(move.at.timestamp()))
    return replay.timeline()


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """First parent and committer date (seconds) of every commit on the first-parent chain of any head there was."""

    parent: Mapping[str, str | None]
    date: Mapping[str, int]


def _read_history(mirror: Mirror, heads: set[str]) -> _History:
    """One git process, however many heads there were."""
    asked = "\n".join(heads).encode()
    output = mirror.run(
        "rev-list", "--first-parent", "--parents", "--timestamp", "--ignore-missing", "--stdin", stdin=asked
    )
    parent: dict[str, str | None] = {}
    dates: dict[str, int] = {}
    for line in output.decode().splitlines():
        seconds, commit, *parents = line.split(" ")
        parent[commit] = parents[0] if parents else None
        dates[commit] = max(int(seconds), 0)
    return _History(parent=parent, date=dates)


class _Replay:
    """The branch's heads, one after the other, as the mirror saw them."""

    def __init__(self, history: _History) -> None:
        self._history = history
        self._chain: list[str] = []
        self._place: dict[str, int] = {}
        self._steps: list[Step] = []
        self._time: dict[str, int] = {}
        self._clock = 0
        self._rewritten_at = 0

    def see(self, head: str, *, at: int) -> None:
        """The branch was seen at `head`; `at` in seconds since 1970."""
        self._clock = max(self._clock, at)
        old = self._chain[-1] if self._chain else None
        gained, dropped = self._move(head)
        regained = any(commit in self._time for commit in gained)
        for commit in gained:
            # A commit that is on the branch again keeps its place: that it is back is a change of now.
            if commit not in self._time:
                self._time[commit] = self._time_of(commit)
                self._steps.append(Step(commit=commit, at=_moment(self._time[commit])))
        if old is not None and (dropped or regained):
            self._rewritten_at = self._clock
            self._steps.append(Step(commit=head, at=_moment(self._clock), old=old, dropped=tuple(dropped)))

    def timeline(self) -> Timeline:
        """The steps of the commits that are on the branch now, and all rewrites."""
        return Timeline(steps=tuple(step for step in self._steps if step.is_rewrite or step.commit in self._place))

    def _move(self, head: str) -> tuple[list[str], list[str]]:
        """Make the branch end at `head`; what it gained (oldest first) and what it lost (newest first)."""
        gained = []
        at: str | None = head
        while at is not None and at not in self._place:
            gained.append(at)
            at = self._history.parent[at]
        gained.reverse()
        kept = self._place[at] + 1 if at is not None else 0
        dropped = self._chain[kept:][::-1]
        del self._chain[kept:]
        for commit in dropped:
            del self._place[commit]
        self._place.update((commit, kept + number) for number, commit in enumerate(gained))
        self._chain += gained
        return gained, dropped

    def _time_of(self, commit: str) -> int:
        parent = self._history.parent[commit]
        floor = max(self._time[parent] if parent else 0, self._rewritten_at)
        given = self._history.date[commit]
        if given > self._clock + _CLOCK_SKEW_S:
            # A broken clock, not a fast one: of no use, and later commits must not be drawn after it.
            return floor
        return max(floor, min(given, self._clock))


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
