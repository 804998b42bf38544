"""No planted secret is anywhere behind cleaning: not in the lake, the index, the model's input or Dagster's records."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psycopg
import pyarrow.parquet as pq
import pytest

from rag_pipeline.documents.stage import DocumentsReport
from rag_pipeline_tests.documents.redaction.planted import NAMED, PLACED, TOKENS
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.git_repository import GitRepository


@pytest.fixture
def secrets() -> dict[str, str]:
    """One of every kind, as text that holds it: by its value."""
    rng = random.Random(11)
    planted = {}
    for make in TOKENS.values():
        value = make(rng)
        planted[value] = f"Use `{value}` for this."
    for name, make in NAMED.values():
        value = make(rng)
        planted[value] = f"{name}={value}"
    for template, make in PLACED.values():
        value = make(rng)
        planted[value] = template.format(value)
    return planted


@pytest.fixture
def installation(tmp_path: Path, database: str, repository: GitRepository, secrets: dict[str, str]) -> Installation:
    """Documents, code, a broken notebook and a drop, all of them careless."""
    lines = list(secrets.values())
    password = next(value for value, line in secrets.items() if line.startswith("password="))
    front_matter = f"---\ntitle: Set-up\npassword: {password}\n---\n"
    files = {f"docs/page_{n}.md": front_matter + "# Page\n\n" + "\n\n".join(lines[n::4]) for n in range(4)}
    files |= {f"src/part_{n}.py": "\n".join(f"# {line}" for line in lines[n::3]) + "\nx = 1\n" for n in range(3)}
    files |= {"deploy/prod.yaml": "\n".join(lines), "broken.ipynb": '{"cells": "' + lines[0] + '"}'}
    repository.commit("2024-01-03T10:00", files)
    repositories = [{"source": str(repository.path), "name": "project"}]
    installation = Installation(tmp_path / "home", database, repositories, instance=dg.DagsterInstance.ephemeral())
    record = {"id": "1", "title": lines[1], "content": "\n\n".join(lines), "metadata": {"password": password}}
    installation.drop("note.json", json.dumps(record | {"updated_at": "2024-01-30T10:00:00Z"}))
    installation.drop("refused.json", json.dumps({"id": lines[0], "text": lines[2]}))
    return installation


def everything(installation: Installation) -> Iterator[tuple[str, str]]:
    """Where, and what stands there."""
    lake = installation.home / "lake"
    for path in lake.rglob("*.parquet"):
        if not path.relative_to(lake).parts[0].startswith("raw_"):
            yield str(path), repr(pq.ParquetFile(path).read().to_pylist())
    with psycopg.connect(installation.database) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'rag'").fetchall()
        for (table,) in tables:
            yield table, repr(connection.execute(f"SELECT * FROM rag.{table}").fetchall())
    assert installation.instance is not None
    for run in installation.instance.get_runs():
        logs = installation.instance.all_logs(run.run_id)
        assert logs, "Dagster has kept nothing to look at"
        yield f"run {run.run_id}", repr(run) + repr(logs)
    yield "the model", repr(installation.embedder.embedded)


def test_no_planted_secret_is_found_anywhere(
    installation: Installation, secrets: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    (run,) = installation.refresh()
    assert len(installation.documents()) >= 9
    cleaned = run.reports["documents"]
    assert isinstance(cleaned, DocumentsReport)
    assert cleaned.redactions.total() > len(secrets)
    found = [
        (where, value)
        for where, text in [*everything(installation), ("the terminal", "".join(capfd.readouterr()))]
        for value in secrets
        if value in text or repr(value)[1:-1] in text
    ]
    assert found == [], [secrets[value] for _, value in found]
