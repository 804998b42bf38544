"""From PUT to index: what was put is found after the next run, what was deleted is not, and the last word stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from rag_pipeline.refresh.forgetting import ForgetReport
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline_tests.end_to_end.forgetting import forget_in, places_of, verify_in
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.serving.apps import Service, service
from rag_pipeline_tests.serving.callers import come_as


@pytest.fixture
def installation(tmp_path: Path, database: str) -> Installation:
    return Installation(tmp_path / "home", database, [], start_date=date(2024, 1, 20))


@pytest.fixture
def running(installation: Installation) -> Iterator[Service]:
    with service(installation.database, installation.home, tenant="default") as running:
        come_as(running.app, "default", scopes=("user:ann",))
        yield running


def put(running: Service, installation: Installation, name: str, content: str | None, **more: Any) -> str:
    """Put a document, or with None delete it; by the installation's clock."""
    running.clock.now = installation.now
    path = f"/v1/documents/knowledge/{name}"
    client = running.client
    answer = client.delete(path) if content is None else client.put(path, json={"content": content, **more})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["status"])


def found(installation: Installation, question: str, *scopes: str, **filters: Any) -> list[str]:
    query = SearchQuery(text=question, tenant="default", scopes=scopes, legs="lexical", **filters)
    return [hit.source_id for hit in installation.pipeline().search(query)]


def test_what_is_put_is_found_after_the_next_run_and_what_is_deleted_is_not(installation, running):
    put(running, installation, "team/queue.md", "Drain the queue first.", title="Restarting", repository="wiki")
    put(running, installation, "ann.md", "The queue of Ann.", scope="user:ann")
    # Neither the first nor the last of these in order of their names, and the oldest by what they say.
    for text in ("Old words about the lantern.", "Newer words about the lantern.", "The last words about the lantern."):
        put(running, installation, "lantern", text, updated_at="2023-05-01T00:00:00Z" if "last" in text else None)
    assert put(running, installation, "lantern", "The last words about the lantern.") == "accepted", "another date"
    installation.refresh()
    assert [name for name in installation.inbox() if not name.startswith(("accepted/", ".notes/"))] == []
    assert installation.documents()["lantern"] == ["The last words about the lantern."]
    assert sorted(found(installation, "queue")) == ["team/queue.md"]
    assert sorted(found(installation, "queue", "user:ann")) == ["ann.md", "team/queue.md"]
    assert found(installation, "queue", repository="wiki") == ["team/queue.md"]
    assert put(running, installation, "team/queue.md", None) == "accepted"
    assert put(running, installation, "never.md", None) == "accepted"
    assert put(running, installation, "ann.md", "The queue of Ann.", scope="user:ann") == "duplicate"
    installation.pass_time(60)
    installation.refresh()
    assert set(installation.documents()) == {"ann.md", "lantern"}
    # What comes back is not a duplicate of what was deleted since.
    put(running, installation, "team/queue.md", "Drain the queue first.", title="Restarting", repository="wiki")
    installation.pass_time(60)
    installation.refresh()
    assert found(installation, "queue", repository="wiki") == ["team/queue.md"]


@pytest.mark.slow
def test_a_forgotten_document_that_was_put_leaves_no_note_and_is_refused(installation, running):
    put(running, installation, "secret", "The zanzibarx plan.")
    put(running, installation, "other", "Something else.")
    installation.refresh()
    assert len([name for name in installation.inbox() if name.startswith(".notes/")]) == 2
    report: ForgetReport = forget_in(installation, "document", "secret")
    assert report.is_gone
    assert report.found["inbox accepted"] == report.found["inbox notes"] == 1
    assert places_of(installation, "zanzibarx") == []
    assert len([name for name in installation.inbox() if name.startswith(".notes/")]) == 1
    assert verify_in(installation).is_gone
    again = running.client.put("/v1/documents/knowledge/secret", json={"content": "The zanzibarx plan."})
    assert again.status_code == 409
    assert places_of(installation, "zanzibarx") == []
