"""A real project's archive as a forge: https://github.com/cfrg/draft-irtf-cfrg-vdaf, at thirty dates over two years.

The data are not in this repository. `RAG_TEST_DATA` names the folder that holds them, as `vdaf/archive/snapshots/`;
without it `snapshots()` is empty and tests skip. They are GraphQL-shaped, and lack what this module has to make up:
the ids of comments, the file and the author of a review comment (its review's), why and by whom an issue was closed.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal, TypedDict, TypeVar, cast

from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import (
    ChangedFile,
    Comment,
    Gone,
    Pull,
    Repository,
    Review,
    ReviewComment,
    ReviewState,
    Thread,
)


class _Dated(TypedDict):
    body: str
    createdAt: str
    updatedAt: str


class _Authored(_Dated):
    author: str | None
    authorAssociation: str


class _ReviewComment(_Dated):
    originalPosition: int


class _Placed(_ReviewComment, _Authored):
    """A review comment with its review's author."""


class _Review(_Authored):
    id: str
    state: ReviewState
    commit: dict[str, str] | None
    comments: list[_ReviewComment]


class _Issue(_Authored):
    number: int
    id: str
    title: str
    state: Literal["OPEN", "CLOSED", "MERGED"]
    assignees: list[str]
    labels: list[str]
    closedAt: str | None
    comments: list[_Authored]


class _Pull(_Issue):
    baseRefName: str
    baseRefOid: str
    headRepository: str | None
    headRefName: str
    headRefOid: str
    mergedAt: str | None
    mergedBy: str | None
    mergeCommit: dict[str, str] | None
    reviews: list[_Review]


class _Label(TypedDict):
    name: str
    description: str | None
    color: str


class Snapshot(TypedDict):
    """The archive at one moment."""

    timestamp: str
    repo: str
    labels: list[_Label]
    issues: list[_Issue]
    pulls: list[_Pull]


A = TypeVar("A", Comment, Review, ReviewComment)
D = TypeVar("D", bound=_Authored)
_Creation = tuple[str, int, Callable[[], object]]


def snapshots() -> list[Path]:
    """The files of the archive, oldest first; none without the data."""
    folder = os.environ.get("RAG_TEST_DATA")
    return sorted(Path(folder, "vdaf", "archive", "snapshots").glob("*.json.gz")) if folder else []


def read(path: Path) -> Snapshot:
    """One snapshot."""
    with gzip.open(path) as file:
        return cast("Snapshot", json.load(file))


def become(forge: Forge, snapshot: Snapshot) -> Repository:
    """Bring the forge to the state and the time of a snapshot: from nothing, or from an earlier one.

    What the snapshot no longer has is deleted; what it has for the first time gets ids in the order of its dates.
    """
    with forge.lock:
        forge.now = _moment(snapshot["timestamp"])
        repository = _repository(forge, snapshot)
        both: list[_Issue] = [*snapshot["issues"], *snapshot["pulls"]]
        for number in set(repository.threads) - {each["number"] for each in both}:
            del repository.threads[number]
            repository.gone[number] = Gone(kind="deleted")
        for each in sorted(both, key=lambda each: (each["createdAt"], each["number"])):
            _state(forge, repository, each)
        created = [creation for each in both for creation in _remarks(forge, repository, each)]
        for _, _, create in sorted(created, key=lambda creation: creation[:2]):
            create()
    return repository


def differences(before: Snapshot, after: Snapshot) -> dict[str, set[int]]:
    """The numbers of the threads that were `added`, `changed` and `removed` between two snapshots."""
    old, new = _by_number(before), _by_number(after)
    changed = {number for number in old.keys() & new.keys() if old[number] != new[number]}
    return {"added": set(new.keys() - old.keys()), "changed": changed, "removed": set(old.keys() - new.keys())}


def _by_number(snapshot: Snapshot) -> dict[int, _Issue]:
    return {each["number"]: each for each in [*snapshot["issues"], *snapshot["pulls"]]}


def _repository(forge: Forge, snapshot: Snapshot) -> Repository:
    try:
        repository = forge.repository(snapshot["repo"])
    except KeyError:
        repository = forge.add_repository(snapshot["repo"])
    for named in snapshot["labels"]:
        label = forge.label_of(repository, named["name"])
        label.color, label.description = named["color"], named["description"]
    return repository


def _state(forge: Forge, repository: Repository, each: _Issue) -> None:
    # Everything about a thread but what others say in it.
    thread = repository.threads.get(each["number"])
    if thread is None:
        thread = forge.open_issue(repository, number=each["number"], author=each["author"])
    thread.title, thread.body, thread.association = each["title"], each["body"], each["authorAssociation"]
    thread.created_at, thread.updated_at = _moment(each["createdAt"]), _moment(each["updatedAt"])
    thread.closed_at = _moment(each["closedAt"]) if each["closedAt"] else None
    thread.labels = [forge.label_of(repository, name) for name in each["labels"]]
    thread.assignees = list(each["assignees"])
    if "baseRefName" in each:
        thread.pull = _pull(forge, repository, cast("_Pull", each), thread.pull)
    else:
        thread.state_reason = "completed" if thread.closed_at else None


def _pull(forge: Forge, repository: Repository, each: _Pull, known: Pull | None) -> Pull:
    pull = known or Pull(
        id=forge.new_id(), base_ref="", base_sha="", head_ref="", head_sha="", head_repository=None,
        files=[ChangedFile(filename=_document(repository))],
    )  # fmt: skip
    pull.base_ref, pull.base_sha = each["baseRefName"], each["baseRefOid"]
    pull.head_ref, pull.head_sha = each["headRefName"], each["headRefOid"]
    is_own = each["headRepository"] == repository.full_name
    pull.head_repository = repository if is_own else each["headRepository"]
    pull.merged_at, pull.merged_by = _moment(each["mergedAt"]) if each["mergedAt"] else None, each["mergedBy"]
    pull.merge_commit_sha = each["mergeCommit"]["oid"] if each["mergeCommit"] else None
    return pull


def _remarks(forge: Forge, repository: Repository, each: _Issue) -> Iterator[_Creation]:
    # Edits and removes what is there; gives back what is still to be created, with its date.
    thread = repository.threads[each["number"]]
    for comment, said in _pairs(thread.comments, each["comments"], lambda comment: comment.created_at):
        if comment is None:
            yield said["createdAt"], thread.number, partial(_comment, forge, thread, said)
        else:
            comment.body, comment.updated_at = said["body"], _moment(said["updatedAt"])
    if thread.pull is None:
        return
    given = cast("_Pull", each)["reviews"]
    for review, reviewed in _pairs(thread.pull.reviews, given, lambda review: review.submitted_at):
        if review is None:
            yield reviewed["createdAt"], thread.number, partial(_review, forge, thread, reviewed)
        else:
            review.body, review.state = reviewed["body"], reviewed["state"]
            yield from _review_remarks(forge, review, reviewed)


def _review_remarks(forge: Forge, review: Review, reviewed: _Review) -> Iterator[_Creation]:
    said = review.thread.the_pull().review_comments
    own = [comment for comment in said if comment.review is review]
    before = list(own)
    for comment, given in _pairs(own, _authored(reviewed), lambda comment: comment.created_at):
        if comment is None:
            yield given["createdAt"], review.thread.number, partial(_review_comment, forge, review, given)
        else:
            comment.body, comment.updated_at = given["body"], _moment(given["updatedAt"])
    for comment in before:
        if comment not in own:
            said.remove(comment)


def _pairs(known: list[A], given: Sequence[D], when: Callable[[A], datetime]) -> list[tuple[A | None, D]]:
    # Each given remark with the one that is there: same author, same date. The others leave `known`.
    there: dict[tuple[str | None, datetime], list[A]] = defaultdict(list)
    for one in known:
        there[one.author, when(one)].append(one)
    waiting = ((there[said["author"], _moment(said["createdAt"])], said) for said in given)
    pairs = [(found.pop(0) if found else None, said) for found, said in waiting]
    left = [one for found in there.values() for one in found]
    known[:] = [one for one in known if one not in left]
    return pairs


def _comment(forge: Forge, thread: Thread, said: _Authored) -> None:
    comment = forge.comment(thread, said["body"], author=said["author"], silently=True)
    comment.created_at, comment.updated_at = _moment(said["createdAt"]), _moment(said["updatedAt"])
    comment.association = said["authorAssociation"]


def _review(forge: Forge, thread: Thread, reviewed: _Review) -> None:
    commit = reviewed["commit"]["abbreviatedOid"] if reviewed["commit"] else None
    review = forge.review(
        thread, reviewed["state"], body=reviewed["body"], author=reviewed["author"], silently=True,
        commit_id=commit and commit.ljust(40, "0"),
    )  # fmt: skip
    review.submitted_at, review.association = _moment(reviewed["createdAt"]), reviewed["authorAssociation"]
    for said in _authored(reviewed):
        _review_comment(forge, review, said)


def _review_comment(forge: Forge, review: Review, said: _Placed) -> None:
    line = said["originalPosition"]
    comment = forge.review_comment(
        review.thread, said["body"], author=review.author, review=review, silently=True, line=line,
        path=_document(review.thread.repository), diff_hunk=f"@@ -{line},3 +{line},4 @@\n context\n+changed",
    )  # fmt: skip
    comment.created_at, comment.updated_at = _moment(said["createdAt"]), _moment(said["updatedAt"])
    comment.association = review.association


def _authored(reviewed: _Review) -> list[_Placed]:
    author, association = reviewed["author"], reviewed["authorAssociation"]
    return [{**said, "author": author, "authorAssociation": association} for said in reviewed["comments"]]


def _document(repository: Repository) -> str:
    # The project is one document; which file was changed where, the archive does not say.
    return f"{repository.name}.md"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
