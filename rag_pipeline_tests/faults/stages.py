"""The stages that fault tests kill or run twice: what goes before each, and a world of sources for them to work on."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final, cast

import dagster as dg

from rag_pipeline.definitions import MAINTAIN_JOB, build_defs
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.database import connected
from rag_pipeline.index.partitioning import partition
from rag_pipeline.index.promotion import drop, promote, rollback
from rag_pipeline.index.spaces import active_space
from rag_pipeline.progress import silent
from rag_pipeline.refresh.spaces import Models, made_space
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.end_to_end.conftest import FIRST_DAY
from rag_pipeline_tests.end_to_end.forgetting import forget_in
from rag_pipeline_tests.end_to_end.installation import Installation, WordEmbedder
from rag_pipeline_tests.end_to_end.test_spaces import try_build
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server import webhooks
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.quota import Quota
from rag_pipeline_tests.github_server.server import GitHubServer

DAYS: Final = ("2024-04-22", "2024-05-03")
GITHUB: Final = ("raw_github_issues", "raw_github_pull_requests")
GIT: Final = ("raw_docs", "raw_code")
_numbers = itertools.count()

Action = Callable[[Installation], object]


class Copied(Installation):
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
    labels: Path
    """Questions with their answers."""
    now: datetime
    """When each case begins: what they come to can then be compared."""

    def installation(self, home: Path, database: str) -> Installation:
        repositories = [
            {"github": "acme/rocket", "name": "rocket"}, {"source": str(self.project.path), "name": "project"},
        ]  # fmt: skip
        made = Copied(home, database, repositories, start_date=FIRST_DAY, now=self.github.forge.now, github=self.github)
        made.others = [WordEmbedder("larger", 32)]
        made.more = {"evaluation": {"labels": [str(self.labels)]}}
        return made

    def copy(self, folder: Path) -> Iterator[Installation]:
        """The state, for one case."""
        # The hour of GitHub's quota begins anew, too.
        self.github.forge.now, self.github.quota = self.now, Quota()
        shutil.copytree(self.home, folder)
        with new_database(self.server, f"stage_{os.getpid()}_{next(_numbers)}", template=self.template) as url:
            yield self.installation(folder, url)


def ask(labels: Path) -> None:
    """Write questions about what no change touches."""
    asked = [("third", "What does page 3 say?", "project:docs/3.md"), ("start", "How is it started?", "project:app.py")]
    lines = (
        json.dumps({"id": id_, "question": question, "relevant": [{"source_id": source_id}]})
        for id_, question, source_id in asked
    )
    labels.write_text("\n".join(lines) + "\n", encoding="utf-8")


def change(forge: Forge, rocket: Repository, project: GitRepository, installation: Installation) -> None:
    """Edit, remove and add something of every source, in ways that are noticed at once, later, or by comparing all."""
    forge.now += timedelta(hours=20)
    installation.now = forge.now
    edited, gone, silent, *_ = rocket.issues()
    said = forge.comment(edited, "Nobody has read this yet.", author="grace")
    forge.delete_issue(gone)
    forge.edit_thread(silent, body="These words came without a trace.", silently=True)
    files = {"docs/1.md": page(1, "as it is now"), "docs/2.md": None, "new.md": page(9, "")}
    project.commit("2024-05-02T20:00", files)
    installation.drop("note.1b.json", json.dumps({"id": "note-1", "content": "The first note says something else."}))
    installation.drop("note.2.json", json.dumps({"id": "note-2", "content": "The second note."}))
    assert installation.github is not None
    delivery = webhooks.issue_comment(installation.github.site, "created", said)
    installation.drop("issue_comment.1.json", json.dumps(delivery.payload))


def page(number: int, words: str) -> str:
    """A page of docs, of several chunks."""
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


def _roll_back(installation: Installation) -> None:
    with connected(installation.database) as connection:
        active = active_space(connection)
        if active is not None and active.space_id == 2:
            rollback(connection)


def _partition(installation: Installation) -> None:
    with connected(installation.database) as connection:
        partition(connection, 2, partitions=3, progress=silent)


def _drop(installation: Installation) -> None:
    with connected(installation.database) as connection:
        drop(connection, 2)


def _evaluate(installation: Installation) -> None:
    assert installation.evaluate().success


def _both(first: Action, second: Action) -> Action:
    return lambda installation: (first(installation), second(installation))


def _refresh(installation: Installation) -> None:
    installation.refresh()


def _nothing(_: Installation) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A stage, and how it is treated."""

    action: Action
    """What is killed, or run twice at once."""
    before: Action = _nothing
    """What goes before."""
    again: bool = False
    """Whether it has to be asked for again once it was killed; else a refresh does the rest."""
    by_two: bool = True
    """Whether two at once are to end as one does; a rollback takes another one back."""


_RAW = (GIT, GITHUB, ("raw_webhook_drops",))
_BUILT = _both(_refresh, _both(_create, _build))
CASES: Final[dict[str, Case]] = {
    "raw_docs, raw_code": Case(action=_stage(*GIT)),
    "raw_github_…": Case(action=_stage(*GITHUB)),
    "raw_webhook_drops": Case(action=_stage("raw_webhook_drops")),
    "documents": Case(before=_after(*_RAW), action=_stage("documents")),
    "chunks": Case(before=_after(*_RAW, ("documents",)), action=_stage("chunks")),
    "embeddings": Case(before=_after(*_RAW, ("documents",), ("chunks",)), action=_stage("embeddings")),
    "knowledge_index": Case(
        before=_after(*_RAW, ("documents",), ("chunks",), ("embeddings",)), action=_stage("knowledge_index")
    ),
    "a whole refresh": Case(action=_refresh),
    "index_maintenance": Case(before=_refresh, action=_maintain, again=True),
    "github_reconciliation": Case(action=lambda i: i.reconcile(confirm=True), again=True),
    "retrieval_evaluation": Case(before=_refresh, action=_evaluate, again=True),
    "spaces create, build": Case(before=_refresh, action=_both(_create, _build), again=True),
    "spaces promote": Case(before=_BUILT, action=_promote, again=True),
    "spaces rollback": Case(before=_both(_BUILT, _promote), action=_roll_back, again=True, by_two=False),
    "spaces partition": Case(before=_BUILT, action=_partition, again=True),
    "spaces drop": Case(before=_BUILT, action=_drop, again=True),
    "forget": Case(before=_refresh, action=lambda i: forget_in(i, "repository", "rocket"), again=True),
}
