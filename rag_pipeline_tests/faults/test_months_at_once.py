"""A backfill in parts: a run for each month, several at once, gives the index of one run over all, within the pools."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen

import psycopg
import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.faults.test_kill import index_of
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.intervals import most_at_once

pytestmark = [pytest.mark.slow, pytest.mark.faults]
TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
MONTHS = 36 if os.environ.get("RAG_TEST_LONG") else 8
AT_ONCE = 4
LAST = datetime(2024, 12, 31, 12, tzinfo=UTC)
COMMAND = [sys.executable, "-c", "from rag_pipeline.cli import main; main()", "materialize"]
POOLS = {"git": 2, "github": 2, "embedding": 1}
"""`github` above its default, so that two processes do share the quota."""


def months() -> list[tuple[date, date]]:
    """First and last days, the newest first: the order that a backfill should not have."""
    found, last = [], LAST.date()
    for _ in range(MONTHS):
        first = last.replace(day=1)
        found.append((first, last))
        last = first - timedelta(days=1)
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> GitRepository:
    """A repository in which every month adds a page, edits an older one and removes one."""
    repository = GitRepository(tmp_path_factory.mktemp("months") / "project")
    for n, (first, _) in enumerate(reversed(months())):
        files: dict[str, str | None] = {f"docs/page_{n}.md": page(n, "at first"), f"src/part_{n}.py": code(n)}
        if n:
            files[f"docs/page_{n - 1}.md"] = page(n - 1, f"since {first}")
        if n > 2 and n % 3 == 0:
            files[f"src/part_{n - 2}.py"] = None
        repository.commit(f"{first}T10:00", files)  # type: ignore[arg-type]
    return repository


def page(n: int, when: str) -> str:
    told = f"Its beam has been {n * 3} miles wide, {when}."
    return f"# Lighthouse {n}\n\n{told}\n\n## Keeper\n\nKeeper {n} climbs at dusk.\n"


def code(n: int) -> str:
    return f'def beam_{n}(speed):\n    """Turn the lamp of lighthouse {n}."""\n    return speed * {n}\n'


@pytest.fixture(scope="module")
def github() -> Iterator[GitHubServer]:
    forge = Forge(now=LAST)
    generate(forge, issues=12, pulls=6, days=31 * MONTHS - 40)
    with GitHubServer(forge, tokens=[TOKEN]) as server:
        yield server


class Shop:
    """A RAG_HOME with a configuration, in which commands are run."""

    def __init__(self, home: Path, project: GitRepository, github: GitHubServer) -> None:
        self.home = home
        first, _ = months()[-1]
        pools = "".join(f"{name} = {limit}\n" for name, limit in POOLS.items())
        self.config = home / "rag_pipeline.toml"
        self.config.write_text(
            f'start_date = {first}\n[[repositories]]\nsource = "{project.path}"\n'
            f'[[repositories]]\ngithub = "acme/rocket"\n[github]\nbase_url = "{github.url}"\n'
            f"[quality]\nin_refresh = false\n[pools]\n{pools}"
        )

    def start(self, *words: str) -> Popen[str]:
        environ = {**os.environ, "RAG_HOME": str(self.home), "RAG_CONFIG": str(self.config), "GITHUB_TOKEN": TOKEN}
        return Popen([*COMMAND, *words], cwd=self.home, env=environ, stdout=PIPE, stderr=PIPE, text=True)

    def materialize(self, first: date, last: date) -> Popen[str]:
        return self.start("--from", str(first), "--to", str(last))

    def steps(self, pool_of: dict[str, str]) -> dict[str, list[tuple[float, float]]]:
        """Begin and end of every step that holds a place in a pool, by pool."""
        with psycopg.connect(EmbeddedPostgres(self.home).url("dagster")) as connection:
            rows = connection.execute(
                "SELECT run_id, step_key, dagster_event_type, extract(epoch FROM timestamp)::float8 FROM event_logs"
                " WHERE dagster_event_type IN ('STEP_START', 'STEP_SUCCESS') ORDER BY id"
            ).fetchall()
        began, spans = {}, {pool: [] for pool in POOLS}  # type: ignore[var-annotated]
        for run, step, event, at in rows:
            if step in pool_of and event == "STEP_START":
                began[run, step] = at
            elif step in pool_of:
                spans[pool_of[step]].append((began[run, step], at))
        return spans


def finished(running: Popen[str]) -> None:
    _, said = running.communicate(timeout=600)
    assert running.returncode == 0, said[-4000:]


@pytest.fixture(scope="module")
def in_one_run(project: GitRepository, github: GitHubServer) -> tuple[list[tuple[object, ...]], int]:
    """The index after a single run over all months, and the requests that it took."""
    with temporary_home() as home:
        shop = Shop(home, project, github)
        finished(shop.materialize(months()[-1][0], LAST.date()))
        rows = index_of(home)
    assert len(rows) > 3 * MONTHS
    assert all(row[5] for row in rows if not row[2])
    return rows, len(github.requests)


def test_a_run_for_each_month_several_at_once_gives_the_index_of_one_run(project, github, in_one_run):
    undisturbed, requests = in_one_run
    github.requests.clear()
    with temporary_home() as home:
        shop = Shop(home, project, github)
        waiting, running = deque(months()), deque[Popen[str]]()
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                running.append(shop.materialize(*waiting.popleft()))
            finished(running.popleft())
        assert index_of(home) == undisturbed
        assert {call.status for call in github.requests} <= {200, 304}, "nobody was told to slow down"
        # Each run asks what is new; none fetches again what another has.
        assert len(github.requests) <= requests + 8 * MONTHS
        spans = shop.steps({"raw_git": "git", "raw_github": "github", "embeddings": "embedding"})
        for pool, limit in POOLS.items():
            assert len(spans[pool]) == MONTHS
            assert most_at_once(spans[pool]) <= limit, pool
