"""What a mirror must not hold: of forgotten threads and authors only stubs stay, so that GitHub is not asked again.

A stub keeps numbers, versions and counts, which tell the reader of listings that nothing is missing, and no words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from rag_pipeline.forgotten import Forgotten
from rag_pipeline.sources.github.resources import Body, Resource

_TYPES: Final = ("github_issue", "github_pull_request", "github_discussion", "github_release")
_STRUCTURE: Final = ("comments", "is_pull_request", "updated_at", "reply_to", "review")


def refusal(forgotten: Forgotten, *, tenant: str, source_id: Callable[[int], str]) -> Callable[[Resource], Resource]:
    """What a store keeps of a resource: a stub where its thread or author is forgotten."""

    def kept(resource: Resource) -> Resource:
        body = resource.body
        id_ = source_id(resource.number)
        author = body.get("author")
        if any(forgotten.document(tenant, kind, id_) for kind in _TYPES) or (
            isinstance(author, dict) and forgotten.author(tenant, author.get("login"))
        ):
            return replace(resource, body=_stub(body))
        if "assignees" in body and (named := forgotten.assignees(tenant, body["assignees"])) != body["assignees"]:
            return replace(resource, body={**body, "assignees": named})  # type: ignore[dict-item]
        return resource

    return kept


def _stub(body: Body) -> Body:
    stub: Body = {"forgotten": True, **{key: body[key] for key in _STRUCTURE if key in body}}
    for side, field in (("head", "sha"), ("base", "ref")):
        branch = body.get(side)
        # By these two the reader knows whether the list of files has to be read again.
        if isinstance(branch, dict):
            stub[side] = {field: branch.get(field)}
        elif branch is not None:
            stub[side] = branch
    return stub
