"""Documents that are put over HTTP: who may, what is refused, and what lies in the inbox when it was answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag_pipeline.forgotten import document_mark, write_marks
from rag_pipeline.model import document_id
from rag_pipeline_tests.serving.apps import NOW, Service, service
from rag_pipeline_tests.serving.callers import come_as

RUNBOOK = "/v1/documents/knowledge/team/runbook.md"


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Service]:
    """A service whose database is nowhere: an inbox is all that a document needs."""
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    with service(nowhere, tmp_path, repositories=[{"source": str(tmp_path / "r"), "name": "handbook"}]) as running:
        come_as(running.app, scopes=("user:ann", "team:*"))
        yield running


def drops(running: Service) -> list[dict[str, Any]]:
    inbox = Path(running.services.settings.inbox_url)
    return [json.loads(path.read_text()) for path in sorted(inbox.glob("*.json"))] if inbox.exists() else []


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["message"]


def test_a_document_is_a_drop_when_it_was_answered(writing: Service) -> None:
    body = {
        "content": "Drain it first.", "title": "Restart", "url": "https://wiki.example.org/7", "markup": "rst",
        "metadata": {"team": "platform"}, "scope": "user:ann", "repository": "wiki",
        "updated_at": "2024-01-01T10:00:00Z",
    }  # fmt: skip
    answer = writing.client.put(RUNBOOK, json=body)
    assert answer.status_code == 202, answer.text
    inbox = Path(writing.services.settings.inbox_url)
    assert answer.json() == {"status": "accepted", "name": next(inbox.glob("*.json")).name}
    (drop,) = drops(writing)
    assert drop["received_at"] == NOW.isoformat()
    assert drop["repository"] == "wiki"
    assert drop["document"] == {
        "content": "Drain it first.", "title": "Restart", "content_type": "text/x-rst",
        "url": "https://wiki.example.org/7", "metadata": {"team": "platform"}, "scope": "user:ann",
        "updated_at": "2024-01-01T10:00:00+00:00", "source_type": "knowledge", "id": "team/runbook.md",
        "tenant": "acme",
    }  # fmt: skip


def test_the_same_again_is_a_duplicate_and_what_comes_back_is_not(writing: Service) -> None:
    told = [writing.client.put(RUNBOOK, json={"content": text}).json()["status"] for text in "aaba"]
    assert told == ["accepted", "duplicate", "accepted", "accepted"]
    told = [writing.client.delete(RUNBOOK).json()["status"] for _ in range(2)]
    assert told == ["accepted", "duplicate"]
    assert [drop["document"].get("deleted") for drop in drops(writing)].count(True) == 1


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        (RUNBOOK, {"content": "a", "tenant": "globex"}, "body.tenant"),
        (RUNBOOK, {"content": "a", "id": "b"}, "body.id"),
        (RUNBOOK, {"content": "a", "deleted": True}, "body.deleted"),
        (RUNBOOK, {}, "body.content"),
        (RUNBOOK, {"content": 7}, "body.content"),
        (RUNBOOK, {"content": "a\x00"}, "body.content"),
        (RUNBOOK, {"content": "a", "title": "x" * 1_001}, "title is longer"),
        (RUNBOOK, {"content": "a", "url": "javascript:alert(1)"}, "url must be"),
        (RUNBOOK, {"content": "a", "url": "https://me:secret@wiki.example.org"}, "user name or password"),
        (RUNBOOK, {"content": "a", "metadata": {"deep": [{"er": "\x00"}]}}, "body.metadata"),
        (RUNBOOK, {"content": "a", "metadata": ["x"]}, "body.metadata"),
        (RUNBOOK, {"content": "a", "updated_at": "yesterday"}, "body.updated_at"),
        (RUNBOOK, {"content": "a", "content_type": "text/html", "markup": "html"}, "send one of them"),
        (RUNBOOK, {"content": "a", "markup": "notebook"}, "cannot be taken"),
        (RUNBOOK, {"content": "a", "repository": "handbook"}, "its own source"),
        (RUNBOOK, {"content": "a", "metadata": {"scope": "user:ann"}}, "give scope as a key"),
        (RUNBOOK, {"content": "scope: user:ann\n\nText"}, "give scope as a key"),
        ("/v1/documents/docs/a.md", {"content": "a"}, "its own source"),
        ("/v1/documents/github_issue/1", {"content": "a"}, "its own source"),
        ("/v1/documents/Know-ledge/1", {"content": "a"}, "lower-case"),
        ("/v1/documents/knowledge/", {"content": "a"}, "id is empty"),
        ("/v1/documents/knowledge/a%00b", {"content": "a"}, "control characters"),
        (f"/v1/documents/knowledge/{'x' * 501}", {"content": "a"}, "path.id"),
    ],
)
def test_what_the_pipeline_would_reject_is_refused_and_leaves_nothing(
    writing: Service, path: str, body: dict[str, Any], reason: str
) -> None:
    status, message = refused(writing.client.put(path, json=body))
    assert status == 422
    assert reason in message
    assert drops(writing) == []


def test_json_that_is_none_is_refused(writing: Service) -> None:
    headers = {"Content-Type": "application/json"}
    for content in (b'{"content": "a", "metadata": {"x": NaN}}', b'{"content": "\\ud800"}', b'{"content":', b"\xff"):
        assert writing.client.put(RUNBOOK, content=content, headers=headers).status_code in (400, 422)
    assert drops(writing) == []


def test_a_scope_must_be_one_of_the_callers(writing: Service) -> None:
    for scope, status in {"user:ann": 202, "team:platform": 202, "user:bob": 403, "user:*": 403, "": 403}.items():
        answer = writing.client.put(f"{RUNBOOK}{scope}", json={"content": "a", "scope": scope})
        assert answer.status_code == status, scope


def test_readers_may_not_write(writing: Service) -> None:
    come_as(writing.app, role="read")
    assert writing.client.put(RUNBOOK, json={"content": "a"}).status_code == 403
    assert writing.client.delete(RUNBOOK).status_code == 403
    assert drops(writing) == []


def test_each_tenant_has_documents_of_its_own(writing: Service) -> None:
    writing.client.put(RUNBOOK, json={"content": "a"})
    come_as(writing.app, "globex")
    assert writing.client.put(RUNBOOK, json={"content": "a"}).json()["status"] == "accepted"
    assert [drop["document"]["tenant"] for drop in drops(writing)] in (["acme", "globex"], ["globex", "acme"])
    # The repository is another tenant's.
    assert writing.client.put(RUNBOOK, json={"content": "a", "repository": "handbook"}).status_code == 202


def test_an_inbox_that_cannot_be_written_is_said_so_and_nothing_is_lost(writing: Service) -> None:
    inbox = Path(writing.services.settings.inbox_url)
    inbox.parent.mkdir(parents=True, exist_ok=True)
    inbox.write_text("no folder")
    answer = writing.client.put(RUNBOOK, json={"content": "a"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert str(inbox) not in answer.text
    assert writing.client.delete(RUNBOOK).status_code == 503
    inbox.unlink()
    assert writing.client.put(RUNBOOK, json={"content": "a"}).json()["status"] == "accepted"


def test_what_was_forgotten_is_not_taken_as_if_it_were_kept(writing: Service) -> None:
    identity = document_id(tenant="acme", source_type="knowledge", source_id="team/runbook.md")
    write_marks(writing.services.settings.home, [document_mark("acme", identity)])
    status, message = refused(writing.client.put(RUNBOOK, json={"content": "a"}))
    assert status == 409
    assert "--undo" in message
    assert writing.client.put("/v1/documents/knowledge/other", json={"content": "a"}).status_code == 202
