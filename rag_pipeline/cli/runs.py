"""Runs of the refresh job in this process, recorded in Dagster's storage like any other, and their summary."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from rag_pipeline.cli.complaints import told_in_words
from rag_pipeline.cli.console import out, rows_table
from rag_pipeline.cli.dagster_storage import opened_instance, ready_storage
from rag_pipeline.cli.processes import process_tags
from rag_pipeline.embedded import database_url
from rag_pipeline.errors import CheckFailed, ConfigError, RagPipelineError, SourceNotFound, TooManyFailures
from rag_pipeline.index.database import connected, ensure_database, sibling_url
from rag_pipeline.index.migrations import migrate
from rag_pipeline.lake.store import Lake
from rag_pipeline.loading import load_in_background, loaded_for_good
from rag_pipeline.model import DayRange
from rag_pipeline.progress import Progress, silent
from rag_pipeline.quality import judging
from rag_pipeline.refresh import Models, Plan, plan, serving_space
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.stage import make_inbox
from rag_pipeline.sources.git.stage import is_first_fetch
from rag_pipeline.sources.github.client import QUOTA_REACHED
from rag_pipeline.sources.github.stage import Access
from rag_pipeline.sources.kinds import kinds, stage_of

if TYPE_CHECKING:
    import dagster as dg

    from rag_pipeline.defs.resources import Pipeline
    from rag_pipeline.documents.stage import DocumentsReport
    from rag_pipeline.embedding.stage import EmbeddingsReport
    from rag_pipeline.index.stage import IndexReport
    from rag_pipeline.lake.derive import DeriveReport
    from rag_pipeline.sources.drops.stage import DropsReport
    from rag_pipeline.sources.git.stage import RawReport
    from rag_pipeline.sources.github.stage import GitHubReport
    from rag_pipeline.sources.kinds.stage import KindReport

_OF_KINDS = tuple(stage_of(kind) for kind in kinds())
STAGES = (
    "raw", "raw_github", "raw_drops", *_OF_KINDS, "documents", "chunks", "embeddings", "knowledge_index", "checks",
)  # fmt: skip
_SHOWN_PAGES = 3


@dataclass(slots=True, kw_only=True)
class Summary:
    """The totals of one or more runs."""

    days: list[str] = field(default_factory=list)
    items: int = 0
    tombstones: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """By reason; a plain dict, because `dataclasses.asdict` cannot copy a Counter (Python 3.11)."""
    documents: int = 0
    guessed_encodings: int = 0
    """Documents among them whose encoding had to be guessed, with little to go by."""
    chunks: int = 0
    embedded: int = 0
    reused: int = 0
    restored: int = 0
    rows_written: int = 0
    quarantined: int = 0
    drops: int = 0
    """Files taken from the inbox."""
    restored_parts: list[str] = field(default_factory=list)
    """Parts of drops that were damaged or gone, and were made again from the accepted files."""
    rejected: list[str] = field(default_factory=list)
    """Drops that could not be taken, and why."""
    broken_front_matter: list[str] = field(default_factory=list)
    """Pages that were indexed without their front matter, because it cannot be read, and why."""
    requests: int = 0
    """To GitHub."""
    embedding_spaces: list[str] = field(default_factory=list)
    """What there is to do about spaces that are being built."""
    chunks_without_vector: int = 0
    """Whose texts the embedding model cannot read."""
    without_vector: str = ""
    """What there is to do about them."""
    unreadable: list[str] = field(default_factory=list)
    """Why a repository could not be read, for each."""
    left_out: list[str] = field(default_factory=list)
    """Which sources were stopped and which parts of the lake were left aside, and why."""
    left: list[str] = field(default_factory=list)
    """What a reading that the quota ended has left to the next run, and until when the quota is used up."""
    seconds: dict[str, float] = field(default_factory=dict)
    model_seconds: float = 0.0
    waited_seconds: float = 0.0
    """For GitHub, in the stages or before them."""
    planning_seconds: float = 0.0
    """Before the runs: the database, and reading the sources to find the days."""
    total_seconds: float = 0.0


def prepare(settings: Settings) -> str:
    """A running, migrated database; its address. Dagster's storage beside it is whole, and there is an inbox."""
    url = database_url(settings)
    make_inbox(settings)
    migrate(url)
    if settings.database_url and os.environ.get("DAGSTER_POSTGRES_URL") == sibling_url(url, database="dagster"):
        ensure_database(url, database="dagster")
    with loaded_for_good():  # most of it is loading Dagster
        ready_storage(settings.pools)
    return url


def plan_refresh(settings: Settings, url: str, *, watch: Progress = silent) -> Plan:
    """The days that the index has not seen."""
    from rag_pipeline.defs import plots
    from rag_pipeline.embedding import make_embedder

    if is_first_fetch(settings):
        # As `raw_git` does where nobody has planned: there is a wait for git now, and much to judge and to draw later.
        load_in_background(judging.ready, plots.load)
    models = Models(settings=settings.embedding, environ=os.environ, make=make_embedder)
    with connected(url) as connection:
        space = serving_space(connection, models)
        now = datetime.now(UTC)
        lake = Lake(settings.lake_url)
        access = Access(environ=os.environ, clock=lambda: datetime.now(UTC), progress=watch)
        return plan(settings, connection=connection, space=space, access=access, lake=lake, now=now)


def run_days(
    settings: Settings, ranges: Sequence[DayRange], *, select: str, watch: Progress, url: str,
    planned: Plan | None = None, began: float | None = None,
) -> Summary:  # fmt: skip
    """Run the job over each range, one after the other; `planned`: the sources were read just now, to find the ranges.

    `url` is what `prepare` gave; `began` is when the command began, by `time.perf_counter`.

    A run that stopped a source, or left a part of the lake aside, is among `left_out`, and the others follow.

    Raises:
        RagPipelineError: a run failed; the error is the one that made it fail.
    """
    import time

    with loaded_for_good():
        from rag_pipeline.definitions import REFRESH_JOB, build_defs
        from rag_pipeline.defs.failures import left_out_of
        from rag_pipeline.defs.resources import Pipeline
    summary = Summary()
    started = time.perf_counter()
    with opened_instance() as instance:
        for number, days in enumerate(ranges):
            pipeline = Pipeline(
                settings=settings, watch=watch, url=url, github_was_asked=planned is not None,
                github_unread=planned.github_unread if planned else (),
                # What is fetched for the first run is old when the second one begins.
                git_read=planned.git_read if planned and not number else frozenset(),
            )  # fmt: skip
            job = build_defs(settings, pipeline=pipeline).resolve_job_def(REFRESH_JOB)
            selection = _selection(select, job)
            result = job.execute_in_process(
                instance=instance, raise_on_error=False, asset_selection=selection,
                tags=_tags(days) | process_tags(),
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            )  # fmt: skip
            _add(summary, pipeline, days)
            if not result.success:
                reason = reason_of(result)
                if not pipeline.left_out or str(reason) != left_out_of(pipeline):
                    raise reason
                summary.left_out += pipeline.left_out
    began = started if began is None else began
    summary.planning_seconds = started - began
    summary.total_seconds = time.perf_counter() - began
    return summary


def print_summary(summary: Summary) -> None:
    """What was done, in a few lines."""
    rows = [
        ("days", ", ".join(summary.days)),
        ("items", f"{summary.items:,} ({summary.tombstones:,} tombstones)"),
        ("skipped", ", ".join(f"{n:,} {reason}" for reason, n in sorted(summary.skipped.items())) or "nothing"),
        *([("drops", f"{summary.drops:,} taken, {len(summary.rejected):,} rejected")] if summary.drops else []),
        *([("GitHub", f"{summary.requests:,} requests")] if summary.requests else []),
        ("documents", f"{summary.documents:,}"),
        *([("guessed encodings", f"{summary.guessed_encodings:,}")] if summary.guessed_encodings else []),
        ("chunks", f"{summary.chunks:,}"),
        ("embedded", f"{summary.embedded:,}"),
        (
            "reused",
            f"{summary.reused:,}" + (f" ({summary.restored:,} restored from the lake)" if summary.restored else ""),
        ),
        ("rows written", f"{summary.rows_written:,}"),
    ]
    if summary.restored_parts:
        rows.append(("restored from inbox/accepted", ", ".join(summary.restored_parts)))
    if pages := summary.broken_front_matter:
        more = f"; and {len(pages) - _SHOWN_PAGES:,} more" if len(pages) > _SHOWN_PAGES else ""
        rows.append(("broken front matter", f"{len(pages):,}: {'; '.join(pages[:_SHOWN_PAGES])}{more}"))
    if summary.quarantined:
        rows.append(("quarantined", f"{summary.quarantined:,} (see `rag-pipeline status`)"))
    if summary.chunks_without_vector:
        rows.append(("without a vector", f"{summary.chunks_without_vector:,} chunks: {summary.without_vector}"))
    rows += [("embedding spaces", note) for note in summary.embedding_spaces]
    rows.append(("seconds", "  ".join(f"{stage} {s:.2f}" for stage, s in summary.seconds.items())))
    own = sum(summary.seconds.values())
    rest = summary.total_seconds - summary.planning_seconds - own
    shares = (
        f"before the runs {summary.planning_seconds:.2f}, stages {own:.2f}, Dagster and the rest {rest:.2f}; in all "
        f"{summary.total_seconds:.2f}, of which the model {summary.model_seconds:.2f} and waiting for GitHub "
        f"{summary.waited_seconds:.2f}"
    )
    rows.append(("", shares))
    rows += [("left to the next run", reason) for reason in dict.fromkeys(summary.left)]
    out.print(rows_table("", ("summary", ""), rows))


def require_all_read(summary: Summary) -> None:
    """After everything else is done and shown: a source that was stopped or could not be read is an error.

    Raises:
        TooManyFailures: names the sources that were stopped, and the parts of the lake that were left aside.
        SourceNotFound: names the first that could not be read, and how many there are.
    """
    if told := list(dict.fromkeys(summary.left_out)):
        told += [reason for reason in dict.fromkeys(summary.unreadable) if not any(reason in line for line in told)]
        raise TooManyFailures(" · ".join(told))
    reasons = list(dict.fromkeys(summary.unreadable))
    if reasons:
        more = f" (and {len(reasons) - 1} more, see `rag-pipeline status`)" if len(reasons) > 1 else ""
        raise SourceNotFound(f"{reasons[0]}{more}; the other repositories are up to date")


def _tags(days: DayRange) -> dict[str, str]:
    if days.first == days.last:
        return {"dagster/partition": days.first.isoformat()}
    return {
        "dagster/asset_partition_range_start": days.first.isoformat(),
        "dagster/asset_partition_range_end": days.last.isoformat(),
    }


def _selection(select: str, job: dg.JobDefinition) -> list[dg.AssetKey] | None:
    if not select:
        return None
    keys = {key.to_user_string(): key for key in job.asset_layer.executable_asset_keys}
    names = [name.strip() for name in select.split(",") if name.strip()]
    unknown = [name for name in names if name not in keys]
    if unknown:
        raise ConfigError(
            f"--select: there is no asset {unknown[0]!r} in this job: choose from {', '.join(sorted(keys))}"
        )
    return [keys[name] for name in names]


def _add(summary: Summary, pipeline: Pipeline, days: DayRange) -> None:
    reports = pipeline.reports
    summary.days.append(str(days))
    for stage in STAGES:
        if stage in pipeline.seconds:
            summary.seconds[stage] = summary.seconds.get(stage, 0.0) + pipeline.seconds[stage]
    if "raw" in reports:
        _add_raw(summary, cast("RawReport", reports["raw"]))
    if "raw_github" in reports:
        _add_threads(summary, cast("GitHubReport", reports["raw_github"]))
    if "raw_drops" in reports:
        _add_drops(summary, cast("DropsReport", reports["raw_drops"]))
    for stage in _OF_KINDS:
        if stage in reports:
            _add_listed(summary, cast("KindReport", reports[stage]))
    _add_derived(summary, reports)
    if "embeddings" in reports:
        embeddings = cast("EmbeddingsReport", reports["embeddings"])
        summary.embedded += embeddings.embedded
        summary.reused += embeddings.reused
        summary.restored += embeddings.restored
        summary.model_seconds += embeddings.model_seconds
    if "knowledge_index" in reports:
        index = cast("IndexReport", reports["knowledge_index"])
        summary.rows_written += index.written.rows
        summary.quarantined += len(index.failures)
        summary.embedding_spaces = cast("list[str]", reports["embedding_spaces"])
        summary.chunks_without_vector += index.unreadable
        summary.without_vector = cast("str", reports["without_vector"]) or summary.without_vector


def _add_derived(summary: Summary, reports: Mapping[str, object]) -> None:
    for stage in ("documents", "chunks"):
        if stage in reports:
            report = cast("DeriveReport", reports[stage])
            setattr(summary, stage, getattr(summary, stage) + report.rows)
            summary.quarantined += len(report.failures)
    if "documents" in reports:
        documents = cast("DocumentsReport", reports["documents"])
        summary.guessed_encodings += documents.guessed_encodings
        summary.broken_front_matter += [f"{path} ({problem})" for path, problem in documents.broken_front_matter]


def _add_threads(summary: Summary, report: GitHubReport) -> None:
    unread = [f"{f.repository}: {f.reason}" for f in report.failures if f.source_type == "repository"]
    # A run that ends at the quota ends well.
    summary.left += [reason for reason in unread if QUOTA_REACHED in reason]
    summary.unreadable += [
        failure.reason
        for failure in report.failures
        if failure.source_type == "repository" and QUOTA_REACHED not in failure.reason
    ]
    summary.quarantined += sum(f.source_type != "repository" for f in report.failures)
    summary.items += report.items.total() + report.tombstones.total()
    summary.tombstones += report.tombstones.total()
    for found in report.repositories:
        # A reading for the plan serves all runs that it planned.
        if found.usage and (found.asked or len(summary.days) == 1):
            summary.requests += found.usage.requests
            summary.waited_seconds += found.usage.waited_s


def _add_listed(summary: Summary, report: KindReport) -> None:
    summary.unreadable += [f.reason for f in report.failures if f.source_type == "repository"]
    summary.quarantined += sum(f.source_type != "repository" for f in report.failures)
    summary.items += report.items.total() + report.tombstones.total()
    summary.tombstones += report.tombstones.total()


def _add_drops(summary: Summary, report: DropsReport) -> None:
    summary.items += report.items.total() + report.tombstones.total()
    summary.tombstones += report.tombstones.total()
    summary.drops += report.taken
    summary.restored_parts += [f"{part.tenant}/{part.repository} {part.day}" for part in report.restored]
    summary.rejected += [f"{name}: {reason}" for name, reason in report.rejected]


def _add_raw(summary: Summary, report: RawReport) -> None:
    summary.unreadable += [failure.reason for failure in report.failures]
    for found in report.repositories:
        summary.items += sum(found.git.items.values()) + sum(found.git.tombstones.values())
        summary.tombstones += sum(found.git.tombstones.values())
        summary.skipped = dict(Counter(summary.skipped) + found.git.skipped)


def reason_of(result: dg.ExecuteInProcessResult) -> BaseException:
    """The error of ours behind a failed run, or Dagster's own words."""
    import dagster as dg

    blocked = [
        evaluation.description
        for evaluation in result.get_asset_check_evaluations()
        if evaluation.blocking and not evaluation.passed and evaluation.severity.value == "ERROR"
    ]
    if blocked:
        return CheckFailed(" · ".join(str(description) for description in blocked))
    failures = [event for event in result.all_events if event.is_step_failure]
    if failures:
        data = failures[0].step_failure_data
        if data.user_failure_data and data.user_failure_data.description:
            return RagPipelineError(data.user_failure_data.description)
        if data.error:
            cause = data.error.cause or data.error
            if cause.cls_name == dg.DagsterExecutionInterruptedError.__name__:
                return KeyboardInterrupt()  # somebody asked it to stop
            return _in_words(failures[0].step_key or "a step", cause.message, cause.to_string())
    for event in result.all_events:
        if event.is_job_failure and event.job_failure_data.error:
            error = event.job_failure_data.error
            return _in_words("the run failed", error.message, error.to_string())
    return RagPipelineError("the run failed; look at it in the Dagster UI (`rag-pipeline dev`)")


def _in_words(where: str, message: str, traceback: str) -> RagPipelineError:
    """In our words what they can say; anything else as it came, with where and its traceback."""
    return told_in_words(message) or RagPipelineError(f"{where}: {message.strip()}\n{traceback}")
