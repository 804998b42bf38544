"""What a forge holds: repositories, threads (issues and pull requests), comments, reviews, labels, milestones.

Plain mutable records without behaviour that touches the clock; `model.Forge` has the operations. A thread is an issue
or a pull request; a pull request has `pull` set. A login of None is a ghost (`user: null`), one that ends in `[bot]`
is a bot. All dates are aware, in UTC, in whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

ReviewState = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"]
FileStatus = Literal["added", "removed", "modified", "renamed", "copied", "changed", "unchanged"]
StateReason = Literal["completed", "not_planned", "duplicate", "reopened"]
GoneKind = Literal["deleted", "transferred", "converted"]


@dataclass(slots=True, kw_only=True, eq=False)
class Label:
    """A label of a repository; its threads share it, so renaming it leaves their `updated_at` alone."""

    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Milestone:
    """A milestone of a repository."""

    id: int
    number: int
    title: str
    created_at: datetime


@dataclass(slots=True, kw_only=True)
class ChangedFile:
    """One file that a pull request changes; `patch` is None for binary and very large files."""

    filename: str
    status: FileStatus = "modified"
    additions: int = 1
    deletions: int = 0
    previous_filename: str | None = None
    patch: str | None = "@@ -1 +1,2 @@\n line\n+another line"


@dataclass(slots=True, kw_only=True, eq=False)
class Comment:
    """A comment in the conversation of an issue or pull request."""

    id: int
    thread: Thread = field(repr=False)
    author: str | None
    body: str | None
    created_at: datetime
    updated_at: datetime
    association: str


@dataclass(slots=True, kw_only=True, eq=False)
class Review:
    """A review of a pull request; REST shows no `updated_at` for it. A pending one only its author sees."""

    id: int
    thread: Thread = field(repr=False)
    author: str | None
    body: str | None
    state: ReviewState
    submitted_at: datetime
    commit_id: str
    association: str


@dataclass(slots=True, kw_only=True, eq=False)
class ReviewComment:
    """A comment on a line of a pull request's diff; `line` is None once a push has outdated it."""

    id: int
    thread: Thread = field(repr=False)
    review: Review = field(repr=False)
    author: str | None
    body: str | None
    path: str
    line: int | None
    original_line: int | None
    start_line: int | None
    side: Literal["LEFT", "RIGHT"]
    diff_hunk: str
    in_reply_to: int | None
    commit_id: str
    created_at: datetime
    updated_at: datetime
    association: str


@dataclass(slots=True, kw_only=True, eq=False)
class Pull:
    """What a pull request has beyond an issue; `id` is the pull's own.

    `head_repository` is the name of a fork when it is another repository, None when that was deleted.
    """

    id: int
    base_ref: str
    base_sha: str
    head_ref: str
    head_sha: str
    head_repository: Repository | str | None
    draft: bool = False
    commits: int = 1
    merged_at: datetime | None = None
    merged_by: str | None = None
    merge_commit_sha: str | None = None
    files: list[ChangedFile] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    review_comments: list[ReviewComment] = field(default_factory=list)

    def shown_reviews(self) -> list[Review]:
        """The reviews that everybody sees: not the pending ones."""
        return [review for review in self.reviews if review.state != "PENDING"]

    def shown_review_comments(self) -> list[ReviewComment]:
        """The review comments that everybody sees: not those of pending reviews."""
        return [comment for comment in self.review_comments if comment.review.state != "PENDING"]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Thread:
    """An issue or a pull request; `id` is the issue's, also for a pull request."""

    id: int
    number: int
    repository: Repository
    author: str | None
    title: str
    body: str | None
    created_at: datetime
    updated_at: datetime
    association: str
    closed_at: datetime | None = None
    closed_by: str | None = None
    state_reason: StateReason | None = None
    labels: list[Label] = field(default_factory=list)
    milestone: Milestone | None = None
    assignees: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    pull: Pull | None = None

    def __repr__(self) -> str:
        return f"<{self.repository.full_name}#{self.number}: {self.title!r}, {self.state}>"

    @property
    def state(self) -> Literal["open", "closed"]:
        """Open or closed; a merged pull request is closed."""
        return "open" if self.closed_at is None else "closed"

    @property
    def is_pull(self) -> bool:
        """Whether this is a pull request."""
        return self.pull is not None

    def the_pull(self) -> Pull:
        """The pull request's own part; raises ValueError on an issue."""
        if self.pull is None:
            raise ValueError(f"{self.repository.full_name}#{self.number} is an issue, not a pull request")
        return self.pull


@dataclass(slots=True, kw_only=True)
class Gone:
    """What is left of a thread that was deleted, transferred (then with its new place) or made a discussion."""

    kind: GoneKind
    moved_to: Thread | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Repository:
    """A repository; `threads` and `gone` are keyed by number; `installation` is None without the GitHub App."""

    id: int
    full_name: str
    private: bool
    default_branch: str
    created_at: datetime
    updated_at: datetime
    installation: int | None = None
    threads: dict[int, Thread] = field(default_factory=dict)
    gone: dict[int, Gone] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    milestones: dict[str, Milestone] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{self.full_name}: {len(self.threads)} threads>"

    @property
    def owner(self) -> str:
        """The account before the slash."""
        return self.full_name.partition("/")[0]

    @property
    def name(self) -> str:
        """The name after the slash."""
        return self.full_name.partition("/")[2]

    def issues(self) -> list[Thread]:
        """The issues that are not pull requests, oldest number first."""
        return [thread for thread in self.everything() if not thread.is_pull]

    def pulls(self) -> list[Thread]:
        """The pull requests, oldest number first."""
        return [thread for thread in self.everything() if thread.is_pull]

    def everything(self) -> list[Thread]:
        """All threads that still exist, by number."""
        return [self.threads[number] for number in sorted(self.threads)]

    def comments(self) -> list[Comment]:
        """The conversation comments of all threads, by id."""
        return sorted((c for thread in self.everything() for c in thread.comments), key=lambda c: c.id)

    def review_comments(self) -> list[ReviewComment]:
        """The review comments of all pull requests that everybody sees, by id."""
        found = (c for thread in self.everything() if thread.pull for c in thread.pull.shown_review_comments())
        return sorted(found, key=lambda c: c.id)

    def next_number(self) -> int:
        """The number that the next issue or pull request gets: numbers are never used twice."""
        return max([0, *self.threads, *self.gone]) + 1
