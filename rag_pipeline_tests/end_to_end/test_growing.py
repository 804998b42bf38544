"""A refresh of a small change, over an index that is not small: it reads what changed, not all there is."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from rag_pipeline.index import reporting
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository

_PAGES = 300


def page(number: int) -> str:
    parts = (
        f"## Part {n}\n\nPart {n} of page {number} says something about topic{number}x{n} and no other one.\n"
        for n in range(8)
    )
    return f"# Page {number}\n\n" + "\n".join(parts)


@pytest.mark.slow
def test_a_small_refresh_reads_no_table_whole(
    tmp_path: Path, database: str, repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "COUNTED_UP_TO", 0)
    repository.commit("2024-01-02T10:00", {f"docs/{n}.md": page(n) for n in range(_PAGES)})
    installation = Installation(
        tmp_path / "home", database, [{"source": str(repository.path), "name": "handbook"}], checks=True,
        more={"quality": {"knowledge_index": {"whole_up_to_chunks": 0}}},
    )  # fmt: skip
    installation.run("2024-01-02")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ANALYZE")
        (chunks,) = connection.execute("SELECT count(*) FROM rag.chunks").fetchone() or (0,)
        before = rows_read(connection)
        repository.commit("2024-01-03T10:00", {"docs/7.md": page(7) + "\nOne sentence more.\n", "docs/8.md": None})
        report = installation.run("2024-01-03").reports["knowledge_index"]
        read = {table: rows - before.get(table, 0) for table, rows in rows_read(connection).items()}
    assert report.written.documents == 2 and chunks > 5 * _PAGES
    tables = {table: rows for table, rows in read.items() if table.startswith(("chunks", "documents", "vectors_"))}
    assert len(tables) == 3
    assert max(tables.values()) < _PAGES / 2, tables


def rows_read(connection: psycopg.Connection[tuple[object, ...]]) -> dict[str, int]:
    """Rows that statements have taken from each of our tables, by whatever way."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    return dict(connection.execute(
        "SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE schemaname = 'rag'"
    ).fetchall())  # fmt: skip
