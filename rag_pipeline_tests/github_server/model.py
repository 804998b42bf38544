"""The forge that tests mutate: every operation does what a user of GitHub can do, and moves the dates as GitHub does.

Each change of a thread or of what is said in it sets the thread's `updated_at` to the forge's clock (GitHub's own data
agree: of 93 edited comments and 1,308 reviews in the archive that `archive` reads, none is newer than its thread).
`silently=True` leaves the thread's alone, for what GitHub misses. This module has repositories and threads,
`conversation` has what is said in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from rag_pipeline_tests.github_server.conversation import Conversation
from rag_pipeline_tests.github_server.nouns import (
    ChangedFile,
    Comment,
    Gone,
    Pull,
    Repository,
    ReviewComment,
    StateReason,
    Thread,
)  # fmt: skip
from rag_pipeline_tests.github_server.world import UNCHANGED, Unchanged, association, locked, sha_of


class Forge(Conversation):
    """An emulated GitHub without its network: set `now`, mutate, and serve it with `server.GitHubServer`."""

    # Repositories

    @locked
    def add_repository(
        self, full_name: str, *, private: bool = False, default_branch: str = "main", installation: int | None = None
    ) -> Repository:
        """Create a repository; a redirect from an older repository's former name ends here, as on GitHub."""
        self.renamed.pop(full_name.lower(), None)
        repository = Repository(
            id=self.new_id(), full_name=full_name, private=private, default_branch=default_branch,
            created_at=self.moment(), updated_at=self.moment(), installation=installation,
        )  # fmt: skip
        self.repositories[repository.id] = repository
        return repository

    @locked
    def rename_repository(self, repository: Repository, full_name: str) -> None:
        """Rename (or give to another owner): the id stays, the old name redirects."""
        self.renamed[repository.full_name.lower()] = repository.id
        self.renamed.pop(full_name.lower(), None)
        repository.full_name, repository.updated_at = full_name, self.moment()

    @locked
    def delete_repository(self, repository: Repository) -> None:
        """The repository answers 404 from now on, by all its names."""
        del self.repositories[repository.id]

    # Threads

    @locked
    def open_issue(
        self, repository: Repository, *, title: str = "An issue", body: str | None = "", author: str | None = "ada",
        labels: Iterable[str] = (), milestone: str | None = None, assignees: Iterable[str] = (),
        number: int | None = None,
    ) -> Thread:  # fmt: skip
        """Open an issue; it gets the repository's next number unless one is given."""
        thread = Thread(
            id=self.new_id(), number=number or repository.next_number(), repository=repository, author=author,
            title=title, body=body, created_at=self.moment(), updated_at=self.moment(),
            association=association(repository, author), assignees=list(assignees),
            labels=[self.label_of(repository, name) for name in labels],
            milestone=self.milestone_of(repository, milestone) if milestone else None,
        )  # fmt: skip
        repository.threads[thread.number] = thread
        return thread

    @locked
    def open_pull_request(
        self, repository: Repository, *, title: str = "A pull request", body: str | None = "",
        author: str | None = "ada", base: str | None = None, base_sha: str | None = None, head: str = "feature",
        head_sha: str | None = None, head_repository: Repository | str | None = "", files: Iterable[ChangedFile] = (),
        draft: bool = False, labels: Iterable[str] = (), number: int | None = None,
    ) -> Thread:  # fmt: skip
        """Open a pull request; `head_repository` "" is the same repository, None a fork that was deleted."""
        thread = self.open_issue(repository, title=title, body=body, author=author, labels=labels, number=number)
        thread.pull = Pull(
            id=self.new_id(), base_ref=base or repository.default_branch, head_ref=head, draft=draft,
            base_sha=base_sha or sha_of(repository.id, "base"), files=list(files),
            head_sha=head_sha or sha_of(repository.id, head, thread.number),
            head_repository=repository if head_repository == "" else head_repository,
            merge_commit_sha=sha_of("test merge", thread.id),
        )  # fmt: skip
        return thread

    @locked
    def edit_thread(
        self, thread: Thread, *, title: str | None = None, body: str | Unchanged | None = UNCHANGED,
        silently: bool = False,
    ) -> None:  # fmt: skip
        """Change the title, the body or both."""
        thread.title = thread.title if title is None else title
        thread.body = thread.body if isinstance(body, Unchanged) else body
        self._touch(thread, silently)

    @locked
    def close(
        self, thread: Thread, *, state_reason: StateReason = "completed", by: str | None = "ada", silently: bool = False
    ) -> None:
        """Close; a pull request has no reason."""
        thread.closed_at, thread.closed_by = self.moment(), by
        thread.state_reason = None if thread.is_pull else state_reason
        self._touch(thread, silently)

    @locked
    def reopen(self, thread: Thread, *, silently: bool = False) -> None:
        """Open again."""
        thread.closed_at, thread.closed_by = None, None
        thread.state_reason = None if thread.is_pull else "reopened"
        self._touch(thread, silently)

    @locked
    def merge(self, thread: Thread, *, by: str | None = "ada", sha: str | None = None, silently: bool = False) -> None:
        """Merge a pull request, which closes it."""
        pull = thread.the_pull()
        self.close(thread, by=by, silently=silently)
        pull.merged_at, pull.merged_by = self.moment(), by
        pull.merge_commit_sha = sha or sha_of("merge", thread.id)

    @locked
    def push(
        self, thread: Thread, *, head_sha: str | None = None, files: Iterable[ChangedFile] | None = None,
        outdates: Iterable[ReviewComment] = (), silently: bool = False,
    ) -> None:  # fmt: skip
        """Push to a pull request's branch; the review comments in `outdates` lose their line."""
        pull = thread.the_pull()
        pull.head_sha = head_sha or sha_of("push", pull.head_sha)
        pull.commits += 1
        pull.files = pull.files if files is None else list(files)
        for comment in outdates:
            comment.line = None
        self._touch(thread, silently)

    @locked
    def delete_issue(self, thread: Thread) -> None:
        """Delete with all its comments: its number answers 410."""
        self._remove(thread, Gone(kind="deleted"))

    @locked
    def transfer_issue(self, thread: Thread, target: Repository) -> Thread:
        """Move to another repository: a new number and new ids there, a redirect here; returns the new issue."""
        _only_issue(thread, "transferred")
        kept = [label for label in thread.labels if label.name in target.labels]
        moved = Thread(
            id=self.new_id(), number=target.next_number(), repository=target, author=thread.author, title=thread.title,
            body=thread.body, created_at=thread.created_at, updated_at=self.moment(), closed_at=thread.closed_at,
            closed_by=thread.closed_by, state_reason=thread.state_reason, assignees=list(thread.assignees),
            association=association(target, thread.author), labels=[target.labels[label.name] for label in kept],
        )  # fmt: skip
        moved.comments = [
            Comment(
                id=self.new_id(), thread=moved, author=old.author, body=old.body, created_at=old.created_at,
                updated_at=old.updated_at, association=association(target, old.author),
            )
            for old in thread.comments
        ]  # fmt: skip
        target.threads[moved.number] = moved
        self._remove(thread, Gone(kind="transferred", moved_to=moved))
        return moved

    @locked
    def convert_to_discussion(self, thread: Thread, *, gone: bool = True) -> None:
        """Make a discussion of an issue: 410, or with `gone=False` it stays, closed, which also happens on GitHub."""
        _only_issue(thread, "converted")
        if gone:
            self._remove(thread, Gone(kind="converted"))
        else:
            self.close(thread)

    # Labels, milestones, assignees

    @locked
    def label(self, thread: Thread, *names: str, silently: bool = False) -> None:
        """Put labels on; the repository gets those that it lacks."""
        wanted = [self.label_of(thread.repository, name) for name in names]
        thread.labels += [label for label in wanted if label not in thread.labels]
        self._touch(thread, silently)

    @locked
    def unlabel(self, thread: Thread, *names: str, silently: bool = False) -> None:
        """Take labels off."""
        thread.labels = [label for label in thread.labels if label.name not in names]
        self._touch(thread, silently)

    @locked
    def rename_label(self, repository: Repository, old: str, new: str) -> None:
        """Rename a label; the threads that bear it show the new name, with the `updated_at` they had."""
        label = repository.labels.pop(old)
        label.name = new
        repository.labels[new] = label

    @locked
    def set_milestone(self, thread: Thread, title: str | None, *, silently: bool = False) -> None:
        """Set the milestone, which the repository gets when it lacks it, or with None remove it."""
        thread.milestone = self.milestone_of(thread.repository, title) if title else None
        self._touch(thread, silently)

    @locked
    def assign(self, thread: Thread, *logins: str, silently: bool = False) -> None:
        """Make these people, and no others, the assignees."""
        thread.assignees = list(logins)
        self._touch(thread, silently)


def _only_issue(thread: Thread, what: str) -> None:
    if thread.is_pull:
        raise ValueError(f"{thread.repository.full_name}#{thread.number} is a pull request: only issues can be {what}")
