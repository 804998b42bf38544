"""kill -9 at points of every stage, between any two of its effects: the next refresh ends in the undisturbed index.

The points are drawn by chance, the same in each run; with RAG_TEST_LONG all of them are tried.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import dagster as dg
import psycopg
import pytest

from rag_pipeline.definitions import MAINTAIN_JOB, build_defs
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.documents.redaction import engine
from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.errors import SpaceUnavailable, TransientError
from rag_pipeline.index.database import connected
from rag_pipeline.index.promotion import promote
from rag_pipeline.refresh.spaces import Models, made_space
from rag_pipeline.settings import Embedding
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.end_to_end.conftest import FIRST_DAY, _not_drawn
from rag_pipeline_tests.end_to_end.forgetting import forget_in
from rag_pipeline_tests.end_to_end.installation import Installation, WordEmbedder
from rag_pipeline_tests.end_to_end.test_spaces import try_build
from rag_pipeline_tests.faults.conftest import Record
from rag_pipeline_tests.faults.effects import Effects
from rag_pipeline_tests.faults.forked import fork
from rag_pipeline_tests.faults.site import index_of, locks_of, rows_in
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.quota import Quota
from rag_pipeline_tests.github_server.server import GitHubServer

__all__ = ["_not_drawn"]

pytestmark = pytest.mark.faults
POINTS = sys.maxsize if os.environ.get("RAG_TEST_LONG") else 4
"""Of each stage; asked for here, because tests find none of our variables set."""
DAYS = ("2024-04-22", "2024-05-03")
GITHUB = ("raw_github_issues", "raw_github_pull_requests")
GIT = ("raw_docs", "raw_code")
_LATER_S = 600.0
"""Between a death and the next run: a clock goes on, and more than by what the dead one had looked at it."""
_numbers = itertools.count()

Action = Callable[[Installation], object]


class _Copied(Installation):
    """One of many that differ in their place alone: what Dagster knows of them is made once."""

    known: ClassVar[dict[str, Any]] = {}

    def definitions(self) -> dg.Definitions:
        if "definitions" not in self.known:
            resource = dg.ResourceDefinition(lambda _: self.known["pipeline"])
            self.known["definitions"] = build_defs(self.settings, pipeline=resource)  # type: ignore[arg-type]
        return cast("dg.Definitions", self.known["definitions"])

    def job(self, name: str, pipeline: Pipeline) -> dg.JobDefinition:
        self.known["pipeline"] = pipeline
        return self.definitions().resolve_job_def(name)


@dataclass(kw_only=True)
class World:
    """Sources that stand still, and a state of an installation of them that each case gets a copy of."""

    server: EmbeddedPostgres
    github: GitHubServer
    project: GitRepository
    home: Path
    template: str
    now: datetime
    """When each case begins: what they come to can then be compared."""

    def installation(self, home: Path, database: str) -> Installation:
        repositories = [
            {"github": "acme/rocket", "name": "rocket"}, {"source": str(self.project.path), "name": "project"},
        ]  # fmt: skip
        made = _Copied(
            home, database, repositories, start_date=FIRST_DAY, now=self.github.forge.now, github=self.github
        )
        made.others = [WordEmbedder("larger", 32)]
        return made

    def copy(self, folder: Path) -> Iterator[Installation]:
        """The state, for one case."""
        # The hour of GitHub's quota begins anew, too.
        self.github.forge.now, self.github.quota = self.now, Quota()
        shutil.copytree(self.home, folder)
        with new_database(self.server, f"stage_{os.getpid()}_{next(_numbers)}", template=self.template) as url:
            yield self.installation(folder, url)


@pytest.fixture(scope="module", autouse=True)
def _no_secrets() -> Iterator[None]:
    """Nobody looks for secrets: a process that did could not be forked any more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "scan_string", lambda *_, **__: [])
        yield


@pytest.fixture(scope="module")
def world(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:  # fmt: skip
    """Files, threads and drops of ten days, indexed; then all of them change, and nothing of that was read yet."""
    folder = tmp_path_factory.mktemp("every-stage")
    forge = Forge(now=datetime(2024, 5, 2, 12, tzinfo=UTC))
    rocket = generate(forge, seed=3, issues=4, pulls=2, comments=1, reviews=1, review_comments=1, days=8)
    forge.now = datetime(2024, 5, 2, 12, tzinfo=UTC)
    project = GitRepository(folder / "project")
    project.commit("2024-04-23T10:00", {f"docs/{n}.md": _page(n, "as it was") for n in range(6)})
    project.commit("2024-04-25T10:00", {"app.py": "def start():\n    return 1\n", "docs/0.md": _page(0, "later")})
    with GitHubServer(forge, tokens=["secret"]) as github:
        github.clock = lambda: forge.now
        with new_database(server, "every_stage", template=template) as url:
            made = World(
                server=server, github=github, project=project, home=folder / "home", template="every_stage",
                now=forge.now,
            )  # fmt: skip
            first = made.installation(made.home, url)
            first.drop("note.1.json", json.dumps({"id": "note-1", "content": "The first note says a word."}))
            first.refresh()
            _change(forge, rocket, project, first)
            made.now = forge.now
            # Nobody may be connected to what is copied.
            yield made


def _change(forge: Forge, rocket: Any, project: GitRepository, installation: Installation) -> None:
    forge.now += timedelta(hours=20)
    installation.now = forge.now
    edited, gone, silent, *_ = rocket.issues()
    forge.comment(edited, "Nobody has read this yet.", author="grace")
    forge.delete_issue(gone)
    forge.edit_thread(silent, body="These words came without a trace.", silently=True)
    files = {"docs/1.md": _page(1, "as it is now"), "docs/2.md": None, "new.md": _page(9, "")}
    project.commit("2024-05-02T20:00", files)
    installation.drop("note.1b.json", json.dumps({"id": "note-1", "content": "The first note says something else."}))
    installation.drop("note.2.json", json.dumps({"id": "note-2", "content": "The second note."}))


def _page(number: int, words: str) -> str:
    sections = (f"## Part {s}\n\n" + f"Page {number} in part {s} {words} says what is so. " * 4 for s in range(3))
    return f"# Page {number}\n\n" + "\n\n".join(sections)


def _stage(*assets: str) -> Action:
    return lambda installation: installation.run(*DAYS, select=assets)


def _after(*earlier: tuple[str, ...]) -> Action:
    def prepare(installation: Installation) -> None:
        for assets in earlier:
            installation.run(*DAYS, select=assets)

    return prepare


def _maintain(installation: Installation) -> None:
    job = installation.job(MAINTAIN_JOB, installation.pipeline())
    assert job.execute_in_process(instance=installation._dagster(), raise_on_error=False).success


def _create(installation: Installation) -> None:
    with connected(installation.database) as connection:
        made_space(connection, Models(settings=Embedding(model="larger"), environ={}, make=installation.embedder_for))


def _build(installation: Installation) -> None:
    assert try_build(installation)[0].success


def _promote(installation: Installation) -> None:
    with connected(installation.database) as connection:
        promote(connection, 2, gate=lambda *_: [], force=False)


def _both(first: Action, second: Action) -> Action:
    return lambda installation: (first(installation), second(installation))


def _refresh(installation: Installation) -> None:
    installation.refresh()


def _nothing(_: Installation) -> None:
    pass


RAW = (GIT, GITHUB, ("raw_webhook_drops",))
CASES: dict[str, tuple[Action, Action, bool]] = {
    # What goes before, what is killed, and whether that itself has to be asked for again (a refresh does the rest).
    "raw_docs, raw_code": (_nothing, _stage(*GIT), False),
    "raw_github_…": (_nothing, _stage(*GITHUB), False),
    "raw_webhook_drops": (_nothing, _stage("raw_webhook_drops"), False),
    "documents": (_after(*RAW), _stage("documents"), False),
    "chunks": (_after(*RAW, ("documents",)), _stage("chunks"), False),
    "embeddings": (_after(*RAW, ("documents",), ("chunks",)), _stage("embeddings"), False),
    "knowledge_index": (_after(*RAW, ("documents",), ("chunks",), ("embeddings",)), _stage("knowledge_index"), False),
    "a whole refresh": (_nothing, _refresh, False),
    "index_maintenance": (_refresh, _maintain, True),
    "github_reconciliation": (_nothing, lambda installation: installation.reconcile(confirm=True), True),
    "spaces create, build": (_refresh, _both(_create, _build), True),
    "spaces promote": (_both(_refresh, _both(_create, _build)), _promote, True),
    "forget": (_refresh, lambda i: forget_in(i, "repository", "rocket"), True),
}


@dataclass(kw_only=True)
class Undisturbed:
    """What a case ends in when nobody is killed, and how many points there are to die at."""

    effects: int
    index: dict[str, list[tuple[Any, ...]]]
    before: dict[str, Any]
    after: dict[str, Any]


@pytest.mark.parametrize("name", CASES)
def test_a_stage_that_is_killed_at_any_point_is_made_good_by_the_next_run(
    name: str, world: World, tmp_path: Path, outcome: Record
) -> None:
    prepare, action, again = CASES[name]
    prepared = _prepared(world, tmp_path, prepare)
    for case in prepared:
        expected = _undisturbed(case, tmp_path / "whole", action)
        points = _points(name, expected.effects)
        for point in points:
            last = point == points[-1]
            _killed(case, tmp_path / f"at-{point}", action, point, again=again, expected=expected, settled=last)
        happened = f"converged from {len(points)} of {expected.effects} points"
        outcome("kill -9 before an effect", name, happened, rows=rows_in(expected.index))


@pytest.mark.parametrize("name", CASES)
def test_a_stage_that_two_processes_run_at_once_ends_as_if_one_had(
    name: str, world: World, tmp_path: Path, outcome: Record
) -> None:
    prepare, action, _ = CASES[name]
    for case in _prepared(world, tmp_path, prepare):
        expected = _undisturbed(case, tmp_path / "whole", action)
        for installation in case.copy(tmp_path / "twice"):
            work = partial(_or_refused, action, installation)
            children = [fork(work, log=tmp_path / f"child-{n}.log") for n in range(2)]
            for child in children:
                assert child.wait() == 0, child.said[-4000:]
            _no_half(installation, expected, "two at once")
            installation.pass_time(_LATER_S)
            installation.refresh()
            assert _index(installation, since=case.now) == expected.index
            assert (installation.failures(), locks_of(installation.database)) == ([], [])
        outcome("two processes at once", name, "converged", rows=rows_in(expected.index))


def _or_refused(action: Action, installation: Installation) -> None:
    """The second of two may find that what it was asked for is done, or is being done; it says so."""
    try:
        action(installation)
    except (SpaceUnavailable, TransientError) as refusal:
        print(refusal)


def _prepared(world: World, tmp_path: Path, prepare: Action) -> Iterator[World]:
    """A world in the state in which the case begins."""
    for installation in world.copy(tmp_path / "prepared"):
        prepare(installation)
        name = installation.database.split("?")[0].rpartition("/")[2]
        yield World(
            server=world.server, github=world.github, project=world.project, home=installation.home, template=name,
            now=installation.now,
        )  # fmt: skip


def _undisturbed(case: World, folder: Path, action: Action) -> Undisturbed:
    for installation in case.copy(folder):
        before = _shown(installation)
        counted = folder / "effects"
        child = fork(_counting(action, installation, counted, None), log=folder / "child.log")
        assert child.wait() == 0, child.said[-4000:]
        after = _shown(installation)
        installation.pass_time(_LATER_S)
        installation.refresh()
        index = _index(installation, since=case.now)
        after |= _shown(installation)
        return Undisturbed(effects=int(counted.read_text()), index=index, before=before, after=after)
    raise AssertionError("unreachable: there is one copy")


def _points(name: str, effects: int) -> list[int]:
    return sorted(random.Random(name).sample(range(1, effects + 1), min(POINTS, effects)))


def _killed(
    case: World, folder: Path, action: Action, point: int, *, again: bool, expected: Undisturbed, settled: bool
) -> None:
    for installation in case.copy(folder):
        child = fork(_counting(action, installation, folder / "effects", point), log=folder / "child.log")
        assert child.wait() in (-signal.SIGKILL, 0), child.said[-4000:]
        where = f"killed before effect {point} of {expected.effects}"
        _no_half(installation, expected, where)
        installation.pass_time(_LATER_S)
        if again:
            action(installation)
        installation.refresh()
        assert _index(installation, since=case.now) == expected.index, where
        assert installation.failures() == []
        assert locks_of(installation.database) == [], where
        if not settled:
            continue
        before = installation.rows()
        installation.refresh()
        changed = {table for table, rows in installation.rows().items() if rows != before[table]}
        assert changed <= {"source_progress"}, f"{where}: the refresh after that wrote {changed}"
    shutil.rmtree(folder)


def _no_half(installation: Installation, expected: Undisturbed, where: str) -> None:
    """Each document is as it was or as it is to be, with all of its chunks."""
    for key, shown in _shown(installation).items():
        assert shown in (expected.before.get(key), expected.after.get(key)), f"{where}: {key} is half written"


def _counting(action: Action, installation: Installation, counted: Path, point: int | None) -> Callable[[], None]:
    def work() -> None:
        effects = Effects(counted, die_before=point)
        action(installation)
        effects.report()

    return work


def _shown(installation: Installation) -> dict[str, Any]:
    return {str(key): value for key, value in installation.shown().items()}


def _index(installation: Installation, *, since: datetime) -> dict[str, list[tuple[Any, ...]]]:
    """All that has to be the same, however often a case that began at `since` was interrupted."""
    found = dict(index_of(installation.database))
    found["documents"] = [(_without_look(row, since, installation.now),) for (row,) in found["documents"]]
    found["progress"] = [(*key, _reached(installation, *key[1:], position)) for *key, position in found["progress"]]
    with psycopg.connect(installation.database) as connection:
        spaces = connection.execute("SELECT space_id, model, status FROM rag.embedding_spaces ORDER BY 1").fetchall()
        found["spaces"] = spaces
        for space_id, *_ in spaces:
            vectors = psycopg.sql.SQL("SELECT text_hash, embedding::text FROM rag.{} ORDER BY 1").format(
                psycopg.sql.Identifier(f"vectors_{space_id}")
            )
            alive = connection.execute("SELECT text_hash FROM rag.chunks").fetchall()
            found[f"vectors_{space_id}"] = [
                row for row in connection.execute(vectors).fetchall() if (row[0],) in set(alive)
            ]
        found["forgotten"] = connection.execute("SELECT count(*) FROM rag.forgotten").fetchall()
    return found


def _without_look(row: dict[str, Any], since: datetime, until: datetime) -> dict[str, Any]:
    """GitHub does not say when a thread was deleted: a tombstone has the time of the look that missed it.

    That is any time within the case, and no other; all else of it has to be the same.
    """
    is_noticed = row["deleted"] and row["source_type"].startswith("github_")
    if not is_noticed or not since <= datetime.fromisoformat(row["source_updated_at"]) <= until:
        return row
    return {**row, "source_updated_at": "within the case", "state_hash": "of which that is a part"}


def _reached(installation: Installation, repository: str, source: str, position: str) -> str:
    """The mirror of GitHub counts what it notices, twice what two notice: the index has to have reached all of it."""
    if source != "github":
        return position
    settings = installation.settings
    (known,) = (known for known in settings.github_repositories if known.name == repository)
    with GitHubMirror(settings, known).open() as mirror:
        assert position == str(mirror.last_seq()), "the index lacks some of what the mirror holds"
    return "all"
