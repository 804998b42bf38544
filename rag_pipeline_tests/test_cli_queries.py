"""`rag-pipeline queries`, what maintenance leaves of the log, and labels mined from feedback, as a user meets them."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from rag_pipeline.cli.app import app
from rag_pipeline.evaluation.labels import read_labels, write_labels
from rag_pipeline.evaluation.mining import mine_feedback
from rag_pipeline.index.database import connected
from rag_pipeline.index.feedback import HelpfulHit, note_feedback
from rag_pipeline.index.maintenance import Sources, maintain
from rag_pipeline.index.query_log import QueryLog
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import SearchHit
from rag_pipeline.progress import silent
from rag_pipeline.settings.maintenance import Maintenance
from rag_pipeline_tests.knowledge import entry, write


@pytest.fixture
def asked(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database whose log holds a question with a helpful hit, one without hits, and a very old one."""
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("RAG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    guide = entry("guide.md", "how to deploy it", "how to roll back", tenant="default")
    hits = [
        SearchHit(
            rank=1, score=0.5, title="Guide", text=chunk.text, url="", location="", repository="handbook",
            source_type="docs", source_id=guide.document.source_id, language=None, heading_path=(), start_line=1,
            end_line=1, document_id=chunk.document_id, chunk_id=chunk.chunk_id, tokens=4,
            source_updated_at=guide.document.source_updated_at,
        )
        for chunk in guide.chunks
    ]  # fmt: skip
    now = datetime.now(UTC)
    log = QueryLog(lambda: connected(database), redact=str)
    helpful = log.asked(
        tenant="default", entrance="search", question="How to deploy?", asked_at=now, outcome="found", hits=hits,
        milliseconds=3,
    )  # fmt: skip
    for days, question in {1: "[bold]Where is it?[/bold]", 200: "long ago"}.items():
        log.asked(
            tenant="default", entrance="ask", question=question, asked_at=now - timedelta(days=days),
            outcome="unknown", confidence=0.1, milliseconds=3,
        )  # fmt: skip
    log.close()
    assert helpful is not None
    with connected(database) as connection:
        write(connection, guide)
        note_feedback(
            connection, query_id=helpful, tenant="default", helpful=True, reason="", now=now, chunk_id=hits[1].chunk_id
        )
    return database


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


def test_questions_are_shown_worst_first_for_people_and_for_scripts(asked: str) -> None:
    shown = run("queries")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.index("[bold]Where is it?[/bold]") < shown.stdout.index("How to deploy?")
    assert "long ago" not in shown.stdout
    rows = json.loads(run("queries", "--json", "--since", "2020-01-01").stdout)
    assert {row["question"]: (row["asked"], row["unanswered"], row["helpful"]) for row in rows} == {
        "[bold]Where is it?[/bold]": (1, 1, 0), "long ago": (1, 1, 0), "How to deploy?": (1, 0, 1),
    }  # fmt: skip
    assert "nothing was asked since" in run("queries", "--tenant", "acme").stdout
    assert "is not a day" in str(run("queries", "--since", "soon").exception)


def test_feedback_becomes_labels(asked: str, tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    done = run("eval", "--mine-feedback", str(file))
    assert done.exit_code == 0, done.output
    (question,) = read_labels(file, name="mined").questions
    assert question.text == "How to deploy?"
    assert [(label.source_type, label.source_id, label.lines) for label in question.relevant] == [
        ("docs", "handbook:guide.md", (3, 3))
    ]
    assert "nobody called a hit helpful for tenant 'acme'" in str(
        run("eval", "--mine-feedback", str(tmp_path / "more.jsonl"), "--tenant", "acme").exception
    )


def test_maintenance_removes_what_was_asked_too_long_ago(asked: str, tmp_path: Path) -> None:
    with connected(asked) as connection:
        report = maintain(
            connection, Lake(str(tmp_path / "lake")), settings=Maintenance(), sources=Sources(raw_stages=()),
            now=datetime.now(UTC), progress=silent, questions_days=90,
        )  # fmt: skip
        (left,) = connection.execute("SELECT count(*) FROM rag.query_log").fetchone() or ()
    assert report.problems == []
    assert {action.what: action.rows for action in report.actions}["forget questions"] == 1
    assert left == 2


LINES = st.none() | st.tuples(st.integers(1, 3), st.integers(3, 5))
HITS = st.builds(
    HelpfulHit, question=st.sampled_from(["How?", "how?", "How  ?", "Why so?"]), source_type=st.just("docs"),
    source_id=st.sampled_from(["r:a", "r:b"]), lines=LINES,
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(hits=st.lists(HITS, max_size=12))
def test_mined_labels_can_be_written_and_read_again_and_name_every_helpful_document(hits: list[HelpfulHit]) -> None:
    mined = mine_feedback(hits)
    documents = {(hit.source_type, hit.source_id) for hit in hits}
    assert set(mined.documents) == documents
    assert len({question.id for question in mined.questions}) == len(mined.questions)
    if hits:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mined.jsonl"
            write_labels(file, mined.questions)
            assert read_labels(file, name=mined.name).questions == list(mined.questions)
