"""Cost before it is spent: the plan counts what the run embeds, a dry run writes nothing, a budget stops in time."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rag_pipeline.definitions import REFRESH_JOB, build_defs
from rag_pipeline.defs.jobs import BUILD_JOB
from rag_pipeline.index.database import connected
from rag_pipeline.model import DayRange
from rag_pipeline.progress import silent
from rag_pipeline.refresh import plan, serving_space
from rag_pipeline.refresh.estimate import Estimate, estimate
from rag_pipeline.refresh.spaces import Models, made_space
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.databases import empty
from rag_pipeline_tests.end_to_end.installation import _QUIET, Installation, WordEmbedder
from rag_pipeline_tests.git_repository import GitRepository

MONTH = {"prices": {"words": 1.0}}
SPENT = "SELECT coalesce(sum(tokens), 0)::int, coalesce(sum(reserved_tokens), 0)::int FROM rag.usage"


def page(name: str, sections: int = 3) -> str:
    """A document of a few chunks, no two of which are alike."""
    texts = [
        f"## Part {number} of {name}\n\n" + " ".join(f"{name}{number}word{n}" for n in range(40))
        for number in range(sections)
    ]
    return f"# {name}\n\n" + "\n\n".join(texts) + "\n"


@pytest.fixture
def installation(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    repository.commit("2024-01-10T10:00", {f"{name}.md": page(name) for name in ("one", "two", "three")})
    return Installation(tmp_path / "home", database, [{"source": str(repository.path), "name": "project"}])


def planned(installation: Installation, days: DayRange | None = None) -> Estimate:
    """What `rag-pipeline plan` counts."""
    pipeline = installation.pipeline()
    now = installation.now
    with connected(installation.database) as connection:
        space = serving_space(connection, pipeline.models)
        ranges: Sequence[DayRange] = [days] if days else plan(
            installation.settings, connection=connection, space=space, access=None, lake=pipeline.lake(), now=now
        ).ranges  # fmt: skip
        return estimate(
            installation.settings, ranges, connection=connection, models=pipeline.models, access=pipeline.access,
            lake=pipeline.lake(), now=now, progress=silent,
        )  # fmt: skip


def query(installation: Installation, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(installation.database) as connection:
        return connection.execute(statement).fetchall()  # type: ignore[arg-type]


def everything(installation: Installation) -> dict[str, object]:
    """All rows of the tables with the transactions that wrote them, and all files of the lake and the inbox."""
    found: dict[str, object] = {}
    for (table,) in query(installation, "SELECT tablename FROM pg_tables WHERE schemaname = 'rag' ORDER BY 1"):
        if table == "source_freshness":
            continue  # when a source was last looked at
        found[table] = query(installation, f"SELECT xmin::text, t::text FROM rag.{table} AS t ORDER BY 2")
    for folder in (installation.home / "lake", installation.home / "inbox"):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found[str(path)] = (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
    return found


def words(texts: Sequence[str]) -> int:
    """In the fake model's tokens."""
    return sum(len(text.split()) for text in texts)


def test_what_a_run_embeds_is_on_record_and_shows_as_this_months_cost(installation):
    installation.more = MONTH
    installation.refresh()
    tokens = words(installation.embedder.embedded)
    assert query(installation, SPENT) == [(tokens, 0)]
    ((tenant, repository, run, cost),) = query(
        installation, "SELECT tenant_id, repository, run_id, cost_usd FROM rag.usage"
    )
    assert (tenant, repository) == ("default", "project")
    assert cost == pytest.approx(tokens / 1e6)
    assert len(run) == 36
    # Nothing new: not even a row.
    installation.refresh()
    assert query(installation, "SELECT count(*) FROM rag.usage") == [(1,)]


@pytest.mark.slow
def test_the_view_of_freshness_shows_what_this_month_cost(installation):
    installation.more = MONTH
    installation.refresh()
    with psycopg.connect(installation.database) as connection:
        connection.execute("UPDATE rag.usage SET used_at = now()")
        shown = connection.execute("SELECT cost_this_month_usd FROM rag.freshness").fetchone()
        spent = connection.execute("SELECT sum(cost_usd) FROM rag.usage").fetchone()
        assert shown == spent
        connection.execute("UPDATE rag.usage SET used_at = now() - interval '32 days'")
        assert connection.execute("SELECT cost_this_month_usd FROM rag.freshness").fetchone() == (0,)


def test_a_budget_stops_a_run_keeps_the_work_and_a_higher_one_pays_for_the_rest_only(installation):
    everything_costs = planned(installation).tokens
    limit = everything_costs // 2
    installation.more = {"budget": {"month_tokens": limit}}
    result, _ = installation.try_run("2024-01-01", "2024-01-31")
    assert not result.success
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert failure.step_key == "knowledge_index"  # the last one: other tenants would have gone on
    said = failure.step_failure_data.user_failure_data.description
    assert f"budget.month_tokens of tenant 'default' is {limit:,} tokens" in said
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
    ((spent, aside),) = query(installation, SPENT)
    assert 0 < spent <= limit
    assert (aside, spent) == (0, words(installation.embedder.embedded))
    assert query(installation, "SELECT count(*)::int FROM rag.vectors_1") == [(len(installation.embedder.embedded),)]
    again = planned(installation)
    assert again.tokens == everything_costs - spent
    assert again.stopped_by == ["budget.month_tokens of tenant 'default'"]
    installation.more = {"budget": {"month_tokens": everything_costs}}
    assert planned(installation).stopped_by == []
    installation.run("2024-01-01", "2024-01-31")
    assert query(installation, SPENT) == [(everything_costs, 0)]
    assert len(installation.embedder.embedded) == len(set(installation.embedder.embedded))
    assert set(installation.documents()) == {"project:one.md", "project:two.md", "project:three.md"}


@pytest.mark.slow
def test_a_budget_that_is_spent_sends_nothing_at_all(installation):
    installation.more = {"budget": {"run_usd": 0.0}, "prices": {"words": 1.0}}
    result, _ = installation.try_run("2024-01-01", "2024-01-31")
    assert not result.success
    assert installation.embedder.calls == 0
    # For a tenant of its own, the general budget does not count; what has no price costs nothing.
    installation.more = {
        "budget": {"run_usd": 0.0, "tenants": {"default": {"run_usd": 1.0}}}, "prices": {"words": 1.0},
    }  # fmt: skip
    installation.run("2024-01-01", "2024-01-31")
    installation.more = {"budget": {"run_usd": 0.0}}
    installation.run("2024-01-01", "2024-01-31")


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_its_spending_on_record(installation):
    installation.embedder.fail_after = 8
    result, _ = installation.try_run("2024-01-01", "2024-01-31")
    assert not result.success
    assert len(installation.embedder.embedded) == 8
    assert query(installation, SPENT) == [(words(installation.embedder.embedded), 0)]
    installation.embedder.fail_after = None
    installation.run("2024-01-01", "2024-01-31")
    assert query(installation, SPENT) == [(words(installation.embedder.embedded), 0)]
    assert len(installation.embedder.embedded) == len(set(installation.embedder.embedded))


@pytest.mark.slow
def test_a_candidate_spends_on_the_same_account_and_is_planned(installation, repository):
    installation.refresh()
    installation.others = [WordEmbedder("larger", 32)]
    with connected(installation.database) as connection:
        models = Models(settings=Embedding(model="larger"), environ={}, make=installation.embedder_for)
        made_space(connection, models)
    repository.commit("2024-01-20T10:00", {"four.md": page("four")})
    found = planned(installation)
    assert [(m.model, m.role) for m in found.models] == [("words", "answers questions"), ("larger", "is being built")]
    before = len(installation.embedder.embedded)
    installation.refresh()
    new = words(installation.embedder.embedded[before:])
    assert [model.tokens for model in found.models] == [new, words(installation.others[0].embedded)]
    spent = dict(query(installation, "SELECT model, sum(tokens)::int FROM rag.usage GROUP BY 1"))
    assert spent == {"words": words(installation.embedder.embedded), "larger": words(installation.others[0].embedded)}


@pytest.mark.slow
def test_building_a_space_is_stopped_by_the_budget_too_and_goes_on_from_there(installation):
    installation.refresh()
    larger = WordEmbedder("larger", 32)
    installation.others = [larger]
    with connected(installation.database) as connection:
        made_space(connection, Models(settings=Embedding(model="larger"), environ={}, make=installation.embedder_for))
    ((spent, _),) = query(installation, SPENT)
    installation.more = {"budget": {"month_tokens": spent + spent // 2}}
    assert not _build(installation).success
    assert 0 < words(larger.embedded) <= spent // 2
    # A refresh that has nothing to embed is not held up by a budget that is spent.
    installation.refresh()
    installation.more = {}
    assert _build(installation).success
    assert words(larger.embedded) == spent
    assert query(installation, SPENT) == [(2 * spent, 0)]


def _build(installation: Installation) -> dg.ExecuteInProcessResult:
    job = build_defs(installation.settings, pipeline=installation.pipeline()).resolve_job_def(BUILD_JOB)
    return job.execute_in_process(instance=installation._dagster(), raise_on_error=False, run_config=_QUIET)


def test_a_plan_changes_nothing_and_calls_no_model(installation, repository):
    installation.refresh()
    repository.commit("2024-01-20T10:00", {"one.md": page("one", 4), "new.md": page("new"), "two.md": None})
    installation.drop("note.md", "# A note\n\nDropped by hand.\n")
    before, calls = everything(installation), installation.embedder.calls
    found = planned(installation)
    assert everything(installation) == before
    assert installation.embedder.calls == calls
    assert (found.drops, found.tombstones) == (1, 1)
    assert (found.documents, found.reused > 0) == (4, True)
    embedded = len(installation.embedder.embedded)
    installation.refresh()
    assert found.tokens == words(installation.embedder.embedded[embedded:])
    assert planned(installation).tokens == 0


NAMES = ("a.md", "b.md", "c.md")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(("x", "y", "z")), st.integers(1, 4)),
        st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES)),
        st.tuples(st.just("refresh")),
    ),
    min_size=2, max_size=6,
)  # fmt: skip


@pytest.mark.slow
def test_what_the_lake_gives_back_to_a_new_database_costs_nothing(installation, repository, other_database):
    installation.refresh()
    repository.commit("2024-01-20T10:00", {"four.md": page("four")})
    installation.database, before = other_database, len(installation.embedder.embedded)
    found = planned(installation)
    installation.refresh()
    assert found.tokens == words(installation.embedder.embedded[before:]) > 0
    assert words(installation.embedder.embedded[:before]) > found.tokens


@pytest.mark.slow
@given(steps=STEPS)
@hypothesis_settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_the_plan_counts_what_the_next_run_embeds(reused_database, steps):
    empty(reused_database)
    with tempfile.TemporaryDirectory() as folder:
        repository = GitRepository(Path(folder) / "project")
        repository.commit("2024-01-02T10:00", {"a.md": page("x"), "copy.md": page("x")})
        found = Installation(
            Path(folder) / "home", reused_database, [{"source": str(repository.path), "name": "project"}]
        )
        for number, step in enumerate([*steps, ("refresh",)]):
            _take(found, repository, step, at=f"2024-01-{3 + number:02}T10:00")


def _take(found: Installation, repository: GitRepository, step: tuple[Any, ...], *, at: str) -> None:
    match step:
        case ("write", name, text, sections):
            repository.commit(at, {name: page(text, sections)})
        case ("move", source, target) if source != target and (repository.path / source).exists():
            repository.move(source, target)
            repository.commit(at)
        case ("delete", name) if (repository.path / name).exists():
            repository.commit(at, {name: None})
        case ("refresh",):
            expected, before = planned(found).tokens, len(found.embedder.embedded)
            found.refresh()
            assert words(found.embedder.embedded[before:]) == expected


@pytest.mark.slow
def test_a_changed_chunker_is_planned_over_all_days(installation):
    installation.refresh()
    installation.more = {"chunking": {"max_tokens": 30, "min_tokens": 4}}
    found, before = planned(installation), len(installation.embedder.embedded)
    installation.refresh()
    assert found.tokens == words(installation.embedder.embedded[before:]) > 0


@pytest.mark.parametrize("tag", ["dry_run", pytest.param("rag/dry_run", marks=pytest.mark.slow)])
def test_a_dry_run_succeeds_shows_the_plan_and_writes_nothing(installation, repository, tag):
    installation.refresh()
    repository.commit("2024-01-20T10:00", {"new.md": page("new")})
    before, calls = everything(installation), installation.embedder.calls
    pipeline = installation.pipeline()
    job = build_defs(installation.settings, pipeline=pipeline).resolve_job_def(REFRESH_JOB)
    tags = {
        "dagster/asset_partition_range_start": "2024-01-15", "dagster/asset_partition_range_end": "2024-01-31",
        tag: "true",
    }  # fmt: skip
    instance = dg.DagsterInstance.ephemeral()
    result = job.execute_in_process(instance=instance, tags=tags, raise_on_error=False, run_config=_QUIET)
    assert result.success
    assert result.get_asset_materialization_events() == []
    assert everything(installation) == before
    assert installation.embedder.calls == calls
    (record,) = instance.fetch_observations(dg.AssetKey("knowledge_index"), limit=5).records
    observed = record.asset_observation
    assert observed is not None and observed.partition == "2024-01-31"
    shown = {name: value.value for name, value in observed.metadata.items()}
    days = DayRange(first=date(2024, 1, 15), last=date(2024, 1, 31))
    assert shown["tokens"] == planned(installation, days).tokens > 0
    assert (shown["dry_run"], shown["would_be_stopped"], shown["documents"]) == (True, False, 1)
    # Without the tag, the same run does it.
    installation.run("2024-01-15", "2024-01-31")
    assert "project:new.md" in installation.documents()
