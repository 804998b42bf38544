"""Threads in the shape that GitHub's source gives them: made up, and from a real project's archive."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_pipeline.model import SourceItem

ARCHIVE = Path(os.environ.get("RAG_TEST_DATA", "")) / "vdaf" / "archive" / "latest.json.gz"
needs_archive = pytest.mark.skipif(
    not ARCHIVE.is_file(), reason="RAG_TEST_DATA names no folder with vdaf/archive/latest.json.gz"
)
_VERDICTS = {
    "APPROVED": "approved", "CHANGES_REQUESTED": "changes_requested", "COMMENTED": "commented",
    "DISMISSED": "dismissed", "PENDING": "pending",
}  # fmt: skip


def author(login: str, *, bot: bool = False) -> dict[str, Any]:
    """Who wrote something."""
    return {"login": login, "bot": bot}


def comment(body: str, *, by: str = "bob", number: int = 1, **fields: Any) -> dict[str, Any]:
    """A comment, made `number` minutes after noon."""
    at = f"2024-05-02T{12 + number // 60:02}:{number % 60:02}:00Z"
    return {
        "type": "comment", "id": number, "author": author(by), "created_at": at, "updated_at": at, "body": body,
        "anchor": f"#issuecomment-{number}",
    } | fields  # fmt: skip


def review(body: str = "", *, verdict: str = "approved", number: int = 1, **fields: Any) -> dict[str, Any]:
    """A review."""
    return comment(
        body,
        number=number,
        **{"type": "review", "verdict": verdict, "anchor": f"#pullrequestreview-{number}", **fields},
    )


def review_comment(body: str, *, number: int = 1, **fields: Any) -> dict[str, Any]:
    """A comment on line 12 of src/a.py."""
    about = {
        "type": "review_comment", "path": "src/a.py", "line": 12, "start_line": None,
        "diff_hunk": "@@ -8,3 +8,4 @@ def f():\n a\n b\n c\n d\n e\n-old\n+new", "reply_to": None, "review": None,
        "anchor": f"#discussion_r{number}",
    }  # fmt: skip
    return comment(body, number=number, **(about | fields))


def thread(**fields: Any) -> dict[str, Any]:
    """An issue, or with `kind="pull_request"` a pull request, acme/app#17."""
    made = {
        "kind": "issue", "number": 17, "title": "Cache is stale", "body": "It serves old pages.", "state": "open",
        "state_reason": None, "author": author("alice"), "created_at": "2024-05-01T10:11:12Z",
        "updated_at": "2024-05-01T10:11:12Z", "closed_at": None, "url": "https://github.example/acme/app/issues/17",
        "reference": "acme/app#17", "labels": [], "milestone": None, "assignees": [], "links": [], "entries": [],
    }  # fmt: skip
    if fields.get("kind") == "pull_request":
        made |= {
            "draft": False, "merged_at": None, "merge_commit": None, "base": {"ref": "main", "sha": "b" * 40},
            "head": {"ref": "fix", "sha": "c" * 40, "repository": "alice/app"}, "files": [], "closes": [],
        }  # fmt: skip
    return made | fields


def thread_item(thread: dict[str, Any] | bytes, **fields: Any) -> SourceItem:
    """The source item that holds a thread."""
    kind, title = (thread["kind"], thread["title"]) if isinstance(thread, dict) else ("issue", None)
    made: dict[str, Any] = {
        "tenant": "acme", "source_type": f"github_{kind}", "source_id": "1:17", "repository": "app",
        "day": date(2024, 5, 2), "source_updated_at": datetime(2024, 5, 2, tzinfo=UTC),
        "observed_at": datetime(2024, 5, 3, tzinfo=UTC), "title": title,
        "url": "https://github.example/acme/app/issues/17",
        "content": thread if isinstance(thread, bytes) else json.dumps(thread).encode(),
    }  # fmt: skip
    return SourceItem(**(made | fields))


def archived_threads() -> Iterator[dict[str, Any]]:
    """Every issue and pull request of the archive; what it lacks (ids, hunks, files) is absent or made up."""
    with gzip.open(ARCHIVE) as file:
        archive = json.load(file)
    for issue in archive["issues"]:
        yield _archived(issue, archive["repo"], kind="issue")
    for pull in archive["pulls"]:
        yield _archived(pull, archive["repo"], kind="pull_request") | {
            "draft": False, "merged_at": pull["mergedAt"], "merge_commit": (pull["mergeCommit"] or {}).get("oid"),
            "base": {"ref": pull["baseRefName"], "sha": pull["baseRefOid"]},
            "head": {"ref": pull["headRefName"], "sha": pull["headRefOid"], "repository": pull["headRepository"]},
            "files": [], "closes": [],
        }  # fmt: skip


def _archived(found: dict[str, Any], repository: str, *, kind: str) -> dict[str, Any]:
    entries = [_said(comment, "comment") for comment in found["comments"]]
    for review in found.get("reviews", []):
        entries.append(_said(review, "review", verdict=_VERDICTS[review["state"]]))
        entries += [
            _said(
                {"author": review["author"], **remark}, "review_comment", path="draft.md", line=None, start_line=None,
                diff_hunk="", reply_to=None, review=None,
            )
            for remark in review["comments"]
        ]  # fmt: skip
    return thread(
        kind=kind, number=found["number"], title=found["title"], body=found["body"], state=found["state"].lower(),
        author=author(found["author"]), created_at=found["createdAt"], updated_at=found["updatedAt"],
        closed_at=found["closedAt"], url=found["url"], reference=f"{repository}#{found['number']}",
        labels=found["labels"], assignees=found["assignees"],
        entries=sorted(entries, key=lambda entry: str(entry["created_at"])),
    )  # fmt: skip


def _said(found: dict[str, Any], kind: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": kind, "id": None, "author": author(found["author"]), "created_at": found["createdAt"],
        "updated_at": found["updatedAt"], "body": found["body"], "anchor": "", **fields,
    }  # fmt: skip
