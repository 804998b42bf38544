"""The comparison of GitHub with the index: deletions, transfers, and edits that moved no time."""

import dataclasses
from typing import Any

import dagster as dg
from pydantic import Field

from rag_pipeline.defs.failures import fail_in_the_end, quarantine, stage_errors
from rag_pipeline.defs.metadata import Metadata, Result, table
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.errors import ConfigError, QuotaExhausted, RagPipelineError
from rag_pipeline.index.bookkeeping import living_ids
from rag_pipeline.index.database import Connection
from rag_pipeline.model import DayRange, Failure
from rag_pipeline.refresh.stages import IndexedReport, index_threads
from rag_pipeline.settings import Repository
from rag_pipeline.sources.github.client import GitHubClient, Usage
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.reconcile import ReconcileReport, reconcile
from rag_pipeline.sources.github.stage import STAGES, client_of

RECONCILIATION = "github_reconciliation"
COMPLETE = "complete"
"""The outcome for a repository that was compared to the end; any other says why it was not."""
_COUNTS = (
    "issues_and_pull_requests", "comments", "review_comments", "threads_removed", "comments_removed",
    "threads_changed", "threads_left", "embedded", "rows_written", "requests",
)  # fmt: skip
_NOTHING: dict[str, Any] = {"repository": "", **dict.fromkeys(_COUNTS, 0), "withheld": "", "quota_left": None}


class ReconciliationConfig(dg.Config):
    """What may be removed."""

    confirm_removals: bool = Field(
        default=False,
        description=(
            "Remove even more than github.max_removed_items and github.max_removed_share allow. Each thread and "
            "comment is still asked for by itself before it is removed."
        ),
    )
    repositories: list[str] = Field(default=[], description="Only these repositories, by name; empty: all.")


def reconciliation_asset() -> dg.AssetsDefinition:
    """`github_reconciliation`: unpartitioned, for a weekly schedule or by hand."""

    @dg.asset(
        name=RECONCILIATION, group_name="maintenance", kinds={"github", "postgres"}, owners=["team:knowledge"],
        tags={"stage": "reconciliation", "source": "github"}, code_version="1", pool="github",
        description=(
            "Lists everything that exists on GitHub and removes from the index what was deleted, transferred or made "
            "a discussion; also finds edits that moved no time. A listing that lacks more than 10 items and more than "
            "10 % is withheld and reported: look at it, then launch this asset with confirm_removals."
        ),
    )  # fmt: skip
    def github_reconciliation(
        context: dg.AssetExecutionContext, config: ReconciliationConfig, pipeline: dg.ResourceParam[Pipeline]
    ) -> Result:
        rows: list[dict[str, Any]] = []
        failures: list[Failure] = []
        with stage_errors(context), pipeline.stage("reconciliation") as connection:
            chosen = _chosen(pipeline, config.repositories)
            for repository in chosen:
                try:
                    row, found = _reconcile(context, pipeline, repository, confirmed=config.confirm_removals)
                    rows.append(row)
                    failures += found
                except RagPipelineError as error:
                    # A comparison that the quota ends before it began ends well, as one that it ends later does.
                    if len(chosen) == 1 and not isinstance(error, QuotaExhausted):
                        raise
                    rows.append(_NOTHING | {"repository": repository.name, "outcome": str(error)})
                    failures.append(_failure(pipeline, repository, repository.name, str(error)))
            days = DayRange(first=pipeline.settings.first_day, last=pipeline.clock().date())
            failed = quarantine(pipeline, connection, failures, stage="reconciliation", days=days, items={})
        for failure in failures:
            context.log.warning(f"{failure.source_id}: {failure.reason}")
        pipeline.reports["reconciliation"] = rows
        fail_in_the_end(context, pipeline)
        return dg.MaterializeResult(metadata=_metadata(rows) | failed)

    return github_reconciliation


def _chosen(pipeline: Pipeline, names: list[str]) -> list[Repository]:
    repositories = list(pipeline.settings.github_repositories)
    if unknown := set(names) - {repository.name for repository in repositories}:
        raise ConfigError(
            f"there is no repository {min(unknown)!r} with `github` set: choose from "
            f"{', '.join(sorted(repository.name for repository in repositories)) or 'none'}"
        )
    return [repository for repository in repositories if not names or repository.name in names]


def _reconcile(
    context: dg.AssetExecutionContext, pipeline: Pipeline, repository: Repository, *, confirmed: bool
) -> tuple[dict[str, Any], list[Failure]]:
    mirror = GitHubMirror(pipeline.settings, repository)
    progress = pipeline.progress(context)
    access = dataclasses.replace(pipeline.access, progress=progress)
    with pipeline.connection() as connection, client_of(pipeline.settings, repository, access) as client:
        report = reconcile(
            mirror, client, limits=pipeline.settings.github, indexed=_indexed(mirror, client, connection),
            confirmed=confirmed, now=pipeline.clock(),
        )  # fmt: skip
        indexed = index_threads(
            pipeline.settings, pipeline.lake(), repository, connection=connection, models=pipeline.models,
            account=pipeline.account(context.run_id), now=pipeline.clock(), progress=progress,
        )  # fmt: skip
    for problem in indexed.problems:
        context.log.warning(problem)
    return _row(repository, report, client.usage, indexed), _failures(pipeline, repository, report)


def _indexed(mirror: GitHubMirror, client: GitHubClient, connection: Connection) -> list[tuple[str, int]]:
    """(kind, number) of the repository's threads that the index shows."""
    if not mirror.exists():
        # It may have been lost: what the index holds is found by the repository's number.
        with mirror.locked():
            mirror.recognise(client)
    with mirror.open() as store:
        prefix = mirror.source_id(mirror.identity(store), 0).removesuffix("0")
    found = living_ids(connection, tenant=mirror.repository.tenant, source_types=list(STAGES), prefix=prefix)
    return [
        (source_type.removeprefix("github_"), int(number))
        for source_type, source_id in found
        if (number := source_id.removeprefix(prefix)).isdigit()
    ]


def _failures(pipeline: Pipeline, repository: Repository, report: ReconcileReport) -> list[Failure]:
    found = [
        _failure(
            pipeline, repository, f"{repository.name} {withheld.kind}",
            f"removal withheld: {withheld}. If that is right, launch {RECONCILIATION} with confirm_removals: true",
        )
        for withheld in report.withheld
    ]  # fmt: skip
    if report.fetched.stopped:
        found.append(_failure(pipeline, repository, repository.name, f"not finished: {report.fetched.stopped}"))
    return found


def _failure(pipeline: Pipeline, repository: Repository, source_id: str, reason: str) -> Failure:
    now = pipeline.clock()
    return Failure(
        tenant=repository.tenant, source_type="repository", source_id=source_id, stage="reconciliation",
        repository=repository.name, day=now.date(), source_updated_at=now, reason=reason,
    )  # fmt: skip


def _row(repository: Repository, report: ReconcileReport, usage: Usage, indexed: IndexedReport) -> dict[str, Any]:
    return {
        "repository": repository.name,
        "issues_and_pull_requests": report.listed.get("issue", 0),
        "comments": report.listed.get("comment", 0),
        "review_comments": report.listed.get("review_comment", 0),
        "threads_removed": len(report.removed_threads),
        "comments_removed": report.removed_comments,
        "threads_changed": report.fetched.settled,
        "withheld": "; ".join(map(str, report.withheld)),
        "threads_left": report.fetched.waiting,
        "embedded": indexed.embedded,
        "rows_written": indexed.written.rows,
        "requests": usage.requests,
        "quota_left": usage.remaining,
        "outcome": report.fetched.stopped or COMPLETE,
    }


def _metadata(rows: list[dict[str, Any]]) -> Metadata:
    metadata = {name: dg.MetadataValue.int(sum(row[name] for row in rows)) for name in _COUNTS}
    columns = ("repository", "threads_removed", "comments_removed", "threads_changed", "withheld", "outcome")
    return {
        **metadata,
        "withheld": dg.MetadataValue.text("; ".join(row["withheld"] for row in rows if row["withheld"]) or "nothing"),
        "repositories": table(
            [name.replace("_", " ") for name in columns], [[row[name] for name in columns] for row in rows]
        ),
    }
