"""The retrieval evaluation in Dagster: what it shows, what it puts on record, and what it says when it cannot work."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from rag_pipeline_tests.end_to_end.conftest import indexing
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server.nouns import ChangedFile

GUIDE = (
    "# Guide\n\n## Lanterns\n\nTrim the wick of every lantern at dusk.\n\n## Foghorns\n\nSound the foghorn in mist.\n"
)


def shown(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    assert result.success
    (event,) = result.get_asset_materialization_events()
    return {name: value.value for name, value in event.materialization.metadata.items()}


def refusal(result: dg.ExecuteInProcessResult) -> str:
    assert not result.success
    return str(next(event for event in result.all_events if event.is_step_failure).event_specific_data)


@pytest.fixture
def labelled(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    """An index of two files, and labels for it: of a span, and of a document that is not there."""
    repository.commit("2024-01-02T10:00", {"guide.md": GUIDE, "ship.md": "# Ships\n\nShips pass at night.\n"})
    labels = [
        {"id": "wick", "question": "When is the wick trimmed?",
         "relevant": [{"source_type": "docs", "source_id": "project:guide.md", "lines": [3, 5]}]},
        {"id": "ships", "question": "When do ships pass?",
         "relevant": [{"source_type": "docs", "source_id": "project:ship.md"}, {"source_id": "project:gone.md"}]},
    ]  # fmt: skip
    path = tmp_path / "ours.jsonl"
    path.write_text("".join(json.dumps(label) + "\n" for label in labels))
    installation = Installation(
        tmp_path / "home", database, [{"source": str(repository.path), "name": "project", "branch": "main"}]
    )
    installation.more = {"evaluation": {"labels": [str(path)]}}
    installation.run("2024-01-01", "2024-01-05")
    return installation


def test_the_figures_of_each_leg_are_shown_and_put_on_record(labelled, drawn):
    metadata = shown(labelled.evaluate())
    assert metadata["questions"] == 2
    legs = [line.split(" | ")[1] for line in str(metadata["measures"]).splitlines()[2:]]
    assert legs == ["lexical", "vector", "fused"]
    assert [line.split(" | ")[1] for line in str(metadata["ablation"]).splitlines()[2:]] == ["lexical", "vector"]
    assert isinstance(metadata["fused_ndcg_at_10"], float) and metadata["vector_ndcg_at_10"] > 0.5
    assert "data:image/png;base64," in str(metadata["over_time_1"])
    assert str(metadata["worse"]).startswith("nothing to compare with")
    assert metadata["labelled_documents_missing"] == 1
    assert "project:gone.md" in str(metadata["missing"])


def test_the_second_time_shows_what_got_worse(labelled, repository):
    first = shown(labelled.evaluate())
    again = shown(labelled.evaluate())
    assert again["answers_worse"] == 0
    assert again["worse"] == "nothing is answered worse than before"
    repository.commit("2024-01-06T10:00", {"ship.md": None, "boats.md": "# Boats\n\nNothing to see here.\n"})
    labelled.run("2024-01-06")
    third = shown(labelled.evaluate())
    assert third["fused_ndcg_at_10"] < first["fused_ndcg_at_10"]
    assert "When do ships pass?" in str(third["worse"])
    assert "fused nDCG@10 fell from" in str(third["falls"])


def test_a_change_of_chunking_needs_no_new_labels(labelled):
    first = shown(labelled.evaluate())
    labelled.more = {**labelled.more, "chunking": {"max_tokens": 16, "min_tokens": 2}}
    labelled.run("2024-01-01", "2024-01-05")
    second = shown(labelled.evaluate())
    assert "When is the wick trimmed?" not in str(second["worse"])
    assert second["labelled_documents_missing"] == first["labelled_documents_missing"]


def test_a_folder_of_queries_and_qrels_names_source_ids(labelled, tmp_path):
    folder = tmp_path / "judged"
    folder.mkdir()
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "When is the wick trimmed?"}\n')
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\tproject:guide.md\t1\n")
    labelled.more = {"evaluation": {**labelled.more["evaluation"], "datasets": [str(folder)]}}
    metadata = shown(labelled.evaluate())
    assert metadata["questions"] == 3
    assert len(str(metadata["measures"]).splitlines()) == 2 + 2 * 3
    assert "over_time_2" in metadata


def test_labels_of_another_index_are_refused(labelled, tmp_path):
    path = tmp_path / "foreign.jsonl"
    path.write_text('{"id": "1", "question": "how?", "relevant": [{"source_id": "elsewhere:a.md"}]}\n')
    labelled.more = {"evaluation": {"labels": [str(path)]}}
    assert "none of its 1 labelled documents is in the index of tenant 'default', such as 'elsewhere:a.md'" in refusal(
        labelled.evaluate()
    )


def test_without_labels_or_issues_it_says_what_to_configure(labelled):
    labelled.more = {}
    said = refusal(labelled.evaluate())
    assert "there are no labels to evaluate tenant 'default' with" in said
    assert "name them as `labels` under [evaluation]" in said


def test_without_an_index_it_says_what_to_materialize(tmp_path, database):
    said = refusal(Installation(tmp_path / "home", database, []).evaluate())
    assert "nothing is indexed yet: materialize knowledge_index first" in said


def test_without_labels_closed_issues_ask_and_their_pull_requests_answer(tmp_path, database, forge, rocket, github):
    now, forge.now = forge.now, forge.now - timedelta(days=2)
    forge.open_issue(rocket, title="Lantern goes out in strong wind", body="It happened twice.")
    forge.tick(3600)
    files = [ChangedFile(filename="lantern.py", additions=12, deletions=3)]
    pull = forge.open_pull_request(rocket, title="Shield the lantern", body="Fixes #1: wind put it out.", files=files)
    forge.tick(3600)
    forge.merge(pull)
    forge.open_issue(rocket, title="Nobody has looked at this", body="Really.")
    forge.now = now
    installation = indexing(github, tmp_path / "home", database)
    installation.refresh()
    metadata = shown(installation.evaluate())
    assert metadata["questions"] == 1
    assert "mined from closed issues" in str(metadata["measures"])
    # The issue itself would have been the first hit; without it the pull request is.
    assert metadata["vector_ndcg_at_10"] == 1.0
