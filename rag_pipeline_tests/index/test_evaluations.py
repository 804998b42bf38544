"""Evaluations on record, labelled documents that are gone, and what the index knows of closed issues."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rag_pipeline.evaluation.labels import Label
from rag_pipeline.evaluation.mining import MINED, mine
from rag_pipeline.index.evaluations import (
    ClosedIssue,
    closed_issues,
    evaluation_history,
    latest_evaluation,
    missing_documents,
    record_evaluation,
)
from rag_pipeline.model import Evaluation
from rag_pipeline_tests.knowledge import NOW, entry, space_of, write


def made(value, *, dataset="ours", labels_hash="h"):
    return Evaluation(
        dataset=dataset,
        labels_hash=labels_hash,
        per_query={"fused": {"q1": {"nDCG@10": value}, "q2": {"nDCG@10": 0.0}}},
    )


def test_what_is_recorded_comes_back(connection):
    space, other = space_of(connection), space_of(connection, model="other")
    for hours, (value, in_) in enumerate([(0.5, space), (0.75, other), (0.25, space)]):
        record_evaluation(connection, made(value), tenant="acme", space=in_, now=NOW + timedelta(hours=hours))
    record_evaluation(
        connection, made(1.0, labels_hash="new"), tenant="acme", space=space, now=NOW + timedelta(hours=9)
    )
    record_evaluation(connection, made(1.0), tenant="globex", space=space, now=NOW)
    found = latest_evaluation(connection, tenant="acme", dataset="ours", labels_hash="h")
    assert found is not None
    assert (found.evaluation, found.space_id, found.evaluated_at) == (
        made(0.25),
        space.space_id,
        NOW + timedelta(hours=2),
    )
    beside = latest_evaluation(connection, tenant="acme", dataset="ours", labels_hash="h", space=other)
    assert beside is not None and beside.evaluation == made(0.75)
    assert latest_evaluation(connection, tenant="acme", dataset="ours", labels_hash="gone") is None
    history = evaluation_history(connection, tenant="acme", dataset="ours")
    assert [point.metrics["fused"]["nDCG@10"] for point in history] == [0.25, 0.375, 0.125, 0.5]
    assert [(point.model, point.queries) for point in history[:2]] == [("test", 2), ("other", 2)]
    assert [p.labels_hash for p in evaluation_history(connection, tenant="acme", dataset="ours", limit=2)] == [
        "h",
        "new",
    ]


def test_labelled_documents_that_the_index_does_not_show_are_named(connection):
    write(connection, entry("a.md", "A"), entry("b.md", "B"), entry("c.py", "C", source_type="code"))
    write(connection, entry("b.md", at=2, deleted=True))
    asked = [
        ("docs", "handbook:a.md"),
        ("docs", "handbook:b.md"),
        ("docs", "handbook:c.py"),
        (None, "handbook:c.py"),
        (None, "x"),
    ]
    assert missing_documents(connection, asked, tenant="acme") == [asked[1], asked[2], asked[4]]
    assert missing_documents(connection, asked[:1], tenant="globex") == asked[:1]
    assert missing_documents(connection, [], tenant="acme") == []


def issue(number, title, **more):
    metadata = {"reference": f"acme/rocket#{number}"}
    return entry(f"#{number}", "text", source_type="github_issue", title=title, metadata=metadata, **more)


def pull(number, *closes, state="merged", **more):
    metadata = {"reference": f"acme/rocket#{number}", "state": state, "closes": list(closes)}
    return entry(f"#{number}", "text", source_type="github_pull_request", title="A fix", metadata=metadata, **more)


@pytest.fixture
def world(connection):
    """Two issues that were closed by merged pull requests, and everything that must not be taken for one."""
    write(
        connection,
        issue(1, "Login fails for long passwords (#7)"), issue(2, "Crash"), issue(3, "Still open after all"),
        issue(4, "Closed by nobody"), issue(5, "Two fixes were needed here"),
        pull(11, "acme/rocket#1", at=5), pull(12, "acme/rocket#2"), pull(13, "acme/rocket#3", state="closed"),
        pull(15, "acme/rocket#5", "acme/other#9", at=4), pull(16, at=3),
        entry("src/login.py", "code", source_type="code"), entry("docs/login.md", "docs"),
        issue(1, "Another tenant's", tenant="globex"),
    )  # fmt: skip
    links = [
        (11, "changes", "handbook:src/login.py"), (11, "changes", "handbook:docs/login.md"),
        (11, "changes", "handbook:gone.py"), (16, "closes", "acme/rocket#5"), (15, "closes", "acme/rocket#5"),
    ]  # fmt: skip
    for number, kind, target in links:
        connection.execute(
            "INSERT INTO rag.links SELECT document_id, %s, %s, tenant_id FROM rag.documents"
            " WHERE source_id = %s AND source_type = 'github_pull_request' ON CONFLICT DO NOTHING",
            (kind, target, f"handbook:#{number}"),
        )
    return connection


def test_closed_issues_come_with_the_merged_pull_requests_and_the_files(world):
    found = closed_issues(world, tenant="acme", limit=10)
    assert [(found.reference, found.pull_request) for found in found] == [
        ("acme/rocket#1", "handbook:#11"), ("acme/rocket#5", "handbook:#15"), ("acme/rocket#5", "handbook:#16"),
        ("acme/rocket#2", "handbook:#12"),
    ]  # fmt: skip
    assert found[0].issue == "handbook:#1"
    assert list(found[0].files) == [("code", "handbook:src/login.py"), ("docs", "handbook:docs/login.md")]
    assert len(closed_issues(world, tenant="acme", limit=2)) == 2
    assert closed_issues(world, tenant="nobody", limit=2) == []


def test_an_issues_title_asks_and_its_pull_requests_and_files_answer(world):
    mined = mine(closed_issues(world, tenant="acme", limit=10))
    first, second = mined.questions
    assert mined.name == MINED
    assert (first.id, first.text) == ("acme/rocket#1", "Login fails for long passwords")
    assert first.left_out == (Label(source_type="github_issue", source_id="handbook:#1"),)
    assert first.relevant == (
        Label(source_type="github_pull_request", source_id="handbook:#11", grade=2),
        Label(source_type="code", source_id="handbook:src/login.py"),
        Label(source_type="docs", source_id="handbook:docs/login.md"),
    )
    assert [label.source_id for label in second.relevant] == ["handbook:#15", "handbook:#16"]


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Login fails #12", "Login fails"), ("Fix for acme/rocket#3: login fails", "Fix for login fails"),
        ("[#12] Login fails (GH-4)", "Login fails"), ("C# client fails", "C# client fails"),
        ("Crash #12", None), ("#12", None), ("", None),
    ],
)  # fmt: skip
def test_numbers_of_issues_are_not_asked_for_and_a_single_word_is_no_question(title, text):
    closed = ClosedIssue(issue="i", reference="a/b#1", title=title, pull_request="p", files=())
    assert [question.text for question in mine([closed]).questions] == ([text] if text else [])


def test_a_pull_request_that_changed_everything_does_not_say_where_the_answer_is():
    files = [("code", f"r:{n}.py") for n in range(50)]
    closed = ClosedIssue(issue="i", reference="a/b#1", title="Rename it all", pull_request="p", files=files)
    assert [label.source_id for label in mine([closed]).questions[0].relevant] == ["p"]
