"""The JSON that GitHub's REST API gives for repositories, issues and comments, as its OpenAPI description has it.

Every field that the description requires is there; of the optional ones those that matter. `Site` says under which
addresses. What only pull requests have is in `pull_shapes`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from rag_pipeline_tests.github_server.nouns import Comment, Label, Milestone, Repository, Thread

Json: TypeAlias = Mapping[str, "JsonValue"]
JsonValue: TypeAlias = "str | int | bool | list[JsonValue] | Mapping[str, JsonValue] | None"

_REPOSITORY_LINKS = (
    "archive_url=/{archive_format}{/ref}", "assignees_url=/assignees{/user}", "blobs_url=/git/blobs{/sha}",
    "branches_url=/branches{/branch}", "collaborators_url=/collaborators{/collaborator}",
    "comments_url=/comments{/number}", "commits_url=/commits{/sha}", "compare_url=/compare/{base}...{head}",
    "contents_url=/contents/{+path}", "contributors_url=/contributors", "deployments_url=/deployments",
    "downloads_url=/downloads", "events_url=/events", "forks_url=/forks", "git_commits_url=/git/commits{/sha}",
    "git_refs_url=/git/refs{/sha}", "git_tags_url=/git/tags{/sha}", "hooks_url=/hooks",
    "issue_comment_url=/issues/comments{/number}", "issue_events_url=/issues/events{/number}",
    "issues_url=/issues{/number}", "keys_url=/keys{/key_id}", "labels_url=/labels{/name}",
    "languages_url=/languages", "merges_url=/merges", "milestones_url=/milestones{/number}",
    "notifications_url=/notifications{?since,all,participating}", "pulls_url=/pulls{/number}",
    "releases_url=/releases{/id}", "stargazers_url=/stargazers", "statuses_url=/statuses/{sha}",
    "subscribers_url=/subscribers", "subscription_url=/subscription", "tags_url=/tags", "teams_url=/teams",
    "trees_url=/git/trees{/sha}",
)  # fmt: skip
_USER_LINKS = (
    "followers_url=/followers", "following_url=/following{/other_user}", "gists_url=/gists{/gist_id}",
    "starred_url=/starred{/owner}{/repo}", "subscriptions_url=/subscriptions", "organizations_url=/orgs",
    "repos_url=/repos", "events_url=/events{/privacy}", "received_events_url=/received_events",
)  # fmt: skip
_REACTIONS = ("total_count", "+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where the API and the web pages are."""

    api: str = "https://api.github.com"
    web: str = "https://github.com"

    def repository(self, repository: Repository) -> str:
        """The API's address of a repository."""
        return f"{self.api}/repos/{repository.full_name}"

    def page(self, thread: Thread) -> str:
        """The web page of an issue or pull request."""
        return f"{self.web}/{thread.repository.full_name}/{'pull' if thread.is_pull else 'issues'}/{thread.number}"


def shown(moment: datetime | None) -> str | None:
    """A date as GitHub writes it: `2024-05-01T12:00:00Z`."""
    return None if moment is None else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def node_id(kind: str, number: int) -> str:
    """The GraphQL id of a thing."""
    return f"{kind}_kwDO{number:012d}"


def user(site: Site, login: str | None, *, kind: str | None = None) -> Json | None:
    """A person, bot or organisation; a ghost is null."""
    if login is None:
        return None
    number = zlib.crc32(login.encode())
    address = f"{site.api}/users/{login}"
    is_bot = login.endswith("[bot]")
    return {
        "login": login, "id": number, "node_id": node_id("U", number), "gravatar_id": "",
        "avatar_url": f"https://avatars.githubusercontent.com/u/{number}?v=4", "url": address,
        "html_url": f"{site.web}/{'apps/' + login.removesuffix('[bot]') if is_bot else login}",
        **_links(address, _USER_LINKS), "type": kind or ("Bot" if is_bot else "User"), "site_admin": False,
    }  # fmt: skip


def repository(site: Site, repository: Repository) -> Json:
    """A repository, as `GET /repos/{owner}/{repo}` shows it."""
    address, page = site.repository(repository), f"{site.web}/{repository.full_name}"
    open_threads = sum(thread.closed_at is None for thread in list(repository.threads.values()))
    host = site.web.partition("://")[2]
    return {
        "id": repository.id, "node_id": node_id("R", repository.id), "name": repository.name,
        "full_name": repository.full_name, "owner": user(site, repository.owner, kind="Organization"),
        "private": repository.private, "visibility": "private" if repository.private else "public",
        "html_url": page, "description": None, "fork": False, "url": address, **_links(address, _REPOSITORY_LINKS),
        "git_url": f"git://{host}/{repository.full_name}.git", "ssh_url": f"git@{host}:{repository.full_name}.git",
        "clone_url": f"{page}.git", "svn_url": page, "mirror_url": None, "homepage": None, "language": None,
        "forks_count": 0, "forks": 0, "stargazers_count": 0, "watchers_count": 0, "watchers": 0, "size": 108,
        "default_branch": repository.default_branch, "open_issues_count": open_threads, "open_issues": open_threads,
        "is_template": False, "topics": [], "has_issues": True, "has_projects": True, "has_wiki": True,
        "has_pages": False, "has_downloads": True, "has_discussions": True, "archived": False, "disabled": False,
        "license": None, "allow_forking": True, "web_commit_signoff_required": False,
        "created_at": shown(repository.created_at), "updated_at": shown(repository.updated_at),
        "pushed_at": shown(repository.updated_at), "custom_properties": {},
    }  # fmt: skip


def full_repository(site: Site, of: Repository) -> Json:
    """A repository asked for by itself, with the counts that only this form has."""
    return {**repository(site, of), "network_count": 0, "subscribers_count": 0}


def label(site: Site, repository: Repository, label: Label) -> Json:
    """A label."""
    return {
        "id": label.id, "node_id": node_id("LA", label.id), "name": label.name, "color": label.color,
        "url": f"{site.repository(repository)}/labels/{label.name}", "default": False,
        "description": label.description, "archived_at": None, "archived_by": None,
    }  # fmt: skip


def milestone(site: Site, repository: Repository, milestone: Milestone | None) -> Json | None:
    """A milestone."""
    if milestone is None:
        return None
    address = f"{site.repository(repository)}/milestones/{milestone.number}"
    held = [thread for thread in list(repository.threads.values()) if thread.milestone is milestone]
    still_open = sum(thread.closed_at is None for thread in held)
    return {
        "url": address, "labels_url": f"{address}/labels", "id": milestone.id, "node_id": node_id("MI", milestone.id),
        "html_url": f"{site.web}/{repository.full_name}/milestone/{milestone.number}", "number": milestone.number,
        "title": milestone.title, "description": "", "creator": user(site, repository.owner), "state": "open",
        "open_issues": still_open, "closed_issues": len(held) - still_open, "due_on": None, "closed_at": None,
        "created_at": shown(milestone.created_at), "updated_at": shown(milestone.created_at),
    }  # fmt: skip


def issue(site: Site, thread: Thread, *, alone: bool = False) -> Json:
    """An issue, or a pull request seen as one; `alone` adds what a listing leaves out."""
    address = f"{site.repository(thread.repository)}/issues/{thread.number}"
    shape: dict[str, JsonValue] = {
        "url": address, "repository_url": site.repository(thread.repository),
        "labels_url": f"{address}/labels{{/name}}", "comments_url": f"{address}/comments",
        "events_url": f"{address}/events", "timeline_url": f"{address}/timeline", "html_url": site.page(thread),
        "id": thread.id, "node_id": node_id("PR" if thread.is_pull else "I", thread.id), **common(site, thread),
        "comments": len(thread.comments), "reactions": reactions(address), "performed_via_github_app": None,
        "state_reason": thread.state_reason,
    }  # fmt: skip
    if thread.pull is not None:
        shape["draft"] = thread.pull.draft
        shape["pull_request"] = {
            "url": f"{site.repository(thread.repository)}/pulls/{thread.number}", "html_url": site.page(thread),
            "diff_url": f"{site.page(thread)}.diff", "patch_url": f"{site.page(thread)}.patch",
            "merged_at": shown(thread.pull.merged_at),
        }  # fmt: skip
    return {**shape, "closed_by": user(site, thread.closed_by)} if alone else shape


def comment(site: Site, comment: Comment) -> Json:
    """A comment in the conversation of an issue or pull request."""
    thread = comment.thread
    address = f"{site.repository(thread.repository)}/issues/comments/{comment.id}"
    return {
        "url": address, "html_url": f"{site.page(thread)}#issuecomment-{comment.id}",
        "issue_url": f"{site.repository(thread.repository)}/issues/{thread.number}", "id": comment.id,
        "node_id": node_id("IC", comment.id), "user": user(site, comment.author),
        "created_at": shown(comment.created_at), "updated_at": shown(comment.updated_at),
        "author_association": comment.association, "body": comment.body, "reactions": reactions(address),
        "performed_via_github_app": None,
    }  # fmt: skip


def reactions(address: str) -> Json:
    """Nobody reacts here."""
    return {"url": f"{address}/reactions", **dict.fromkeys(_REACTIONS, 0)}


def common(site: Site, thread: Thread) -> Json:
    """What an issue and a pull request show alike."""
    people: list[JsonValue] = [user(site, login) for login in thread.assignees]
    return {
        "number": thread.number, "state": thread.state, "locked": False, "active_lock_reason": None,
        "title": thread.title, "user": user(site, thread.author), "body": thread.body,
        "labels": [label(site, thread.repository, one) for one in thread.labels],
        "milestone": milestone(site, thread.repository, thread.milestone),
        "assignee": people[0] if people else None, "assignees": people, "author_association": thread.association,
        "created_at": shown(thread.created_at), "updated_at": shown(thread.updated_at),
        "closed_at": shown(thread.closed_at),
    }  # fmt: skip


def _links(address: str, templates: tuple[str, ...]) -> dict[str, str]:
    pairs = (template.partition("=") for template in templates)
    return {name: address + path for name, _, path in pairs}
