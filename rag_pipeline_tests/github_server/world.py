"""What every operation of the forge stands on: the clock, the ids, the lock, the repositories and how to find them.

Nothing moves the clock but the test: `forge.now = …`, `forge.tick()`.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from rag_pipeline_tests.github_server.nouns import Gone, Label, Milestone, Repository, Thread

W = TypeVar("W", bound="World")
P = ParamSpec("P")
R = TypeVar("R")


class Unchanged(Enum):
    """The type of UNCHANGED, which means: leave this field as it is (None means: no text)."""

    UNCHANGED = 0


UNCHANGED: Final = Unchanged.UNCHANGED


def sha_of(*parts: object) -> str:
    """A commit id made from these parts: the same parts give the same id."""
    return hashlib.sha1("\0".join(map(str, parts)).encode()).hexdigest()


def association(repository: Repository, login: str | None) -> str:
    """How an author stands to a repository, when nothing says otherwise."""
    if login is None:
        return "NONE"
    return "OWNER" if login == repository.owner else "CONTRIBUTOR"


def locked(method: Callable[Concatenate[W, P], R]) -> Callable[Concatenate[W, P], R]:
    """An operation that no answer of the server sees half done."""

    @wraps(method)
    def under_lock(self: W, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return method(self, *args, **kwargs)

    return under_lock


class World:
    """All repositories, one clock, one sequence of ids."""

    def __init__(self, *, now: datetime = datetime(2024, 5, 1, 12, tzinfo=UTC)) -> None:
        self.now = now
        self.repositories: dict[int, Repository] = {}
        self.renamed: dict[str, int] = {}  # former full name in lower case → repository id
        self.lock = threading.RLock()
        self._last_id = 1_000_000

    def tick(self, seconds: float = 1) -> datetime:
        """Let time pass; returns the new time."""
        self.now += timedelta(seconds=seconds)
        return self.now

    def moment(self) -> datetime:
        """The time as GitHub keeps it: whole seconds, UTC."""
        return self.now.astimezone(UTC).replace(microsecond=0)

    def new_id(self) -> int:
        """An id that nothing has had."""
        self._last_id += 1
        return self._last_id

    def repository(self, full_name: str) -> Repository:
        """The repository that has this name now, in any case; raises KeyError."""
        for repository in self.repositories.values():
            if repository.full_name.lower() == full_name.lower():
                return repository
        raise KeyError(full_name)

    def thread(self, full_name: str, number: int) -> Thread:
        """The issue or pull request with this number; raises KeyError."""
        return self.repository(full_name).threads[number]

    def label_of(self, repository: Repository, name: str) -> Label:
        """The repository's label of this name, new if need be."""
        if name not in repository.labels:
            repository.labels[name] = Label(id=self.new_id(), name=name)
        return repository.labels[name]

    def milestone_of(self, repository: Repository, title: str) -> Milestone:
        """The repository's milestone of this title, new if need be."""
        if title not in repository.milestones:
            repository.milestones[title] = Milestone(
                id=self.new_id(), number=len(repository.milestones) + 1, title=title, created_at=self.moment()
            )
        return repository.milestones[title]

    def _touch(self, thread: Thread, silently: bool) -> None:
        if not silently:
            thread.updated_at = self.moment()

    def _remove(self, thread: Thread, gone: Gone) -> None:
        del thread.repository.threads[thread.number]
        thread.repository.gone[thread.number] = gone
