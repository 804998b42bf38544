"""Forgetting reaches the query log: whoever asked for what is forgotten has not asked, and the rest is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rag_pipeline.index.database import connected
from rag_pipeline.index.feedback import note_feedback
from rag_pipeline.index.query_log import QueryLog
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline_tests.end_to_end.forgetting import forget_in, places_of, retain_in, verify_in
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

SECRET = "# Plan\n\nThe zanzibarx plan of the deployment.\n"
GUIDE = "# Guide\n\nHow a rollback of the lantern goes.\n"


@pytest.fixture
def installation(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    repository.commit("2024-01-05T10:00", {"secret.md": SECRET, "guide.md": GUIDE})
    found = Installation(tmp_path / "home", database, [{"source": str(repository.path), "name": "project"}])
    found.refresh()
    return found


@pytest.fixture
def log(installation: Installation) -> Iterator[QueryLog]:
    log = QueryLog(lambda: connected(installation.database), redact=str)
    yield log
    log.close()


def ask(installation: Installation, log: QueryLog, question: str, **more: Any) -> UUID:
    """A question that was answered, logged, and liked."""
    hits = installation.pipeline().search(SearchQuery(text=question, tenant="default", legs="lexical"))
    what: dict[str, Any] = {
        "tenant": "default", "entrance": "search", "asked_at": installation.now, "milliseconds": 1,
        "outcome": "found" if hits else "nothing_found", "hits": hits,
    }  # fmt: skip
    query_id = log.asked(question=question, **(what | more))
    assert query_id is not None
    assert log.flush(30)
    with connected(installation.database) as connection:
        noted = note_feedback(
            connection, query_id=query_id, tenant=(what | more)["tenant"],
            helpful=True, reason="good", now=installation.now,
        )  # fmt: skip
    assert noted == "noted"
    return query_id


def questions(installation: Installation) -> list[str]:
    with connected(installation.database) as connection:
        return [row[0] for row in connection.execute("SELECT question FROM rag.query_log ORDER BY question")]


def test_questions_that_found_a_forgotten_document_go_with_their_feedback(installation, log):
    ask(installation, log, "deployment plan")
    ask(installation, log, "lantern rollback")
    ask(installation, log, "what is in secret.md")
    ask(installation, log, "deployment plan", tenant="other", hits=())
    report = forget_in(installation, "document", "secret.md")
    assert report.is_gone
    assert (report.found["questions"], report.found["feedback"]) == (2, 2)
    assert questions(installation) == ["deployment plan", "lantern rollback"]
    assert places_of(installation, "zanzibarx") == places_of(installation, "secret.md") == []
    assert verify_in(installation).is_gone


def test_a_question_that_is_logged_too_late_is_found_by_the_proof_and_by_maintenance(installation, log):
    late = installation.pipeline().search(SearchQuery(text="zanzibarx", tenant="default", legs="lexical"))
    assert forget_in(installation, "document", "secret.md").is_gone
    ask(installation, log, "about that plan", hits=late)
    ask(installation, log, "lantern")
    left = verify_in(installation)
    assert {place: count for place, count in left.left.items() if count} == {"questions": 1, "feedback": 1}
    assert retain_in(installation).is_gone
    assert verify_in(installation).is_gone
    assert questions(installation) == ["lantern"]


@pytest.mark.slow
def test_repositories_authors_and_tenants_take_the_questions_about_them_along(installation, log):
    ask(installation, log, "who is quokka", hits=())
    ask(installation, log, "by her", parameters={"author": "Quokka"}, hits=())
    ask(installation, log, "unrelated", hits=())
    assert forget_in(installation, "author", "quokka").found["questions"] == 2
    ask(installation, log, "filtered", parameters={"repository": "project"}, hits=())
    ask(installation, log, "lantern")
    assert forget_in(installation, "repository", "project").found["questions"] == 2
    assert questions(installation) == ["unrelated"]
    with connected(installation.database) as connection:
        connection.execute(
            "INSERT INTO rag.api_keys (key_id, tenant_id, name, secret_hash, role, created_at)"
            " VALUES ('k', 'walrus', 'n', '', 'read', now())"
        )
        connection.execute("INSERT INTO rag.requests_served VALUES ('walrus', '2024-01-01', 7)")
    ask(installation, log, "theirs", tenant="walrus", hits=())
    report = forget_in(installation, "tenant", "walrus", tenant="walrus")
    assert report.is_gone
    assert [report.found[place] for place in ("questions", "feedback", "api_keys", "requests_served")] == [1] * 4
    assert places_of(installation, "walrus") == []
    assert questions(installation) == ["unrelated"]
    assert verify_in(installation).is_gone
