"""The index against the lake: what is missing, stale or cut otherwise is named; what came in any order is not."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import psycopg
import pytest

from rag_pipeline.model import DayRange
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.end_to_end.test_convergence import World
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.quality.inspected import inspect, wrong

GUIDE = "\n\n".join(f"## Step {n}\n\nWhat is done in step {n}, and why that comes before the next." for n in range(6))


@pytest.fixture
def installation(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    """An index of a few days in which a file was edited, one deleted and one moved."""
    repository.commit("2024-01-02T10:00", {"README.md": "# Project\n\nWhat it is for.\n", "guide.md": GUIDE})
    repository.commit("2024-01-03T10:00", {"old.md": "# Old\n\nThis goes.\n", "notes.txt": "Notes on deployment.\n"})
    repository.commit("2024-01-05T10:00", {"README.md": "# Project\n\nWhat it is for now.\n", "old.md": None})
    repository.move("notes.txt", "docs/notes.txt")
    repository.commit("2024-01-09T10:00")
    installation = Installation(tmp_path / "home", database, [{"source": str(repository.path), "name": "project"}])
    installation.run("2024-01-01", "2024-01-31")
    return installation


def execute(installation: Installation, statement: str) -> None:
    with psycopg.connect(installation.database) as connection:
        connection.execute("SET LOCAL session_replication_role = 'replica'")
        connection.execute(statement)


BROKEN = {
    "in_lake_only": ("guide.md", "DELETE FROM rag.documents WHERE path = 'guide.md'"),
    "stale_documents": (
        "README.md", "UPDATE rag.documents SET as_of = as_of - interval '1 day' WHERE path = 'README.md'"),
    "other_chunks_than_lake": ("docs/notes.txt", "DELETE FROM rag.chunks WHERE text LIKE 'Notes on%'"),
}  # fmt: skip
MEND = (
    "UPDATE rag.documents SET state_hash = '00000000-0000-0000-0000-000000000000' WHERE NOT deleted",
    "DELETE FROM rag.stored_parts WHERE stage = 'knowledge_index'",
    "TRUNCATE rag.segments, rag.postings",
)
"""What the remedies of these and of the postings say."""


def test_what_the_index_lacks_is_named_and_comes_back_as_the_remedy_says(installation):
    assert wrong(installation) == {}
    found = inspect(installation)
    assert found.comparison is not None and found.sizes is not None
    assert (found.comparison.documents, found.comparison.tombstones) == (3, 2)
    assert found.comparison.chunks == found.sizes.chunks > 0
    assert "every search is exact" in found.notes[0]
    for _, statement in BROKEN.values():
        execute(installation, statement)
    looks = wrong(installation)
    for look, (path, _) in BROKEN.items():
        assert [row["source_id"] for row in looks[look].sample] == [f"project:{path}"]
    # Of other days nothing is asked.
    days = DayRange(first=date(2024, 1, 3), last=date(2024, 1, 4))
    assert not wrong(installation, days).keys() & BROKEN.keys()
    for statement in MEND:
        execute(installation, statement)
    # A document of the same age in another state than the lake's is stale, too.
    assert "stale_documents" not in wrong(installation)  # no part is said to be stored
    installation.run("2024-01-01", "2024-01-31")
    assert wrong(installation) == {}
    execute(installation, "UPDATE rag.documents SET state_hash = gen_random_uuid() WHERE path = 'guide.md'")
    (row,) = wrong(installation)["stale_documents"].sample
    assert row["in_index"] == "another state of the same time"


def test_a_chunk_that_goes_by_the_vector_of_another_text_is_named_and_mended(installation):
    others = "SELECT text_hash FROM rag.chunks WHERE text LIKE '%step 4%'"
    execute(installation, f"UPDATE rag.chunks SET text_hash = ({others}) WHERE text LIKE '%step 2%'")
    looks = wrong(installation)
    (row,) = looks.pop("other_chunks_than_lake").sample
    assert (row["source_id"], row["lacks"], row["has_too_many"]) == ("project:guide.md", 1, 1)
    for statement in MEND:
        execute(installation, statement)
    installation.run("2024-01-01", "2024-01-31")
    assert wrong(installation) == {}


def test_what_is_quarantined_or_waits_for_its_run_is_neither_missing_nor_stale(installation, repository):
    installation.embedder.refuse = {"forbidden"}
    repository.commit("2024-01-20T10:00", {"guide.md": "# Guide\n\nA forbidden word.\n", "new.md": "# New\n\nGood.\n"})
    installation.refresh()
    assert installation.failures()
    assert wrong(installation) == {}
    repository.commit("2024-01-22T10:00", {"later.md": "# Later\n\nNot indexed yet.\n"})
    installation.run("2024-01-22", select=["raw_docs", "raw_code", "documents", "chunks"])
    looks = wrong(installation)
    assert looks.keys() == {"parts_waiting"}
    assert looks["parts_waiting"].sample[0]["day"] == date(2024, 1, 22)


def test_days_in_any_order_and_under_other_settings_agree_with_the_lake(installation):
    for day in (date(2024, 1, 9), date(2024, 1, 3), date(2024, 1, 5)):
        installation.run(day)
    assert wrong(installation) == {}
    # The settings are others by now, what is indexed is not: nothing is stale by that alone.
    installation.more = {"chunking": {"max_tokens": 40, "min_tokens": 4}}
    assert wrong(installation) == {}
    installation.run("2024-01-01", "2024-01-04")
    assert wrong(installation) == {}


@pytest.mark.parametrize("seed", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)])
def test_nothing_that_happens_makes_a_sound_index_look_broken(seed, forge, github, tmp_path, database):
    """Edits, deletions, transfers, drops late and early, reconciliations, runs of old days and runs that are killed."""
    world = World(forge, github, tmp_path / "home", database, seed=seed)
    for _ in range(5):
        world.live(2)
        # A run that was killed leaves parts that wait for the next one.
        assert wrong(world.installation).keys() <= {"parts_waiting"}, world.happened
    world.settle()
    assert wrong(world.installation) == {}, world.happened
