"""A pipeline as its users run it, from the command line, with everything around it in reach of a test's hands.

The database server is one that may be hurt, the embedding service answers as a test scripts it, the repository is made
here; so each part can fail as it does in the world, while the command line is the one that people type.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

# Imported before the fork, so that no command has to.
import openai  # noqa: F401
import psycopg

import rag_pipeline.cli.app
import rag_pipeline.cli.runs
import rag_pipeline.definitions  # noqa: F401
from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.embedding.tokens import encoding_name, load_encoding
from rag_pipeline.index.database import sibling_url
from rag_pipeline_tests.embedding.fake_service import MODEL, FakeService
from rag_pipeline_tests.faults.forked import Child, fork, run_command
from rag_pipeline_tests.git_repository import GitRepository

load_encoding(encoding_name(MODEL))
_numbers = itertools.count()
_DIMENSIONS = 8


@dataclass(kw_only=True)
class Site:
    """One RAG_HOME with its two databases, on a server that others may use, too."""

    home: Path
    server: EmbeddedPostgres
    project: GitRepository
    service: FakeService
    first_day: date
    more: str = ""
    """Further TOML."""
    environ: dict[str, str] = field(default_factory=dict)
    name: str = field(default_factory=lambda: f"site_{os.getpid()}_{next(_numbers)}")
    lake: Path | None = None
    children: list[Child] = field(default_factory=list)

    @property
    def database(self) -> str:
        """The address of the index."""
        return self.server.url(self.name)

    def start(self, *words: str) -> Child:
        """A command at work."""
        self.home.mkdir(parents=True, exist_ok=True)
        config = self.home / "rag_pipeline.toml"
        config.write_text(self._toml(), encoding="utf-8")
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "DAGSTER_"))},
            "RAG_HOME": str(self.home),
            "RAG_CONFIG": str(config),
            "DATABASE_URL": self.database,
            "DAGSTER_POSTGRES_URL": sibling_url(self.database, database=f"{self.name}_dagster"),
            "OPENAI_API_KEY": "sk-none",
            **({"RAG_LAKE": str(self.lake)} if self.lake else {}),
            **self.environ,
        }
        log = self.home / f"command-{next(_numbers)}.log"
        self.children.append(fork(run_command(words), log=log, environ=environ, cwd=self.home))
        return self.children[-1]

    def run(self, *words: str, timeout_s: float = 120.0) -> Child:
        """A command that has ended, well or not."""
        child = self.start(*words)
        child.wait(timeout_s)
        return child

    def fails(self, *words: str, saying: str) -> str:
        """Run a command that cannot succeed: it says so in one line that fits, shows no traceback, and ends with 1."""
        return failed(self.run(*words), saying=saying)

    def refresh(self) -> str:
        """What brings the index up to date; it must succeed."""
        done = self.run("materialize")
        assert done.code == 0, done.said[-6000:]
        return done.said

    def _toml(self) -> str:
        return "\n".join((
            f'start_date = "{self.first_day}"',
            "[[repositories]]",
            f"source = {json.dumps(str(self.project.path))}",
            'name = "project"',
            "[embedding]",
            'provider = "openai"',
            'model = "text-embedding-3-small"',
            f"base_url = {json.dumps(self.service.url)}",
            f"dimensions = {_DIMENSIONS}",
            "max_retries = 1",
            "timeout_s = 1.5",
            "batch_texts = 8",
            "[chunking]",
            "max_tokens = 80",
            "min_tokens = 8",
            "[quality]",
            "in_refresh = false",
            self.more,
            "",
        ))  # fmt: skip


def failed(child: Child, *, saying: str) -> str:
    """The error that a command ended with: a line for people, with these words (a pattern) in it."""
    assert child.code == 1, child.said[-6000:]
    assert "Traceback" not in child.said, child.said[-6000:]
    errors = [line for line in child.said.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, child.said[-6000:]
    assert re.search(saying, errors[0]), errors[0]
    return errors[0].removeprefix("error: ")


def databases_of(server: EmbeddedPostgres, name: str, *, template: str | None = None) -> None:
    """The two databases of a site: new and empty, or as those of another one are."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        for suffix in ("", "_dagster"):
            origin = f"{template}{suffix}" if template else "template1"
            connection.execute(
                psycopg.sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    psycopg.sql.Identifier(f"{name}{suffix}"), psycopg.sql.Identifier(origin)
                )
            )


def drop_databases(server: EmbeddedPostgres, name: str) -> None:
    """Both of them, whoever is connected."""
    server.start()
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        for suffix in ("", "_dagster"):
            connection.execute(
                psycopg.sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(
                    psycopg.sql.Identifier(f"{name}{suffix}")
                )
            )


@contextmanager
def copy_of(site: Site, home: Path, **changes: Any) -> Iterator[Site]:
    """A site in the same state, on the same server, with a home and databases of its own."""
    given = {"server": site.server, "service": site.service, **changes}
    made = Site(home=home, project=site.project, first_day=site.first_day, **given)
    databases_of(site.server, made.name, template=site.name)
    shutil.copytree(site.home, home, ignore=shutil.ignore_patterns("postgres*", "command-*.log"))
    try:
        yield made
    finally:
        for child in made.children:
            child.kill()
        drop_databases(site.server, made.name)


def index_of(url: str) -> Mapping[str, list[tuple[Any, ...]]]:
    """Everything that the index holds, but for when and in which order it was written."""
    with psycopg.connect(url) as connection:
        return {name: connection.execute(query).fetchall() for name, query in _QUERIES.items()}


def rows_in(index: Mapping[str, list[tuple[Any, ...]]]) -> int:
    """How many rows were compared."""
    return sum(map(len, index.values()))


def locks_of(url: str) -> list[tuple[Any, ...]]:
    """Advisory locks that somebody holds in this database."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT classid, objid, pid FROM pg_locks WHERE locktype = 'advisory'"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ).fetchall()


def places_of(site: Site) -> list[tuple[Any, ...]]:
    """Places in Dagster's pools that somebody holds or waits for."""
    with psycopg.connect(site.server.url(f"{site.name}_dagster")) as connection:
        return connection.execute(
            "SELECT concurrency_key, run_id FROM concurrency_slots WHERE run_id IS NOT NULL"
            " UNION ALL SELECT concurrency_key, run_id FROM pending_steps"
        ).fetchall()


_QUERIES = {
    "documents": "SELECT to_jsonb(d) - 'indexed_at' - 'observed_at' - 'as_of' FROM rag.documents d"
    " ORDER BY document_id",
    "chunks": "SELECT to_jsonb(c) - 'number' FROM rag.chunks c ORDER BY chunk_id",
    "links": "SELECT to_jsonb(l) FROM rag.links l ORDER BY document_id, kind, target",
    "vectors": "SELECT tenant_id, text_hash, embedding::text FROM rag.vectors_1"
    " WHERE (tenant_id, text_hash) IN (SELECT tenant_id, text_hash FROM rag.chunks) ORDER BY 1, 2",
    "failures": "SELECT source_id, stage FROM rag.ingestion_failures WHERE resolved_at IS NULL ORDER BY 1, 2",
    "terms": "SELECT s.tenant_id, s.scope, p.term, sum(p.chunks - p.removed) FROM rag.postings p"
    " JOIN rag.segments s USING (segment_id) GROUP BY 1, 2, 3"
    " HAVING sum(p.chunks - p.removed) <> 0 ORDER BY 1, 2, 3",
    "sizes": "SELECT tenant_id, sum(chunks - removed_chunks), sum(terms - removed_terms) FROM rag.segments"
    " GROUP BY 1 HAVING sum(chunks - removed_chunks) <> 0 ORDER BY 1",
    "progress": "SELECT tenant_id, repository, source, position FROM rag.source_progress"
    " WHERE source NOT LIKE 'read%' ORDER BY 1, 2, 3",
}
