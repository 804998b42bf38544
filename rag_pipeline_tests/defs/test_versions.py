"""Which partitions Dagster shows as stale, and why: code versions and data versions, as the UI asks for them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

from rag_pipeline.defs.versions import by_day
from rag_pipeline.lake.store import Part
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

pytestmark = pytest.mark.slow

DAYS = ("2024-01-20", "2024-01-21", "2024-01-22")
DERIVED = ("documents", "chunks", "embeddings", "knowledge_index")


class Watched:
    """An installation, and what the UI would say of its partitions."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.instance = installation.instance = dg.DagsterInstance.ephemeral()

    def causes(self, asset: str, day: str) -> list[str]:
        """Why a partition is stale; nothing when it is not."""
        graph = self.installation.definitions().resolve_asset_graph()
        resolver = CachingStaleStatusResolver(self.instance, graph, LoadingContextForTest(self.instance))
        key = dg.AssetKey(asset)
        assert resolver.get_current_data_version(key, day).value != "NULL", "it was never made"
        causes = resolver.get_stale_causes(key, day)
        return [f"{cause.reason} {cause.dependency.asset_key.to_user_string()}" if cause.dependency else cause.reason
                for cause in causes]  # fmt: skip

    def version(self, asset: str, day: str) -> str:
        """The data version of a partition."""
        graph = self.installation.definitions().resolve_asset_graph()
        resolver = CachingStaleStatusResolver(self.instance, graph, LoadingContextForTest(self.instance))
        return resolver.get_current_data_version(dg.AssetKey(asset), day).value


@pytest.fixture
def watched(tmp_path: Path, database: str, repository: GitRepository) -> Watched:
    for number, day in enumerate(DAYS):
        repository.commit(f"{day}T10:00", {f"{number}.md": f"# Guide {number}\n\nHow number {number} is done.\n"})
    source = {"source": str(repository.path), "name": "acme/project", "branch": "main"}
    watched = Watched(Installation(tmp_path / "home", database, [source], start_date=date(2024, 1, 19)))
    watched.installation.run(DAYS[0], DAYS[-1])
    return watched


def test_after_a_range_nothing_is_stale_until_another_size_of_chunks_makes_every_day_so(watched):
    assert [watched.causes(asset, day) for asset in DERIVED for day in DAYS] == [[]] * 12
    watched.installation.more = {"chunking": {"max_tokens": 40, "min_tokens": 8}}
    assert [watched.causes("chunks", day) for day in DAYS] == [["has a new code version"]] * 3
    assert watched.causes("documents", DAYS[0]) == []
    watched.installation.run(DAYS[0], select=["chunks"])
    assert watched.causes("chunks", DAYS[0]) == []
    assert watched.causes("chunks", DAYS[1]) == ["has a new code version"]
    assert watched.causes("embeddings", DAYS[0]) == ["has a new dependency data version chunks"]
    embedded = len(watched.installation.embedder.embedded)
    watched.installation.run(DAYS[0], DAYS[-1], select=["chunks", "embeddings", "knowledge_index"])
    assert [watched.causes(asset, day) for asset in DERIVED for day in DAYS] == [[]] * 12
    assert len(watched.installation.embedder.embedded) == embedded, "the texts are short: none is new"


def test_a_day_that_is_made_again_and_is_as_it_was_makes_nothing_stale(watched):
    before = watched.version("documents", DAYS[1])
    watched.installation.run(DAYS[1], select=["documents"])
    assert watched.version("documents", DAYS[1]) == before
    watched.installation.run(DAYS[1], select=["raw_docs"])
    assert [watched.causes(asset, DAYS[1]) for asset in DERIVED] == [[]] * 4
    # A day without any data, too.
    watched.installation.run("2024-01-23")
    before = watched.version("chunks", "2024-01-23")
    watched.installation.run("2024-01-23", select=["documents", "chunks"])
    assert (watched.version("chunks", "2024-01-23"), watched.causes("embeddings", "2024-01-23")) == (before, [])


def test_new_data_of_a_day_makes_what_depends_on_it_stale_and_no_other_day(watched, repository):
    repository.commit(f"{DAYS[2]}T12:00", {"2.md": "# Guide 2\n\nNow it is done otherwise.\n"})
    watched.installation.run(DAYS[2], select=["raw_docs", "raw_code"])
    assert watched.causes("documents", DAYS[2]) == ["has a new dependency data version raw_docs"]
    assert watched.causes("documents", DAYS[1]) == []
    watched.installation.run(DAYS[2])
    assert [watched.causes(asset, DAYS[2]) for asset in DERIVED] == [[]] * 4


def test_what_a_day_holds_is_told_by_all_of_its_parts():
    day = date(2024, 1, 1)
    parts = [Part(tenant=tenant, repository=name, day=day) for tenant in ("a", "b") for name in ("x", "y")]
    held = {part: f"print {number}" for number, part in enumerate(parts)}
    assert by_day(held) == by_day(dict(reversed(held.items())))
    assert by_day(held) != by_day(held | {parts[2]: "another"})
    assert by_day({}) == {}
