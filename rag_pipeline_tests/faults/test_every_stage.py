"""kill -9 at points of every stage, between any two of its effects: the next refresh ends in the undisturbed index.

The points are drawn by chance, the same in each run; with RAG_TEST_LONG all of them are tried.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag_pipeline.documents.redaction import engine
from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.errors import SpaceUnavailable, TransientError
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.end_to_end.conftest import _not_drawn
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.faults.conftest import Record
from rag_pipeline_tests.faults.effects import Effects
from rag_pipeline_tests.faults.forked import fork
from rag_pipeline_tests.faults.site import index_of, locks_of, rows_in
from rag_pipeline_tests.faults.stages import CASES, Action, World, ask, change, page
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.server import GitHubServer

__all__ = ["_not_drawn"]

pytestmark = pytest.mark.faults
POINTS = sys.maxsize if os.environ.get("RAG_TEST_LONG") else 4
"""Of each stage; asked for here, because tests find none of our variables set."""
_LATER_S = 600.0
"""Between a death and the next run: a clock goes on, and more than by what the dead one had looked at it."""


@pytest.fixture(scope="module", autouse=True)
def _no_secrets() -> Iterator[None]:
    """Nobody looks for secrets: a process that did could not be forked any more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_engine", lambda: lambda *_, **__: [])
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
    project.commit("2024-04-23T10:00", {f"docs/{n}.md": page(n, "as it was") for n in range(6)})
    project.commit("2024-04-25T10:00", {"app.py": "def start():\n    return 1\n", "docs/0.md": page(0, "later")})
    with GitHubServer(forge, tokens=["secret"]) as github:
        github.clock = lambda: forge.now
        with new_database(server, "every_stage", template=template) as url:
            made = World(
                server=server, github=github, project=project, home=folder / "home", template="every_stage",
                now=forge.now, labels=folder / "labels.jsonl",
            )  # fmt: skip
            ask(made.labels)
            first = made.installation(made.home, url)
            first.drop("note.1.json", json.dumps({"id": "note-1", "content": "The first note says a word."}))
            first.refresh()
            change(forge, rocket, project, first)
            made.now = forge.now
            # Nobody may be connected to what is copied.
            yield made


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
    stage = CASES[name]
    for case in _prepared(world, tmp_path, stage.before):
        expected = _undisturbed(case, tmp_path / "whole", stage.action)
        points = _points(name, expected.effects)
        for point in points:
            last = point == points[-1]
            folder = tmp_path / f"at-{point}"
            _killed(case, folder, stage.action, point, again=stage.again, expected=expected, settled=last)
        happened = f"converged from {len(points)} of {expected.effects} points"
        outcome("kill -9 before an effect", name, happened, rows=rows_in(expected.index))


@pytest.mark.parametrize("name", [name for name, stage in CASES.items() if stage.by_two])
def test_a_stage_that_two_processes_run_at_once_ends_as_if_one_had(
    name: str, world: World, tmp_path: Path, outcome: Record
) -> None:
    stage = CASES[name]
    for case in _prepared(world, tmp_path, stage.before):
        expected = _undisturbed(case, tmp_path / "whole", stage.action)
        for installation in case.copy(tmp_path / "twice"):
            work = partial(_or_refused, stage.action, installation)
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
    """Who comes second may find that what it was asked for is done, or is being done; it says so."""
    try:
        action(installation)
    except (SpaceUnavailable, TransientError) as refusal:
        print(refusal)


def _prepared(world: World, tmp_path: Path, prepare: Action) -> Iterator[World]:
    """A world in the state in which the case begins."""
    for installation in world.copy(tmp_path / "prepared"):
        prepare(installation)
        name = installation.database.split("?")[0].rpartition("/")[2]
        yield replace(world, home=installation.home, template=name, now=installation.now)


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
            _or_refused(action, installation)
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
        spaces = connection.execute(
            "SELECT space_id, model, status, partitions FROM rag.embedding_spaces ORDER BY 1"
        ).fetchall()
        found["spaces"] = spaces
        for space_id, *_ in spaces:
            vectors = psycopg.sql.SQL("SELECT text_hash, embedding::text FROM rag.{} ORDER BY 1").format(
                psycopg.sql.Identifier(f"vectors_{space_id}")
            )
            alive = connection.execute("SELECT text_hash FROM rag.chunks").fetchall()
            found[f"vectors_{space_id}"] = [
                row for row in connection.execute(vectors).fetchall() if (row[0],) in set(alive)
            ]
        # Who was killed after the last of its work does it twice, and comes to the same.
        found["evaluations"] = connection.execute(
            "SELECT DISTINCT dataset, space_id, queries, metrics::text FROM rag.evaluations ORDER BY 1, 2, 4"
        ).fetchall()
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
