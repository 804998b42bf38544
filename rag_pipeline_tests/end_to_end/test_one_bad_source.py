"""A source with too many failures, or with a damaged part of the lake, stops itself and no other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_pipeline.cli.runs import reason_of
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.faults.site import index_of
from rag_pipeline_tests.git_repository import GitRepository

DAYS = ("2024-01-02", "2024-01-06")
STAGES = ("raw_docs", "documents", "chunks", "embeddings")
BROKEN = {f"{n}.ipynb": "{not a notebook" for n in range(4)}


def living(installation: Installation) -> set[tuple[str, str, str]]:
    """(tenant, repository, path) of what can be found."""
    with psycopg.connect(installation.database) as connection:
        rows = connection.execute("SELECT tenant_id, repository, path FROM rag.documents WHERE NOT deleted")
        return {(row[0], row[1], row[2]) for row in rows}


def moved(installation: Installation) -> set[str]:
    """The repositories of which a position is known."""
    with psycopg.connect(installation.database) as connection:
        return {row[0] for row in connection.execute("SELECT repository FROM rag.source_progress")}


@pytest.fixture
def two(tmp_path: Path, database: str) -> tuple[Installation, GitRepository, GitRepository]:
    """Two repositories, of two tenants; more than two failures and half of its items stop one."""
    repositories = [GitRepository(tmp_path / name) for name in ("good", "bad")]
    made = Installation(
        tmp_path / "home",
        database,
        [
            {"source": str(repositories[0].path), "name": "good", "tenant": "a"},
            {"source": str(repositories[1].path), "name": "bad", "tenant": "b"},
        ],
        more={"quality": {"max_failures": 2, "max_failure_share": 0.5}},
    )
    for repository in repositories:
        repository.commit("2024-01-02T10:00", {"a.md": f"# Page\n\nWords of {repository.path.name}.\n"})
    return made, *repositories


@pytest.mark.parametrize("checks", [False, True])
def test_too_many_failures_stop_their_source_alone(two, checks):
    installation, good, bad = two
    installation.checks = checks
    good.commit("2024-01-05T10:00", {"b.md": "# New\n\nNew words.\n"})
    bad.commit("2024-01-05T10:00", {"b.md": "# New\n\nNew words.\n", **BROKEN})
    result, _ = installation.try_run(*DAYS)
    assert not result.success
    reason = str(reason_of(result))
    assert "bad (tenant b) was stopped" in reason and "4 of 6 items failed" in reason
    assert "good" not in reason and "max_failures" in reason
    # The day on which they failed keeps what it had; the other source, and the other day, went on.
    assert living(installation) == {("a", "good", "a.md"), ("a", "good", "b.md"), ("b", "bad", "a.md")}
    assert moved(installation) == {"good"}
    bad.commit("2024-01-06T10:00", dict.fromkeys(BROKEN))
    installation.run(*DAYS)
    assert living(installation) >= {("b", "bad", "b.md")}


def test_a_source_is_counted_with_all_its_items_not_only_the_new_ones(two):
    installation, _, bad = two
    pages = {f"p{n}.md": f"# Page {n}\n\nIts words.\n" for n in range(6)}
    bad.commit("2024-01-05T10:00", pages)
    installation.run(*DAYS)
    bad.commit("2024-01-05T12:00", dict(list(BROKEN.items())[:3]))
    installation.run(*DAYS)
    with psycopg.connect(installation.database) as connection:
        (failed,) = connection.execute(
            "SELECT count(*) FROM rag.ingestion_failures WHERE resolved_at IS NULL"
        ).fetchone()
    assert failed == 3


def test_broken_drops_stop_no_repository(two):
    installation, _, _ = two
    for number in range(5):
        installation.drop(f"{number}.ipynb", json.dumps({"cells": number}))
    installation.try_run("2024-01-02", "2024-01-31")
    assert {("a", "good", "a.md"), ("b", "bad", "a.md")} <= living(installation)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size * 2 // 3)


def _emptied(path: Path) -> None:
    os.truncate(path, 0)


def _foreign(path: Path) -> None:
    pq.write_table(pa.table({"what": ["somebody", "else's"]}), path)


def _altered(path: Path) -> None:
    """Bytes of pages are others, the footer is whole."""
    content = bytearray(path.read_bytes())
    pages = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for at in range(4, pages, 7):
        content[at] ^= 0xFF
    path.write_bytes(content)


def part_of(installation: Installation, stage: str, tenant: str) -> Path:
    found = sorted((Path(installation.settings.lake_url) / stage).rglob(f"{tenant}/*/2024-01-05.parquet"))
    assert found, stage
    return found[-1]


SLOW = pytest.mark.slow


@pytest.mark.parametrize("checks", [False, pytest.param(True, marks=SLOW)])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "damage",
    [pytest.param(_cut, marks=SLOW), pytest.param(_emptied, marks=SLOW), pytest.param(_foreign, marks=SLOW), _altered],
    ids=lambda d: d.__name__.strip("_"),
)
def test_a_damaged_part_is_made_again_and_stops_no_other(two, stage, damage: Callable[[Path], None], checks):
    """Found by the stage itself, or by the next one that has to read it."""
    installation, good, bad = two
    installation.checks = checks
    for repository in (good, bad):
        repository.commit("2024-01-05T10:00", {f"{n}.md": f"# Page {n}\n\n" + "Words of it. " * 30 for n in range(3)})
    installation.run(*DAYS)
    undisturbed = index_of(installation.database)
    damage(part_of(installation, stage, "b"))
    # The stages after it have to read it.
    for later in ("documents", "chunks", "embeddings")[{"raw_docs": 0, "documents": 1}.get(stage, 2) :]:
        if later != stage:
            part_of(installation, later, "b").unlink()
    good.commit("2024-01-06T10:00", {"b.md": "# New\n\nNew words.\n"})
    installation.try_run(*DAYS)
    assert ("a", "good", "b.md") in living(installation)
    good.commit("2024-01-06T11:00", {"b.md": None})
    installation.run(*DAYS)
    healed = index_of(installation.database)
    assert {name: rows for name, rows in healed.items() if name in ("chunks", "vectors", "links")} == {
        name: rows for name, rows in undisturbed.items() if name in ("chunks", "vectors", "links")
    }
    assert [row for row in healed["documents"] if "good:b.md" not in str(row)] == undisturbed["documents"]
    assert not installation.failures()
    # Vectors are read when a database has lost them, and then made again.
    for each in ("raw_docs", "documents", "chunks") if damage is _altered else STAGES:
        assert pq.read_table(part_of(installation, each, "b")).num_rows


@pytest.mark.parametrize("checks", [False, True])
def test_a_spent_budget_stops_its_tenant_alone(two, checks):
    """The tenant that is out of money comes first."""
    installation, good, bad = two
    installation.checks = checks
    first, second = installation.repositories
    installation.repositories = [{**first, "tenant": "z"}, second]
    installation.run(*DAYS)
    for repository in (good, bad):
        repository.commit("2024-01-05T10:00", {"b.md": "# New\n\nNew words of it.\n", "a.md": None})
    installation.more = {**installation.more, "budget": {"tenants": {"b": {"run_tokens": 0}}}}
    result, _ = installation.try_run(*DAYS)
    assert not result.success
    reason = str(reason_of(result))
    assert "budget.run_tokens of tenant 'b'" in reason and "tenant 'z'" not in reason
    assert living(installation) == {("z", "good", "b.md"), ("b", "bad", "a.md")}
    installation.more = {"quality": installation.more["quality"]}
    installation.refresh()
    assert living(installation) == {("z", "good", "b.md"), ("b", "bad", "b.md")}
    assert not installation.failures()
