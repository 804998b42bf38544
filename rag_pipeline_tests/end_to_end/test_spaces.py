"""Another embedding model beside the active one: fed by every run, filled by a job, switched to and back."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import dagster as dg
import psycopg
import pytest

from rag_pipeline.definitions import build_defs
from rag_pipeline.defs.jobs import BUILD_JOB, BUILD_OP
from rag_pipeline.embedding import bfloat16
from rag_pipeline.embedding.local import QUANTISED
from rag_pipeline.errors import ConfigError, SpaceUnavailable
from rag_pipeline.index.database import connected
from rag_pipeline.index.promotion import Standing, promote, rollback, standing
from rag_pipeline.index.spaces import numbered_space, space_records
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.refresh.spaces import BuildReport, Models, after_build, made_space
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.end_to_end.installation import Installation, WordEmbedder
from rag_pipeline_tests.git_repository import GitRepository

GUIDE = "# Guide\n\nHow the broker is restarted.\n\n## Queues\n\nHow a queue is drained before that.\n"


@pytest.fixture
def installation(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    """An index of three documents of which one was edited, filled with the model `words`."""
    repository.commit("2024-01-10T10:00", {"guide.md": "# Guide\n\nAn older text.\n", "notes.md": "# Notes\n\nOld.\n"})
    installation = Installation(tmp_path / "home", database, [{"source": str(repository.path), "name": "project"}])
    installation.refresh()
    repository.commit("2024-01-20T10:00", {"guide.md": GUIDE, "app.py": "def start():\n    return 1\n"})
    installation.refresh()
    installation.others = [WordEmbedder("larger", 32)]
    return installation


def create(installation: Installation, model: str = "larger") -> EmbeddingSpace:
    """What `rag-pipeline spaces create` does."""
    wanted = Embedding(model=model)
    with connected(installation.database) as connection:
        return made_space(connection, Models(settings=wanted, environ={}, make=installation.embedder_for))


def try_build(installation: Installation, space_id: int | None = 2) -> tuple[dg.ExecuteInProcessResult, BuildReport]:
    """What `rag-pipeline spaces build` does."""
    pipeline = installation.pipeline()
    job = build_defs(installation.settings, pipeline=pipeline).resolve_job_def(BUILD_JOB)
    config = {"ops": {BUILD_OP: {"config": {"space_id": space_id}}}}
    result = job.execute_in_process(
        instance=installation._dagster(), raise_on_error=False,
        run_config={**config, "loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )  # fmt: skip
    return result, pipeline.reports.get("build")  # type: ignore[return-value]


def build(installation: Installation, space_id: int | None = 2) -> BuildReport:
    result, report = try_build(installation, space_id)
    assert result.success
    return report


def state(installation: Installation) -> dict[str, tuple[str, int]]:
    """Status and missing texts of each model's space."""
    with connected(installation.database) as connection:
        return {
            record.space.model: (record.space.status, standing(connection, record.space).missing)
            for record in space_records(connection)
        }


def found(installation: Installation, question: str) -> list[str]:
    hits = installation.pipeline().search(SearchQuery(text=question, tenant="default", k=1))
    return [hit.source_id for hit in hits]


def switch(installation: Installation, *, back: bool = False, force: bool = False) -> EmbeddingSpace:
    with connected(installation.database) as connection:
        return rollback(connection, force=force) if back else promote(connection, 2, gate=lambda *_: [], force=force)


def live(installation: Installation) -> int:
    return sum(len(texts) for texts in installation.documents().values())


def test_a_candidate_is_filled_with_what_the_index_shows_and_nothing_else(installation):
    assert create(installation).space_id == 2
    (larger,) = installation.others
    report = build(installation)
    assert report.standing == Standing(
        texts=live(installation), missing=0, vectors=live(installation), bytes=report.standing.bytes, has_graph=True
    )
    assert sorted(larger.embedded) == sorted(set(larger.embedded))
    assert not any("older text" in text for text in larger.embedded)
    assert report.embeddings.skipped > 0
    # And nothing is left to do.
    assert build(installation, None).embeddings.embedded == 0
    assert state(installation) == {"words": ("active", 0), "larger": ("building", 0)}


def test_a_build_that_is_interrupted_goes_on_where_it_was(installation, repository):
    repository.commit("2024-01-21T10:00", {f"{n}.md": f"# Page {n}\n\nText number {n}.\n" for n in range(30)})
    installation.refresh()
    create(installation)
    (larger,) = installation.others
    larger.fail_after = 16
    assert not try_build(installation)[0].success
    kept = list(larger.embedded)
    assert len(kept) == 16
    assert state(installation)["larger"] == ("building", live(installation) - 16)
    larger.fail_after = None
    report = build(installation)
    assert (report.embeddings.embedded, report.standing.missing) == (live(installation) - 16, 0)
    assert len(larger.embedded) == len(set(larger.embedded))


def test_every_run_feeds_both_and_documents_do_not_wait_for_the_candidate(installation, repository):
    larger_space = create(installation)
    build(installation)
    (larger,) = installation.others
    repository.commit("2024-01-22T10:00", {"new.md": "# New\n\nWhat nobody knew.\n", "notes.md": None})
    installation.refresh()
    assert state(installation) == {"words": ("active", 0), "larger": ("building", 0)}
    assert "What nobody knew" in larger.embedded[-1]
    larger.refuse = {"forbidden"}
    repository.commit("2024-01-23T10:00", {"other.md": "# Other\n\nA forbidden word.\n"})
    installation.refresh()
    assert "project:other.md" in installation.documents()
    assert state(installation) == {"words": ("active", 0), "larger": ("building", 1)}
    _, report = try_build(installation)
    assert [reason for _, reason in report.embeddings.refused] == ["refused"]
    assert "the model refuses 1: `rag-pipeline spaces promote 2 --force`" in after_build(larger_space, report)


def test_texts_that_the_lake_has_lost_are_named_with_what_reads_them_again(installation):
    space = create(installation)
    shutil.rmtree(Path(installation.settings.lake_url) / "chunks")
    report = build(installation)
    assert report.standing.missing == live(installation)
    assert "which the lake does not hold: `rag-pipeline materialize --from DAY`" in after_build(space, report)


def test_a_candidate_that_cannot_be_fed_fails_no_run_and_is_named(installation, repository):
    create(installation)
    installation.others[0].recipe = "words/v2"
    repository.commit("2024-01-22T10:00", {"new.md": "# New\n\nWhat nobody knew.\n"})
    (run,) = installation.refresh()
    assert "project:new.md" in installation.documents()
    result, _ = try_build(installation)
    assert not result.success
    notes = run.reports["embedding_spaces"]
    assert "embedding space 2 (local larger) lacks" in str(notes) and "rag-pipeline spaces build 2" in str(notes)


def test_a_refresh_with_nothing_new_writes_nothing_beside_a_candidate(installation):
    create(installation)
    build(installation)
    installation.refresh()
    before, embedded = installation.rows(), list(installation.others[0].embedded)
    installation.refresh()
    assert installation.rows() == before
    assert installation.others[0].embedded == embedded


def test_after_a_promotion_runs_go_on_where_they_were(installation, repository):
    create(installation)
    build(installation)
    assert switch(installation).model == "larger"
    assert found(installation, "how is a queue drained") == ["project:guide.md"]
    assert [str(days) for days in installation.planned()] == ["2024-01-31"]
    words, larger = len(installation.embedder.embedded), len(installation.others[0].embedded)
    repository.commit("2024-01-22T10:00", {"new.md": "# New\n\nWhat nobody knew.\n"})
    installation.refresh()
    assert (len(installation.embedder.embedded), len(installation.others[0].embedded)) == (words, larger + 1)
    # The settings still name the model that was retired; nothing brings it back by itself.
    assert state(installation) == {"words": ("retired", 1), "larger": ("active", 0)}


def test_a_rollback_is_refused_until_what_came_since_is_filled_in(installation, repository):
    create(installation)
    build(installation)
    switch(installation)
    repository.commit("2024-01-22T10:00", {"new.md": "# New\n\nWhat nobody knew.\n"})
    installation.refresh()
    with pytest.raises(SpaceUnavailable, match=r"lacks 1 of \d+ texts: run `rag-pipeline spaces build 1`"):
        switch(installation, back=True)
    assert build(installation, 1).embeddings.embedded == 1
    assert state(installation)["words"] == ("building", 0)
    assert switch(installation, back=True).model == "words"
    assert [str(days) for days in installation.planned()] == ["2024-01-31"]


def test_a_forced_rollback_is_healed_by_the_next_refresh(installation, repository):
    create(installation)
    build(installation)
    switch(installation)
    repository.commit("2024-01-22T10:00", {"new.md": "# New\n\nWhat nobody knew.\n"})
    installation.refresh()
    switch(installation, back=True, force=True)
    assert state(installation)["words"] == ("active", 1)
    installation.refresh()
    assert state(installation)["words"] == ("active", 0)


def test_another_model_in_the_settings_is_fed_beside_the_active_one_and_switches_nothing(installation, repository):
    installation.others = [installation.embedder]
    installation.embedder = WordEmbedder("larger", 32)
    repository.commit("2024-01-22T10:00", {"new.md": "# New\n\nWhat nobody knew.\n"})
    (run,) = installation.refresh()
    status = state(installation)
    assert status["words"] == ("active", 0)
    assert status["larger"] == ("building", live(installation) - 1)
    assert found(installation, "what nobody knew") == ["project:new.md"]
    assert "spaces build 2" in str(run.reports["embedding_spaces"])
    build(installation)
    switch(installation)
    assert state(installation) == {"words": ("retired", 0), "larger": ("active", 0)}


def test_texts_that_are_new_after_a_change_of_context_are_found_while_the_old_space_answers(installation, monkeypatch):
    before, after = installation.embedder, WordEmbedder("words")
    after.recipe = "words/v1 context=headings"
    by_context = {"symbols": before, "headings": after}
    monkeypatch.setattr(installation, "embedder_for", lambda settings, environ: by_context[settings.context])
    installation.more = {"embedding": {"model": "words", "context": "headings"}}
    installation.refresh()
    with connected(installation.database) as connection:
        records = space_records(connection)
        assert [(r.space.recipe, r.space.status) for r in records] == [
            (before.recipe, "active"), (after.recipe, "building"),
        ]  # fmt: skip
        assert [standing(connection, record.space).missing for record in records] == [0, 0]
    assert found(installation, "how is a queue drained") == ["project:guide.md"]


def test_where_this_code_makes_other_vectors_the_settings_space_takes_over_once_it_is_complete(installation):
    installation.embedder.recipe = "words/v2"
    installation.refresh()
    with connected(installation.database) as connection:
        states = [(r.space.recipe, r.space.status) for r in space_records(connection)]
    assert states == [("words/v1", "retired"), ("words/v2", "active")]
    assert found(installation, "how is a queue drained") == ["project:guide.md"]


def test_a_document_that_is_deleted_is_found_in_no_space(installation, repository):
    create(installation)
    build(installation)
    repository.commit("2024-01-22T10:00", {"guide.md": None})
    installation.refresh()
    switch(installation)
    assert found(installation, "how is a queue drained") != ["project:guide.md"]


def test_a_space_that_is_made_again_takes_its_vectors_from_the_lake(installation):
    from rag_pipeline.index.promotion import drop

    create(installation)
    build(installation)
    embedded = len(installation.others[0].embedded)
    with connected(installation.database) as connection:
        drop(connection, 2)
    assert create(installation).space_id == 3
    report = build(installation, 3)
    assert (report.standing.missing, len(installation.others[0].embedded)) == (0, embedded)


def test_vectors_that_were_lost_come_back_though_their_parts_are_on_record_as_stored(installation):
    embedded = len(installation.embedder.embedded)
    with connected(installation.database) as connection:
        connection.execute("DELETE FROM rag.vectors_1 WHERE text_hash IN (SELECT text_hash FROM rag.chunks LIMIT 1)")
    assert state(installation) == {"words": ("active", 1)}
    report = build(installation, 1)
    assert (report.standing.missing, report.embeddings.restored) == (0, 1)
    assert len(installation.embedder.embedded) == embedded


def test_the_job_shows_what_it_did_and_refuses_what_is_not_there(installation):
    result, _ = try_build(installation, None)
    assert not result.success and "no embedding space is being built" in str(result.all_events)
    create(installation)
    result, _ = try_build(installation, 2)
    metadata = next(
        e.step_output_data.metadata for e in result.all_node_events if e.event_type == dg.DagsterEventType.STEP_OUTPUT
    )
    assert metadata["missing"].value == 0 and metadata["embedded"].value == live(installation)
    assert "rag-pipeline spaces promote 2" in metadata["next_step"].value


def test_a_run_that_promotes_in_between_withholds_what_the_new_space_lacks(installation, repository):
    create(installation)
    build(installation)
    installation.others[0].refuse = {"forbidden"}
    repository.commit("2024-01-22T10:00", {"other.md": "# Other\n\nA forbidden word.\n"})
    stages = ["raw_docs", "raw_code", "documents", "chunks", "embeddings"]
    installation.run("2024-01-20", "2024-01-31", select=stages)
    switch(installation)
    installation.run("2024-01-20", "2024-01-31", select=["knowledge_index"])
    assert "project:other.md" not in installation.documents()
    assert [(stage, item) for stage, item, _ in installation.failures()] == [("knowledge_index", "project:other.md")]
    assert state(installation)["larger"] == ("active", 0)


def test_a_space_without_settings_on_record_is_asked_by_its_model(installation):
    with psycopg.connect(installation.database) as connection:
        connection.execute("UPDATE rag.embedding_spaces SET config = NULL")
    installation.now += timedelta(days=1)
    assert found(installation, "how is a queue drained") == ["project:guide.md"]
    installation.refresh()
    with connected(installation.database) as connection:
        config = numbered_space(connection, 1).config
    assert config is not None and config["model"] == "words"


def test_a_space_that_this_machine_cannot_fill_is_not_made(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bfloat16, "multiplies_int8", lambda: False)
    installation.others = [WordEmbedder(QUANTISED, 32)]
    with pytest.raises(ConfigError, match="all-MiniLM-L6-v2-int8 needs Linux on a processor with"):
        create(installation, QUANTISED)
    assert QUANTISED not in state(installation)
    monkeypatch.setattr(bfloat16, "multiplies_int8", lambda: True)
    create(installation, QUANTISED)
    # One that is there is kept up by machines that can, whoever looks at it.
    monkeypatch.setattr(bfloat16, "multiplies_int8", lambda: False)
    assert create(installation, QUANTISED).status == "building"
