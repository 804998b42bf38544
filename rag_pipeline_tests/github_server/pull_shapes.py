"""The JSON that GitHub's REST API gives for pull requests, their files, reviews and review comments."""

from __future__ import annotations

import zlib
from urllib.parse import quote

from rag_pipeline_tests.github_server import shapes
from rag_pipeline_tests.github_server.nouns import ChangedFile, Repository, Review, ReviewComment, Thread
from rag_pipeline_tests.github_server.shapes import Json, JsonValue, Site, node_id, shown, user
from rag_pipeline_tests.github_server.world import sha_of


def pull(site: Site, thread: Thread, *, alone: bool = False) -> Json:
    """A pull request; `alone` adds what a listing leaves out (`merged`, `merged_by`, the counts)."""
    own, repository = thread.the_pull(), site.repository(thread.repository)
    address, page = f"{repository}/pulls/{thread.number}", site.page(thread)
    as_issue = f"{repository}/issues/{thread.number}"
    links = {
        "self": address, "html": page, "issue": as_issue, "comments": f"{as_issue}/comments",
        "review_comments": f"{address}/comments", "review_comment": f"{repository}/pulls/comments{{/number}}",
        "commits": f"{address}/commits", "statuses": f"{repository}/statuses/{own.head_sha}",
    }  # fmt: skip
    shape: Json = {
        "url": address, "id": own.id, "node_id": node_id("PR", own.id), "html_url": page, "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch", "issue_url": as_issue,
        **{f"{name}_url": links[name] for name in ("commits", "review_comments", "review_comment", "comments")},
        "statuses_url": links["statuses"], **shapes.common(site, thread), "merged_at": shown(own.merged_at),
        "merge_commit_sha": own.merge_commit_sha, "requested_reviewers": [], "requested_teams": [],
        "head": _branch(site, thread.repository, own.head_repository, own.head_ref, own.head_sha),
        "base": _branch(site, thread.repository, thread.repository, own.base_ref, own.base_sha),
        "_links": _hrefs(links), "auto_merge": None, "draft": own.draft,
    }  # fmt: skip
    return {**shape, **_alone(site, thread)} if alone else shape


def review(site: Site, review: Review) -> Json:
    """A review; there is no `updated_at`."""
    address, page = _pull_address(site, review.thread), _review_page(site, review)
    return {
        "id": review.id, "node_id": node_id("PRR", review.id), "user": user(site, review.author), "body": review.body,
        "state": review.state, "html_url": page, "pull_request_url": address,
        "author_association": review.association, "_links": _hrefs({"html": page, "pull_request": address}),
        "submitted_at": shown(review.submitted_at), "commit_id": review.commit_id,
    }  # fmt: skip


def review_comment(site: Site, comment: ReviewComment) -> Json:
    """A comment on a line of the diff; `in_reply_to_id` is there only on a reply."""
    address = f"{site.repository(comment.thread.repository)}/pulls/comments/{comment.id}"
    pull_address, page = _pull_address(site, comment.thread), f"{site.page(comment.thread)}#discussion_r{comment.id}"
    shape: Json = {
        "url": address, "pull_request_review_id": comment.review.id, "id": comment.id,
        "node_id": node_id("PRRC", comment.id), "diff_hunk": comment.diff_hunk, "path": comment.path,
        "commit_id": comment.commit_id, "original_commit_id": comment.commit_id, "user": user(site, comment.author),
        "body": comment.body, "created_at": shown(comment.created_at), "updated_at": shown(comment.updated_at),
        "html_url": page, "pull_request_url": pull_address, "author_association": comment.association,
        "_links": _hrefs({"self": address, "html": page, "pull_request": pull_address}),
        "reactions": shapes.reactions(address), "start_line": comment.start_line if comment.line else None,
        "original_start_line": comment.start_line, "start_side": "RIGHT" if comment.start_line else None,
        "line": comment.line, "original_line": comment.original_line, "side": comment.side,
        "original_position": 1, "position": None if comment.line is None else 1,
        "subject_type": "file" if comment.original_line is None else "line",
    }  # fmt: skip
    return shape if comment.in_reply_to is None else {**shape, "in_reply_to_id": comment.in_reply_to}


def file(site: Site, thread: Thread, changed: ChangedFile) -> Json:
    """A changed file; `patch` is absent where GitHub has none to show."""
    head = thread.the_pull().head_sha
    page, path = f"{site.web}/{thread.repository.full_name}", quote(changed.filename, safe="")
    shape: dict[str, JsonValue] = {
        "sha": sha_of(head, changed.filename), "filename": changed.filename, "status": changed.status,
        "additions": changed.additions, "deletions": changed.deletions,
        "changes": changed.additions + changed.deletions, "blob_url": f"{page}/blob/{head}/{path}",
        "raw_url": f"{page}/raw/{head}/{path}",
        "contents_url": f"{site.repository(thread.repository)}/contents/{path}?ref={head}",
    }  # fmt: skip
    if changed.patch is not None:
        shape["patch"] = changed.patch
    if changed.previous_filename is not None:
        shape["previous_filename"] = changed.previous_filename
    return shape


def _alone(site: Site, thread: Thread) -> Json:
    own = thread.the_pull()
    is_merged = own.merged_at is not None
    return {
        "merged": is_merged, "mergeable": None, "rebaseable": None, "mergeable_state": "unknown",
        "merged_by": user(site, own.merged_by if is_merged else None), "comments": len(thread.comments),
        "review_comments": len(own.shown_review_comments()), "maintainer_can_modify": False, "commits": own.commits,
        "additions": sum(changed.additions for changed in own.files),
        "deletions": sum(changed.deletions for changed in own.files), "changed_files": len(own.files),
    }  # fmt: skip


def _branch(site: Site, into: Repository, of: Repository | str | None, ref: str, sha: str) -> Json:
    owner = of.owner if isinstance(of, Repository) else of.partition("/")[0] if of else None
    return {
        "label": f"{owner}:{ref}" if owner else f"unknown repository:{ref}", "ref": ref, "sha": sha,
        "user": user(site, owner), "repo": None if of is None else shapes.repository(site, _whole(of, into)),
    }  # fmt: skip


def _whole(of: Repository | str, into: Repository) -> Repository:
    # A fork is known by its name alone; it looks like the repository that it came from.
    if isinstance(of, Repository):
        return of
    return Repository(
        id=zlib.crc32(of.encode()), full_name=of, private=into.private, default_branch=into.default_branch,
        created_at=into.created_at, updated_at=into.updated_at,
    )  # fmt: skip


def _pull_address(site: Site, thread: Thread) -> str:
    return f"{site.repository(thread.repository)}/pulls/{thread.number}"


def _review_page(site: Site, review: Review) -> str:
    return f"{site.page(review.thread)}#pullrequestreview-{review.id}"


def _hrefs(links: dict[str, str]) -> Json:
    return {name: {"href": address} for name, address in links.items()}
