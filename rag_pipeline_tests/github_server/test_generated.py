"""The generator repeats itself, random changes keep the forge sound, and all shapes are those that GitHub describes.

What GitHub describes comes from its OpenAPI and webhook descriptions, where `RAG_TEST_DATA` names a folder with them.
"""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from rag_pipeline_tests.github_server import archive, pull_shapes, shapes, webhooks
from rag_pipeline_tests.github_server.client import Client
from rag_pipeline_tests.github_server.generated import KINDS, generate, random_change
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.github_server.shapes import Site

_DATA = os.environ.get("RAG_TEST_DATA")
needs_data = pytest.mark.skipif(_DATA is None, reason="RAG_TEST_DATA names no folder with GitHub's descriptions")
needs_archive = pytest.mark.skipif(not archive.snapshots(), reason="RAG_TEST_DATA names no folder with the archive")


def everything(repository: Repository) -> list[object]:
    """All that a reader of a repository can see."""
    site, seen = Site(), list[object]()
    for thread in repository.everything():
        seen.append(shapes.issue(site, thread, alone=True))
        seen += [shapes.comment(site, comment) for comment in thread.comments]
        if thread.pull is not None:
            seen.append(pull_shapes.pull(site, thread, alone=True))
            seen += [pull_shapes.review(site, review) for review in thread.pull.shown_reviews()]
            seen += [pull_shapes.review_comment(site, comment) for comment in thread.pull.shown_review_comments()]
            seen += [pull_shapes.file(site, thread, changed) for changed in thread.pull.files]
    return seen


def two_repositories(seed: int = 0, *, changes: int = 0) -> Forge:
    """A forge, with something to transfer issues to."""
    forge, rng = Forge(), Random(seed)
    generate(forge, seed=seed)
    generate(forge, seed=seed + 1, full_name="acme/engine", issues=5, pulls=3)
    for _ in range(changes):
        random_change(forge, rng)
    return forge


def test_the_same_seed_makes_the_same_forge() -> None:
    first, second, other = two_repositories(1, changes=50), two_repositories(1, changes=50), two_repositories(2)
    for one, same in zip(first.repositories.values(), second.repositories.values(), strict=True):
        assert everything(one) == everything(same)
    assert everything(first.repositories[1_000_001]) != everything(other.repositories[1_000_001])


def test_a_generated_repository_holds_what_readers_have_to_cope_with() -> None:
    threads = generate(Forge(), issues=150, pulls=100).everything()
    comments = [comment for thread in threads for comment in thread.comments]
    bodies = [thread.body for thread in threads] + [comment.body for comment in comments]
    authors = {thread.author for thread in threads} | {comment.author for comment in comments}
    assert {None, "dependabot[bot]"} <= authors
    assert None in bodies
    for part in ("<!--", "> ", "\r\n", "```", "検索", "Fixes #"):
        assert any(part in body for body in bodies if body), part
    assert {thread.state for thread in threads} == {"open", "closed"}


def test_every_kind_of_change_comes_and_says_what_it_sends() -> None:
    forge, rng = two_repositories(), Random(5)
    changes = [random_change(forge, rng) for _ in range(400)]
    assert {change.kind for change in changes} == KINDS
    sent = {delivery.name for change in changes for delivery in change.deliveries}
    assert {"issues.transferred", "issue_comment.deleted", "pull_request.synchronize", "repository.renamed"} <= sent
    assert {change.kind for change in changes if change.event is None} == {
        "convert_to_discussion", "draft_review", "silent_rename_label",
    }  # fmt: skip
    assert all(change.repository.full_name for change in changes)


def test_a_kind_that_nothing_can_be_made_of_is_an_error() -> None:
    forge = Forge()
    forge.add_repository("acme/empty")
    with pytest.raises(ValueError, match=r"acme/empty.*edit_comment"):
        random_change(forge, Random(0), kinds=["edit_comment"])


def test_a_webhook_shows_the_thing_as_rest_does(forge: Forge, rocket: Repository) -> None:
    comment = forge.comment(forge.open_issue(rocket), "Old.")
    forge.edit_comment(comment, "New.")
    delivery = webhooks.issue_comment(Site(), "edited", comment, changes=webhooks.was(body="Old."))
    assert delivery.name == "issue_comment.edited"
    assert delivery.payload["changes"] == {"body": {"from": "Old."}}
    assert delivery.payload["comment"] == shapes.comment(Site(), comment)


# What GitHub gives as null although its descriptions do not allow it: the repository of a deleted fork, its owner, a
# ghost, a review without text, a label without description.
_NULL_ALL_THE_SAME = ("repo", "user", "body", "description")


def complaints(validator: Any, value: object) -> list[str]:
    """Where a value is not what a schema says, but for the nulls that GitHub sends all the same."""
    return [
        f"{error.json_path}: {error.message[:80]}"
        for error in validator.iter_errors(value)
        if not (error.instance is None and error.absolute_path[-1] in _NULL_ALL_THE_SAME)
        and "('archived_at', 'archived_by' were unexpected)" not in error.message  # newer than the description
    ]


@cache
def _descriptions() -> dict[str, Any]:
    with gzip.open(Path(_DATA or "", "openapi", "api.github.com.json.gz")) as file:
        # OpenAPI 3.0 says `nullable`, JSON Schema does not know the word.
        return cast("dict[str, Any]", json.load(file, object_hook=_with_null))


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.pop("nullable", False) is True:
        return {"anyOf": [{"type": "null"}, schema]}
    return schema


@needs_data
@pytest.mark.parametrize(
    ("path", "alone"),
    [
        ("", True),
        ("/issues", False),
        ("/issues/comments", False),
        ("/pulls", False),
        ("/pulls/comments", False),
        ("/issues/{}", True),
        ("/pulls/{}", True),
        ("/pulls/{}/reviews", False),
        ("/pulls/{}/files", False),
    ],
)
def test_answers_have_the_shape_that_github_describes(path: str, alone: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    named = "issue_number" if path.startswith("/issues") else "pull_number"
    described = _descriptions()["paths"]["/repos/{owner}/{repo}" + path.replace("{}", f"{{{named}}}")]["get"]
    schema = described["responses"]["200"]["content"]["application/json"]["schema"]
    validator = jsonschema.Draft202012Validator({**schema, "components": _descriptions()["components"]})
    forge = two_repositories(3, changes=30)
    repository = next(iter(forge.repositories.values()))
    pulls = [thread.number for thread in repository.pulls()]
    with GitHubServer(forge) as server:
        client = Client(server)
        for number in pulls[:4] if "{}" in path else [0]:
            query = "" if alone else "?state=all&per_page=10"
            got = client.get(f"/repositories/{repository.id}{path.format(number)}{query}")
            assert complaints(validator, got.json) == []
        client.close()


@needs_data
def test_webhooks_have_the_shape_that_github_describes() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(Path(_DATA or "", "webhooks", "octokit-webhooks-schemas", "schema.json").read_text())
    forge, rng, seen = two_repositories(4), Random(4), set[str]()
    for _ in range(300):
        for delivery in random_change(forge, rng).deliveries:
            if delivery.name in seen:
                continue
            seen.add(delivery.name)
            definition = delivery.name.replace(".", "$")
            validator = jsonschema.Draft7Validator(
                {"$ref": f"#/definitions/{definition}", "definitions": schema["definitions"]}
            )
            assert (delivery.name, complaints(validator, delivery.payload)) == (delivery.name, [])
    assert len(seen) >= 20


@needs_archive
def test_the_archive_becomes_a_forge_and_moves_from_one_state_to_the_next() -> None:
    first, second = (archive.read(path) for path in archive.snapshots()[1:3])
    forge = Forge()
    repository = archive.become(forge, first)
    before = {thread.number: thread.updated_at for thread in repository.everything()}
    ids = {comment.id for comment in repository.comments()}
    assert archive.become(forge, second) is repository
    moved = archive.differences(first, second)
    assert set(repository.threads) - set(before) == moved["added"]
    assert {n for n, at in before.items() if repository.threads[n].updated_at != at} <= moved["changed"]
    assert ids < {comment.id for comment in repository.comments()}
    for each in [*second["issues"], *second["pulls"]]:
        thread = repository.threads[each["number"]]
        assert (thread.title, thread.body) == (each["title"], each["body"])
        assert [comment.body for comment in thread.comments] == [said["body"] for said in each["comments"]]
        assert shapes.shown(thread.updated_at) == each["updatedAt"]
    assert shapes.shown(forge.now) == second["timestamp"][:19] + "Z"
