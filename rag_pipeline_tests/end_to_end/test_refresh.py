"""From git history to index, through Dagster: cost follows change, any order gives the same, nothing is lost."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import psycopg
import pytest

from rag_pipeline.chunking import chunk_document
from rag_pipeline.chunking import stage as chunking_stage
from rag_pipeline.index.database import connected
from rag_pipeline.index.freshness import freshness
from rag_pipeline.sources.git.mirror import Mirror
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

GUIDE = "\n\n".join(
    f"## Step {n}\n\nThis is step number {n} of the guide. It explains topic{n} in a sentence of its own, and then "
    f"it says something more about subject{n} so that the section is worth a chunk." for n in range(12)
)  # fmt: skip
CODE = "\n\n".join(f'def function_{n}(value):\n    """Does thing {n}."""\n    return value + {n}\n' for n in range(8))


@pytest.fixture
def project(repository: GitRepository) -> GitRepository:
    """A history of five days."""
    repository.commit("2024-01-02T10:00", {"README.md": "# Project\n\nWhat it is for.\n", "guide.md": GUIDE})
    repository.commit("2024-01-03T10:00", {"src/app.py": CODE, "old.md": "# Old\n\nThis will go away.\n"})
    repository.commit("2024-01-05T10:00", {"README.md": "# Project\n\nWhat it is for, and how to run it.\n"})
    repository.commit("2024-01-08T10:00", {"old.md": None, "notes.txt": "Some notes about deployment.\n"})
    repository.move("notes.txt", "docs/notes.txt")
    repository.commit("2024-01-09T10:00")
    return repository


@pytest.fixture
def installation(tmp_path: Path, database: str, project: GitRepository) -> Installation:
    return Installation(tmp_path / "home", database, [{"source": str(project.path), "name": "project"}])


def snapshot(installation: Installation, tmp_path: Path, database: str) -> dict[str, list[str]]:
    """What a fresh installation makes of the repository's present state, in one partition."""
    settings = {"start_date": installation.now.date()}
    fresh = Installation(tmp_path / "fresh", database, installation.repositories, now=installation.now, **settings)
    fresh.run(fresh.now.date())
    return fresh.documents()


def test_a_single_run_over_the_history_gives_the_snapshot(installation, tmp_path, other_database):
    installation.run("2024-01-01", "2024-01-31")
    documents = installation.documents()
    assert set(documents) == {"project:README.md", "project:guide.md", "project:src/app.py", "project:docs/notes.txt"}
    assert documents["project:README.md"] == ["# Project\n\nWhat it is for, and how to run it."]
    assert documents == snapshot(installation, tmp_path, other_database)


def test_days_in_any_order_and_twice_give_the_same_index(installation, tmp_path, other_database):
    expected = snapshot(installation, tmp_path, other_database)
    days = [date(2024, 1, 1) + timedelta(days=n) for n in range(12)]
    for day in [*reversed(days), *random.Random(7).sample(days, len(days))]:
        installation.run(day)
    assert installation.documents() == expected


def test_overlapping_ranges_give_the_same_index(installation, tmp_path, other_database):
    expected = snapshot(installation, tmp_path, other_database)
    for first, last in [("2024-01-05", "2024-01-31"), ("2024-01-02", "2024-01-08"), ("2024-01-01", "2024-01-03")]:
        installation.run(first, last)
    assert installation.documents() == expected


def test_running_again_embeds_nothing_and_writes_nothing(installation):
    installation.run("2024-01-01", "2024-01-31")
    before, embedded = installation.rows(), list(installation.embedder.embedded)
    again = installation.run("2024-01-01", "2024-01-31")
    assert installation.embedder.embedded == embedded
    assert again.reports["knowledge_index"].written.rows == 0
    assert installation.rows() == before


def test_a_refresh_with_nothing_new_covers_today_only(installation):
    installation.refresh()
    before = installation.rows()
    assert [str(days) for days in installation.planned()] == ["2024-01-31"]
    (again,) = installation.refresh()
    assert again.reports["embeddings"].embedded == 0
    assert installation.rows() == before


def test_a_refresh_fetches_a_repository_once_and_is_complete_up_to_then(installation, monkeypatch):
    fetched = []
    fetch = Mirror.fetch

    def counted(self, **when):
        fetched.append(when["now"])
        return fetch(self, **when)

    monkeypatch.setattr(Mirror, "fetch", counted)
    installation.refresh()
    assert len(fetched) == 1
    with connected(installation.database) as connection:
        assert [row.complete_until for row in freshness(connection) if row.key.source == "git"] == fetched
    # A run that nobody planned fetches for itself.
    installation.run(installation.now.date())
    assert len(fetched) == 2


def test_an_edit_a_rename_and_a_deletion_change_exactly_these(installation, project):
    installation.refresh()
    before, embedded = installation.documents(), len(installation.embedder.embedded)
    project.move("src/app.py", "src/main.py")
    edited = GUIDE.replace("topic5", "subject-five")
    project.commit("2024-01-31T09:00", {"guide.md": edited, "README.md": None})
    (run,) = installation.refresh()
    after = installation.documents()
    assert set(before) - set(after) == {"project:README.md", "project:src/app.py"}
    assert set(after) - set(before) == {"project:src/main.py"}
    assert after["project:src/main.py"] == before["project:src/app.py"]
    assert after["project:docs/notes.txt"] == before["project:docs/notes.txt"]
    changed = [text for text in after["project:guide.md"] if text not in before["project:guide.md"]]
    assert 1 <= len(changed) <= 3
    assert installation.embedder.embedded[embedded:] == changed
    assert run.reports["knowledge_index"].written.documents == 4


def test_late_commits_of_an_earlier_day_are_found(installation, project):
    installation.refresh()
    project.commit("2024-01-20T09:00", {"late.md": "# Late\n\nCommitted long before it was pushed.\n"})
    assert [str(days) for days in installation.planned()] == ["2024-01-20 to 2024-01-31"]
    installation.refresh()
    assert "project:late.md" in installation.documents()


def test_a_force_push_is_followed(installation, project, tmp_path, other_database):
    installation.refresh()
    project.git("reset", "--quiet", "--hard", "HEAD~2")
    project.commit("2024-01-10T10:00", {"README.md": "# Project\n\nAnother story.\n"})
    installation.refresh()
    assert "project:old.md" in installation.documents()
    assert installation.documents() == snapshot(installation, tmp_path, other_database)


def test_equal_texts_are_embedded_once_whatever_repository_tenant_or_day(installation, project, tmp_path):
    copy = GitRepository(tmp_path / "copy")
    copy.commit("2024-01-20T10:00", {"other/path.md": GUIDE})
    installation.repositories = [
        *installation.repositories,
        {"source": str(copy.path), "name": "copy", "tenant": "other"},
    ]
    installation.run("2024-01-01", "2024-01-31")
    assert len(installation.embedder.embedded) == len(set(installation.embedder.embedded))
    assert installation.documents(tenant="other")["copy:other/path.md"] == installation.documents()["project:guide.md"]


def test_a_run_killed_while_embedding_keeps_what_it_had_and_goes_on(installation, tmp_path, other_database):
    installation.embedder.fail_after = 8
    with pytest.raises(BaseException):  # noqa: B017 - whatever kills the process
        installation.run("2024-01-01", "2024-01-31")
    kept = list(installation.embedder.embedded)
    assert len(kept) >= 8
    installation.embedder.fail_after = None
    installation.refresh()
    assert len(installation.embedder.embedded) == len(set(installation.embedder.embedded))
    assert installation.documents() == snapshot(installation, tmp_path, other_database)


def test_a_refused_text_withholds_its_document_and_is_retried(installation, project):
    installation.refresh()
    before = installation.documents()
    installation.embedder.refuse = {"poison"}
    project.commit("2024-01-30T10:00", {"README.md": "# Project\n\nThis is poison.\n", "new.md": "# New\n\nFine.\n"})
    (run,) = installation.refresh()
    assert [failure.source_id for failure in run.reports["knowledge_index"].failures] == ["project:README.md"]
    assert installation.documents()["project:README.md"] == before["project:README.md"]
    assert "project:new.md" in installation.documents()
    installation.embedder.refuse = set()
    installation.refresh()
    assert installation.documents()["project:README.md"] == ["# Project\n\nThis is poison."]
    with psycopg.connect(installation.database) as connection:
        assert connection.execute(
            "SELECT count(*) FROM rag.ingestion_failures WHERE resolved_at IS NULL"
        ).fetchone() == (0,)  # fmt: skip


def test_one_broken_file_does_not_stop_the_rest_and_is_on_record(installation, project):
    project.commit("2024-01-30T10:00", {"broken.ipynb": '{"cells": [', "fine.md": "# Fine\n\nAll is well.\n"})
    (run,) = installation.refresh()
    assert [failure.source_id for failure in run.reports["documents"].failures] == ["project:broken.ipynb"]
    assert "project:fine.md" in installation.documents()
    project.commit("2024-01-31T10:00", {"broken.ipynb": '{"cells": [], "nbformat": 4, "metadata": {}}'})
    installation.refresh()
    with psycopg.connect(installation.database) as connection:
        rows = connection.execute("SELECT attempts, resolved_at IS NOT NULL FROM rag.ingestion_failures").fetchall()
    assert [resolved for _, resolved in rows] == [True]


def test_a_repository_that_cannot_be_read_does_not_stop_the_others(installation, project, tmp_path):
    gone = {"source": str(tmp_path / "gone"), "name": "gone"}
    installation.repositories = [gone, *installation.repositories]
    (run,) = installation.refresh()
    assert [failure.source_id for failure in run.reports["raw"].failures] == ["gone"]
    assert "does not exist" in run.reports["raw"].failures[0].reason
    assert "project:README.md" in installation.documents()
    with psycopg.connect(installation.database) as connection:
        stages = connection.execute("SELECT source_id, stage FROM rag.ingestion_failures").fetchall()
    assert stages == [("gone", "raw")]
    GitRepository(tmp_path / "gone").commit("2024-01-04T10:00", {"back.md": "# Back\n\nIt is there again.\n"})
    installation.refresh()
    assert "gone:back.md" in installation.documents()
    with psycopg.connect(installation.database) as connection:
        assert connection.execute(
            "SELECT count(*) FROM rag.ingestion_failures WHERE resolved_at IS NULL"
        ).fetchone() == (0,)  # fmt: skip


def test_a_document_that_cannot_be_chunked_keeps_its_former_state(installation, project, monkeypatch):
    installation.refresh()
    before = installation.documents()

    def chunk(document, **options):
        if document.path == "README.md":
            raise RecursionError("too deep")
        return chunk_document(document, **options)

    monkeypatch.setattr(chunking_stage, "chunk_document", chunk)
    project.commit("2024-01-30T10:00", {"README.md": "# Project\n\nNew words.\n", "new.md": "# New\n\nFine.\n"})
    (run,) = installation.refresh()
    assert [failure.reason for failure in run.reports["chunks"].failures] == ["RecursionError: too deep"]
    assert installation.documents()["project:README.md"] == before["project:README.md"]
    assert "project:new.md" in installation.documents()
    monkeypatch.undo()
    installation.refresh()
    assert installation.documents()["project:README.md"] == ["# Project\n\nNew words."]


def test_other_chunk_sizes_rechunk_everything_and_embed_only_what_is_new(installation):
    installation.refresh()
    first = set(installation.embedder.embedded)
    installation.more = {"chunking": {"max_tokens": 30, "min_tokens": 8}}
    assert [str(days) for days in installation.planned()] == ["2024-01-02 to 2024-01-31"]
    installation.refresh()
    assert len(installation.embedder.embedded) == len(set(installation.embedder.embedded))
    second = set(installation.embedder.embedded) - first
    assert second
    assert {text for texts in installation.documents().values() for text in texts} <= first | second


def test_excluding_a_path_takes_it_out_of_the_index(installation):
    installation.refresh()
    assert "project:src/app.py" in installation.documents()
    installation.repositories = [{**installation.repositories[0], "exclude": ["src/**"]}]
    installation.refresh()
    assert "project:src/app.py" not in installation.documents()
    installation.repositories = [{**installation.repositories[0], "exclude": []}]
    installation.refresh()
    assert "project:src/app.py" in installation.documents()


def test_a_lost_database_is_filled_from_the_lake_without_the_model(installation, other_database):
    installation.refresh()
    expected, embedded = installation.documents(), len(installation.embedder.embedded)
    installation.database = other_database
    (run,) = installation.refresh()
    assert installation.documents() == expected
    assert len(installation.embedder.embedded) == embedded
    assert run.reports["embeddings"].restored > 0


def test_every_partition_of_a_range_is_materialized_and_details_lie_on_the_last(installation, drawn):
    installation.instance = dg.DagsterInstance.ephemeral()
    installation.run("2024-01-01", "2024-01-10")
    key = dg.AssetKey("chunks")
    assert len(installation.instance.get_materialized_partitions(key)) == 10
    event = installation.instance.get_latest_materialization_event(key)
    assert event is not None and event.asset_materialization is not None
    assert event.asset_materialization.partition == "2024-01-10"
    shown = event.asset_materialization.metadata
    assert {"rows", "preview", "lengths"} <= set(shown)
    assert "](data:image/png;base64,iVBOR" in str(shown["lengths"].value)


def test_the_query_asset_shows_hits(installation):
    from rag_pipeline.definitions import build_defs

    installation.refresh()
    defs = build_defs(installation.settings, pipeline=installation.pipeline())
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        asset_selection=[dg.AssetKey("query")],
        run_config={"ops": {"query": {"config": {"question": "notes about deployment", "k": 3}}}},
    )
    metadata = result.asset_materializations_for_node("query")[0].metadata
    assert metadata["hits"].value == 3
    assert "docs/notes.txt:1-1" in metadata["results"].value.splitlines()[2]
    assert metadata["status"].value == "answered"
    assert "docs/notes.txt:1-1" in metadata["citations"].value
    assert "[Source 1]" in metadata["answer"].value
    assert 0.35 <= metadata["confidence"].value <= 1
    assert metadata["model"].value.startswith("none")


def test_an_empty_repository_is_no_error(tmp_path, database, repository):
    installation = Installation(tmp_path / "home", database, [{"source": str(repository.path), "name": "project"}])
    installation.refresh()
    assert installation.documents() == {}


def test_search_and_progress_use_the_time_that_is_given(installation):
    installation.now = datetime(2024, 1, 15, 12, tzinfo=UTC)
    installation.refresh()
    with psycopg.connect(installation.database) as connection:
        newest = connection.execute("SELECT max(indexed_at) FROM rag.documents").fetchone()
    assert newest is not None and newest[0].date() == date(2024, 1, 15)
