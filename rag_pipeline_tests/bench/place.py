"""A throw-away installation for one measurement: a clone, a configuration and a RAG_HOME in a temporary folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.settings import Settings, load_settings, resolve_source
from rag_pipeline_tests.bench.process import Finished, run

NAME = "bench"
_IDENTITY = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
             for what, value in (("NAME", "Bench"), ("EMAIL", "bench@example.org"))}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one measurement happens."""

    folder: Path
    start_date: date
    repository: Path | None = None
    """What is indexed, when it is not a clone of its own."""
    more: str = ""
    """Sections of the configuration beside the defaults."""

    @property
    def home(self) -> Path:
        """RAG_HOME."""
        return self.folder / "home"

    @property
    def clone(self) -> Path:
        """The repository that is indexed."""
        return self.repository or self.folder / "clone"

    @property
    def server(self) -> EmbeddedPostgres:
        """The database of this place."""
        return EmbeddedPostgres(self.home)

    @property
    def env(self) -> dict[str, str]:
        """The environment without anything that would lead to another installation or to a service."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RAG_", "DAGSTER_", "GIT_")) and not name.endswith("_API_KEY")
        }
        kept.pop("DATABASE_URL", None)
        return kept | {"RAG_HOME": str(self.home)}

    def settings(self) -> Settings:
        """What the commands in this place read."""
        return load_settings(environ={"RAG_HOME": str(self.home)}, cwd=self.folder)

    def python(self, *args: str, env: Mapping[str, str] | None = None) -> Finished:
        """Run Python with these arguments in this place; `env`: beside the place's own."""
        return run([sys.executable, *args], cwd=self.folder, env=self.env | dict(env or {}))

    def cli(self, *args: str, env: Mapping[str, str] | None = None) -> Finished:
        """Run `rag-pipeline`."""
        return self.python("-c", "from rag_pipeline.cli import main; main()", *args, env=env)

    def materialize(self, *args: str) -> tuple[Finished, dict[str, Any]]:
        """Run `rag-pipeline materialize … --json`; what it took and its summary."""
        finished = self.cli("materialize", *args, "--json")
        return finished, json.loads(finished.stdout)

    def git(self, *args: str) -> str:
        """Run git in the clone."""
        done = subprocess.run(
            ["git", *args], cwd=self.clone, env=self.env | _IDENTITY, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def configure(self) -> None:
        """Write the configuration."""
        source = json.dumps(str(self.clone))
        (self.folder / "rag_pipeline.toml").write_text(
            f'start_date = {self.start_date}\n[[repositories]]\nsource = {source}\nname = "{NAME}"\n{self.more}',
            encoding="utf-8",
        )

    def starting(self, day: date) -> Place:
        """The same folder, with another first partition."""
        place = replace(self, start_date=day)
        place.configure()
        return place


@contextmanager
def place_for(repository: str, *, start_date: date | None = None, more: str = "") -> Iterator[Place]:
    """A place with a clone of the repository's history; by default its first commit is in the first partition."""
    with _folder() as folder:
        place = Place(folder=folder, start_date=start_date or date.today(), more=more)  # noqa: DTZ011 # replaced below
        source = resolve_source(repository, Path.cwd())
        subprocess.run(["git", "clone", "--quiet", source, str(place.clone)], env=place.env, check=True)
        yield place.starting(start_date or first_day(place))


@contextmanager
def place_beside(other: Place, *, more: str) -> Iterator[Place]:
    """Another installation that indexes the same clone, with these sections in its configuration."""
    with _folder() as folder:
        place = Place(folder=folder, start_date=other.start_date, repository=other.clone, more=more)
        place.configure()
        yield place


@contextmanager
def _folder() -> Iterator[Path]:
    """Of a place, gone at the end with the server that runs in it."""
    folder = Path(tempfile.mkdtemp(prefix="rag-bench-"))
    # PostgreSQL runs as another user when this one is root, and must be able to enter.
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        Place(folder=folder, start_date=date.min).server.erase()
        shutil.rmtree(folder)


def first_day(place: Place) -> date:
    """The day of the oldest commit on the branch's first-parent chain (UTC)."""
    oldest = place.git("log", "--first-parent", "--reverse", "--date=format-local:%Y-%m-%d", "--format=%cd").split("\n")
    return date.fromisoformat(oldest[0])
