"""What the asset graph promises to a newcomer, and how errors of the pipeline become Dagster's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import pytest

from rag_pipeline.definitions import build_defs
from rag_pipeline.defs import failures
from rag_pipeline.defs.failures import quarantine, stage_errors, too_many_failures
from rag_pipeline.defs.metadata import cell, plot_by_name, size, table
from rag_pipeline.defs.partitions import daily_partitions
from rag_pipeline.errors import ConfigError, TransientError
from rag_pipeline.index.quarantine import accept
from rag_pipeline.model import DayRange, Failure
from rag_pipeline.settings import Settings
from rag_pipeline.settings.backfills import Backfills
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

RAW = ("raw_docs", "raw_code", "raw_github_pull_requests", "raw_github_issues", "raw_webhook_drops")
PARTITIONED = (*RAW, "documents", "chunks", "embeddings", "knowledge_index")
MAINTENANCE = ("github_reconciliation", "index_maintenance", "pipeline_report")
ASSETS = (*PARTITIONED, "query", "retrieval_evaluation", *MAINTENANCE)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, start_date=date(2024, 1, 1))


def test_every_asset_explains_itself(settings):
    specs = {spec.key.to_user_string(): spec for spec in build_defs(settings).resolve_all_asset_specs()}
    assert set(specs) == set(ASSETS)
    for spec in specs.values():
        assert spec.description and len(spec.description) > 60
        assert spec.group_name in ("sources", "knowledge", "serving", "maintenance", "overview")
        assert spec.kinds and spec.owners and spec.tags and spec.code_version


def test_the_graph_is_the_pipeline(settings):
    graph = build_defs(settings).resolve_asset_graph()
    parents = {name: {k.to_user_string() for k in graph.get(dg.AssetKey(name)).parent_keys} for name in ASSETS}
    assert parents["documents"] == set(RAW)
    assert parents["chunks"] == {"documents"}
    assert parents["embeddings"] == {"chunks"}
    assert parents["knowledge_index"] == {"documents", "chunks", "embeddings"}
    assert parents["query"] == parents["retrieval_evaluation"] == {"knowledge_index"}


def test_ranges_run_as_one_and_today_is_a_partition(settings):
    graph = build_defs(settings).resolve_asset_graph()
    for name in PARTITIONED:
        node = graph.get(dg.AssetKey(name))
        assert node.backfill_policy == dg.BackfillPolicy.single_run()
        assert node.partitions_def.has_partition_key(datetime.now(UTC).date().isoformat())
    assert daily_partitions(settings).get_first_partition_key() == "2024-01-01"


def test_a_backfill_is_cut_into_runs_of_as_many_days_as_the_settings_say(settings):
    cut = settings.model_copy(update={"backfills": Backfills(days_per_run=7)})
    definitions = build_defs(cut)
    graph = definitions.resolve_asset_graph()
    weekly = dg.BackfillPolicy.multi_run(max_partitions_per_run=7)
    assert {graph.get(dg.AssetKey(name)).backfill_policy for name in PARTITIONED} == {weekly}
    assert definitions.resolve_job_def("refresh").backfill_policy == weekly


def test_the_definitions_load_without_a_database(settings):
    dg.Definitions.validate_loadable(build_defs(settings))


class Context:
    """What `stage_errors` asks of Dagster's context."""

    def __init__(self, retry_number: int = 0) -> None:
        self.retry_number = retry_number
        self.log = dg.get_dagster_logger()


def test_a_transient_error_is_retried_after_at_least_what_was_asked():
    with pytest.raises(dg.RetryRequested) as raised, stage_errors(Context()):
        raise TransientError("busy", retry_after_s=17)
    assert raised.value.seconds_to_wait >= 17


def test_nobody_sleeps_for_as_long_as_a_service_asks_to_be_left_alone():
    with (
        pytest.raises(dg.Failure, match="busy; it asks to be left alone for 3600 s") as raised,
        stage_errors(Context()),
    ):
        raise TransientError("busy", retry_after_s=3600)
    assert raised.value.allow_retries is False


def test_a_transient_error_that_stays_fails():
    with pytest.raises(dg.Failure) as raised, stage_errors(Context(retry_number=3)):
        raise TransientError("busy")
    assert raised.value.allow_retries is False


def test_an_interrupt_that_a_library_made_an_error_of_while_it_was_loaded_is_an_interrupt():
    with pytest.raises(KeyboardInterrupt), stage_errors(Context()):
        raise ImportError("initialization failed") from KeyboardInterrupt()
    with pytest.raises(ImportError), stage_errors(Context()):
        raise ImportError("libgomp.so.1: no such file")


def test_a_permanent_error_fails_at_once_and_keeps_its_words():
    with pytest.raises(dg.Failure, match="name another") as raised, stage_errors(Context()):
        raise ConfigError("no such branch: name another")
    assert raised.value.allow_retries is False


def failed(n: int) -> list[Failure]:
    moment = datetime(2024, 1, 5, tzinfo=UTC)
    return [
        Failure(tenant="default", source_type="docs", source_id=f"project:{i}.md", stage="documents",
                repository="project", day=moment.date(), source_updated_at=moment, reason="it | is <broken>")
        for i in range(n)
    ]  # fmt: skip


def test_too_many_failures_of_one_source_stop_it_and_are_on_record(tmp_path, database, repository):
    installation = Installation(tmp_path, database, [{"source": str(repository.path), "name": "project"}])
    installation.more = {"quality": {"max_failures": 2, "max_failure_share": 0.5}}
    days = DayRange(first=date(2024, 1, 5), last=date(2024, 1, 5))
    pipeline = installation.pipeline()
    with pipeline.connection() as connection:

        def settled(number: int, *, items: int) -> dict[str, dg.MetadataValue]:
            of = {("default", "project"): items, ("default", "other"): 1000}
            return quarantine(pipeline, connection, failed(number), stage="documents", days=days, items=of)

        assert settled(2, items=2)["quarantined"].value == 2
        assert settled(3, items=100)
        assert pipeline.left_out == []
        settled(3, items=4)
        (line,) = pipeline.left_out
        assert "documents: project (tenant default) was stopped" in line and "3 of 4 items failed" in line
        too_many = too_many_failures(pipeline, connection, stage="documents")
        assert [too_many(failed(n), 4) for n in (2, 3)] == [False, True]
        accept(connection, "project:2.md", note="left out", now=pipeline.clock())
        assert not too_many(failed(3), 4)
        pipeline.left_out.clear()
        shown = settled(3, items=4)
    assert (shown["accepted_failures"].value, shown["quarantined"].value, pipeline.left_out) == (1, 2, [])


def test_the_longest_wait_is_bounded():
    assert failures._LONGEST_WAIT_S <= 300


def test_tables_cannot_be_broken_out_of():
    text = table(("a",), [("x | y\n<b>`c`</b>",)]).value
    assert text.splitlines()[-1] == "| x \\| y &lt;b>'c'&lt;/b> |"
    assert cell("x" * 500, limit=10) == "xxxxxxxxx…"


def test_sizes_are_for_people():
    assert [size(n) for n in (0, 999, 1500, 2_500_000, 3_000_000_000)] == ["0 B", "999 B", "1.5 kB", "2.5 MB", "3.0 GB"]


def test_a_run_that_selects_one_raw_asset_reports_only_that(tmp_path, database, repository: GitRepository):
    repository.commit("2024-01-02T10:00", {"a.md": "# A\n", "a.py": "a = 1\n"})
    installation = Installation(tmp_path, database, [{"source": str(repository.path), "name": "project"}])
    result, _ = installation.try_run("2024-01-01", "2024-01-05", select=["raw_docs"])
    assert result.success
    assert {e.asset_key.to_user_string() for e in result.get_asset_materialization_events()} == {"raw_docs"}


def test_pictures_of_what_there_is_are_small_and_only_where_there_is_something_to_compare():
    found = plot_by_name("by language", {f"language {n}": n for n in range(1, 30)} | {"x" * 200: 99, r"$\frac$": 99})
    picture = found["by_name"].value
    assert picture.startswith("![by language](data:image/png;base64,") and len(picture) < 40_000
    assert plot_by_name("by language", {"python": 3}) == {}


def test_documents_show_which_languages_they_are_in(tmp_path, database, repository: GitRepository):
    repository.commit("2024-01-02T10:00", {"a.md": "# A\n\nText.\n", "a.py": "a = 1\n"})
    installation = Installation(tmp_path, database, [{"source": str(repository.path), "name": "project"}])
    result, _ = installation.try_run("2024-01-01", "2024-01-05", select=["raw_docs", "raw_code", "documents"])
    shown = [e for e in result.asset_materializations_for_node("documents") if "by_name" in e.metadata]
    assert len(shown) == 1 and sum(len(str(entry.value)) for entry in shown[0].metadata.values()) < 40_000
