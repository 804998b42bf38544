"""Checks of the stages that lie in the lake: source items, documents and chunks."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date

import dagster as dg

from rag_pipeline.defs.checks.results import check_results, check_specs
from rag_pipeline.defs.failures import fail_in_the_end, note_damage, stage_errors
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.index.bookkeeping import overview
from rag_pipeline.index.checked_parts import passed_parts, record_passed
from rag_pipeline.index.database import Connection
from rag_pipeline.model import DayRange
from rag_pipeline.quality import Checked, PartSuite, check_parts
from rag_pipeline.quality.suites import RAW_STAGES, part_suites, raw_volume_rules
from rag_pipeline.quality.volume import check_volume
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.stage import STAGE as DROPS_STAGE
from rag_pipeline.sources.git.stage import STAGES as GIT_STAGES
from rag_pipeline.sources.github.stage import STAGES as GITHUB_STAGES

_ALL_DAYS = DayRange(first=date.min, last=date.max)


def raw_checks(settings: Settings) -> dg.AssetChecksDefinition:
    """Checks of all raw assets, in one step: each step of a run costs Dagster more than most of these checks."""
    suites = part_suites(settings)
    rules = {stage: (*suites[stage].rules, *raw_volume_rules(settings, stage)) for stage in RAW_STAGES}

    @dg.multi_asset_check(
        name="raw_checks", can_subset=True,
        specs=[spec for stage in RAW_STAGES for spec in check_specs(stage, rules[stage])],
        description="Source items as they came: columns, identities, days, and no sudden drop in their number.",
    )  # fmt: skip
    def check(
        context: dg.AssetCheckExecutionContext, pipeline: dg.ResourceParam[Pipeline]
    ) -> Iterator[dg.AssetCheckResult]:
        selected = {key.asset_key.to_user_string() for key in context.selected_asset_check_keys}
        days = days_to_check(context)
        results: list[dg.AssetCheckResult] = []
        with stage_errors(context), pipeline.stage("checks") as connection:
            for stage in (stage for stage in RAW_STAGES if stage in selected):
                afresh = report_of(stage) not in pipeline.reports
                parts = _check(context, pipeline, connection, suites[stage], days, afresh=afresh)
                volume = _check_volume(pipeline, connection, stage, days, afresh=afresh)
                outcomes = [parts.outcome, volume.outcome]
                results += check_results(stage, rules[stage], outcomes, about=_about(days, parts))
        yield from only_selected(context, results)
        fail_in_the_end(context, pipeline)

    return check


def documents_checks(settings: Settings) -> dg.AssetChecksDefinition:
    """Checks of the documents asset."""
    return _stage_checks(part_suites(settings)["documents"], "Cleaned texts: identity, words, encoding, no secrets.")


def chunks_checks(settings: Settings) -> dg.AssetChecksDefinition:
    """Checks of the chunks asset."""
    return _stage_checks(part_suites(settings)["chunks"], "Chunks: bounds, identities, and that nothing was left out.")


def days_to_check(context: dg.AssetCheckExecutionContext) -> DayRange:
    """The days of the run; all there are, when checks are launched without one."""
    tags = context.run.tags
    if "dagster/partition" not in tags and "dagster/asset_partition_range_start" not in tags:
        return _ALL_DAYS
    keys = context.partition_key_range
    return DayRange(first=date.fromisoformat(keys.start), last=date.fromisoformat(keys.end))


def report_of(stage: str) -> str:
    """Under which name a run that made a stage has its report; without it, checks were launched alone."""
    if stage in GIT_STAGES.values():
        return "raw"
    if stage == DROPS_STAGE:
        return "raw_drops"
    return "raw_github" if stage in GITHUB_STAGES.values() else stage


def _stage_checks(suite: PartSuite, description: str) -> dg.AssetChecksDefinition:
    @dg.multi_asset_check(
        name=f"{suite.stage}_checks", can_subset=True, specs=check_specs(suite.stage, suite.rules),
        description=description,
    )  # fmt: skip
    def check(
        context: dg.AssetCheckExecutionContext, pipeline: dg.ResourceParam[Pipeline]
    ) -> Iterator[dg.AssetCheckResult]:
        days, afresh = days_to_check(context), report_of(suite.stage) not in pipeline.reports
        with stage_errors(context), pipeline.stage("checks") as connection:
            checked = _check(context, pipeline, connection, suite, days, afresh=afresh)
        results = check_results(suite.stage, suite.rules, [checked.outcome], about=_about(days, checked))
        yield from only_selected(context, results)
        fail_in_the_end(context, pipeline)

    return check


def _check(
    context: dg.AssetCheckExecutionContext, pipeline: Pipeline, connection: Connection, suite: PartSuite,
    days: DayRange, *, afresh: bool,
) -> Checked:  # fmt: skip
    known = {} if afresh else passed_parts(connection, days, stage=suite.stage)
    checked = check_parts(pipeline.lake(), days, suite, known=known, progress=pipeline.progress(context))
    record_passed(connection, checked.passed, stage=suite.stage, now=pipeline.clock())
    note_damage(pipeline, connection, checked.left_aside, stage=report_of(suite.stage))
    return checked


def _check_volume(pipeline: Pipeline, connection: Connection, stage: str, days: DayRange, *, afresh: bool) -> Checked:
    name = f"{stage}/volume"
    known = {} if afresh else passed_parts(connection, days, stage=name)

    def living(tenant: str, repository: str) -> int:
        held = [o for o in overview(connection) if (o.tenant, o.repository) == (tenant, repository)]
        return sum(source.documents for source in held)

    checked = check_volume(
        pipeline.lake(), stage, days, today=pipeline.clock().date(), settings=pipeline.settings.quality,
        rules=raw_volume_rules(pipeline.settings, stage), known=known, living=living,
    )  # fmt: skip
    record_passed(connection, checked.passed, stage=name, now=pipeline.clock())
    return checked


def _about(days: DayRange, checked: Checked) -> Mapping[str, object]:
    return {
        "days": "all" if days == _ALL_DAYS else days,
        "parts_checked": checked.parts,
        "parts_that_passed_before": checked.unchanged,
    }


def only_selected(
    context: dg.AssetCheckExecutionContext, results: Iterable[dg.AssetCheckResult]
) -> Iterator[dg.AssetCheckResult]:
    """The results that were asked for."""
    wanted = {(key.asset_key, key.name) for key in context.selected_asset_check_keys}
    yield from (result for result in results if (result.asset_key, result.check_name) in wanted)
