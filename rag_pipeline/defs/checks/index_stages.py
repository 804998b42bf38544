"""Checks of the stages that lie in the database: embeddings and the knowledge index."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta

import dagster as dg

from rag_pipeline.defs.checks.lake_stages import days_to_check, only_selected
from rag_pipeline.defs.checks.results import check_results, check_specs
from rag_pipeline.defs.failures import fail_in_the_end, note_damage, stage_errors
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.embedding.stage import EmbeddingsReport
from rag_pipeline.index.checked_parts import forget_passed, last_passed, passed_parts, record_passed
from rag_pipeline.index.inspection import size_by_segments
from rag_pipeline.index.stage import IndexReport
from rag_pipeline.lake.store import Part
from rag_pipeline.quality import Outcome, Rule, check_parts
from rag_pipeline.quality.embeddings import check_reuse, embeddings_suite
from rag_pipeline.quality.knowledge_index import Inspection, expectations_fingerprint, inspect_index, judge_index
from rag_pipeline.quality.suites import rules_by_stage
from rag_pipeline.refresh import serving_space
from rag_pipeline.settings import Settings

_INDEX = "knowledge_index"
_WHOLE = Part(tenant="", repository="", day=date.min)
"""Under which the whole index stands among the parts that passed."""
_NOTHING = Outcome(findings=(), rows=0, seconds=0.0)


def embeddings_checks(settings: Settings) -> dg.AssetChecksDefinition:
    """Checks of the embeddings asset: the lake's vectors of the space that documents wait for."""
    rules = rules_by_stage(settings)["embeddings"]

    @dg.multi_asset_check(
        name="embeddings_checks", can_subset=True, specs=check_specs("embeddings", rules),
        description="Vectors: one for each text, of the right length, telling texts apart.",
    )  # fmt: skip
    def check(
        context: dg.AssetCheckExecutionContext, pipeline: dg.ResourceParam[Pipeline]
    ) -> Iterator[dg.AssetCheckResult]:
        days, report = days_to_check(context), pipeline.reports.get("embeddings")
        outcomes = [_NOTHING]
        about: dict[str, object] = {}
        with stage_errors(context), pipeline.stage("checks") as connection:
            space = serving_space(connection, pipeline.models)
            if space is not None:
                suite = embeddings_suite(space, rules, pipeline.settings.quality.embeddings)
                known = {} if report is None else passed_parts(connection, days, stage=suite.stage)
                checked = check_parts(pipeline.lake(), days, suite, known=known, progress=pipeline.progress(context))
                record_passed(connection, checked.passed, stage=suite.stage, now=pipeline.clock())
                note_damage(pipeline, connection, checked.left_aside, stage="embeddings")
                outcomes.append(checked.outcome)
                about = {"parts_checked": checked.parts, "parts_that_passed_before": checked.unchanged}
        if isinstance(report, EmbeddingsReport):
            outcomes.append(check_reuse(report, rules))
            about |= {"embedded": report.embedded, "reused": report.reused}
        yield from only_selected(context, check_results("embeddings", rules, outcomes, about=about))
        fail_in_the_end(context, pipeline)

    return check


def knowledge_index_checks(settings: Settings) -> dg.AssetChecksDefinition:
    """Checks of the whole index, after a run that wrote to it, and at least once a day."""
    rules = rules_by_stage(settings)[_INDEX]

    @dg.multi_asset_check(
        name="knowledge_index_checks", can_subset=True, specs=check_specs(_INDEX, rules),
        description=(
            "The whole index: it agrees with the lake, holds no orphans, finds every chunk by words and by meaning, "
            "and shows nobody what is another's. Of a large index, more often than once a day, only what a run wrote."
        ),
    )  # fmt: skip
    def check(
        context: dg.AssetCheckExecutionContext, pipeline: dg.ResourceParam[Pipeline]
    ) -> Iterator[dg.AssetCheckResult]:
        outcomes, about = [_NOTHING], dict[str, object]()
        with stage_errors(context), pipeline.stage("checks"):
            passed, wrote = _passed_at(pipeline), _wrote(pipeline)
            if passed is None or wrote:
                inspection, outcome = _inspect(context, pipeline, rules, whole=passed is None or _is_small(pipeline))
                outcomes.append(outcome)
                about |= _looked_at(inspection)
            if passed is not None and not (wrote and inspection.whole):
                about["looked_at_whole"] = f"{passed:%Y-%m-%d %H:%M} UTC"
        yield from only_selected(context, check_results(_INDEX, rules, outcomes, about=about))
        fail_in_the_end(context, pipeline)

    return check


def _wrote(pipeline: Pipeline) -> bool:
    """Whether the run wrote to the index."""
    report = pipeline.reports.get(_INDEX)
    return not isinstance(report, IndexReport) or bool(report.written.rows or report.segments_merged)


def _passed_at(pipeline: Pipeline) -> datetime | None:
    """When the whole index passed, not too long ago and under the same expectations; None: it must be looked at."""
    report = pipeline.reports.get(_INDEX)
    if not isinstance(report, IndexReport):
        return None  # checks were launched alone
    if report.postings_rebuilt or report.graph_built:
        return None
    with pipeline.connection() as connection:
        passed = last_passed(connection, _WHOLE, stage=_INDEX)
        space = serving_space(connection, pipeline.models)
    longest = timedelta(hours=pipeline.settings.quality.knowledge_index.max_age_hours)
    if passed is None or passed[0] != expectations_fingerprint(pipeline.settings, space):
        return None
    return passed[1] if pipeline.clock() - passed[1] < longest else None


def _is_small(pipeline: Pipeline) -> bool:
    """Whether to look at all of it costs so little that every run that wrote does."""
    with pipeline.connection() as connection:
        return size_by_segments(connection) <= pipeline.settings.quality.knowledge_index.whole_up_to_chunks


def _inspect(
    context: dg.AssetCheckExecutionContext, pipeline: Pipeline, rules: Sequence[Rule], *, whole: bool
) -> tuple[Inspection, Outcome]:
    now = pipeline.clock()
    with pipeline.connection() as connection:
        space = serving_space(connection, pipeline.models)
        inspection = inspect_index(
            connection, pipeline.lake(), days_to_check(context), space, settings=pipeline.settings, now=now, whole=whole
        )
        if inspection.comparison is not None:
            note_damage(pipeline, connection, inspection.comparison.left_aside, stage=_INDEX)
        outcome = judge_index(inspection, rules)
        if any(finding.blocks for finding in outcome.findings):
            forget_passed(connection, _WHOLE, stage=_INDEX)
        elif whole:
            fingerprint = expectations_fingerprint(pipeline.settings, space)
            record_passed(connection, {_WHOLE: fingerprint}, stage=_INDEX, now=now)
    return inspection, outcome


def _looked_at(inspection: Inspection) -> Mapping[str, object]:
    about: dict[str, object] = {"seconds_of_looking": round(inspection.seconds, 2)}
    if sizes := inspection.sizes:
        about |= {
            "documents": sizes.documents, "tombstones": sizes.tombstones, "chunks": sizes.chunks,
            "vectors": sizes.vectors, "segments": sizes.segments,
        }  # fmt: skip
    if lake := inspection.comparison:
        about |= {
            "lake_parts": lake.parts, "lake_documents": lake.documents, "lake_tombstones": lake.tombstones,
            "lake_chunks": lake.chunks, "newer_in_index": lake.superseded, "quarantined": lake.quarantined,
        }  # fmt: skip
    if inspection.recall and inspection.recall.recall is not None:
        about |= {"recall_at_10": round(inspection.recall.recall, 4), "recall_questions": inspection.recall.questions}
    return about | ({"not_looked_at": "; ".join(inspection.notes)} if inspection.notes else {})
