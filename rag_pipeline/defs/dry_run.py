"""Runs with the tag `dry_run`: they say what they would do and cost, and do nothing.

The first step of such a run makes the plan and puts it on record as observations; no step yields anything, so that
Dagster skips all that follow, records no materialization, and calls the run a success. That is why the assets of the
refresh are declared with `output_required=False` (`skippable=True`).
"""

import dagster as dg

from rag_pipeline.defs.failures import stage_errors
from rag_pipeline.defs.metadata import Metadata, table
from rag_pipeline.defs.partitions import days_of
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.refresh.estimate import Estimate, estimate

DRY_RUN_TAGS = ("dry_run", "rag/dry_run")
_YES = ("true", "yes", "1", "on")
_PLANNED = "knowledge_index"
"""The asset that people look at for the plan, whichever step made it."""


def is_dry_run(context: dg.AssetExecutionContext) -> bool:
    """Whether the run shall only say what it would do."""
    return any(context.run.tags.get(tag, "").strip().lower() in _YES for tag in DRY_RUN_TAGS)


def observe_plan(context: dg.AssetExecutionContext, pipeline: Pipeline) -> None:
    """Put the plan of this run on record; made once, whichever of its steps comes first."""
    kept = pipeline.reports.get("plan")
    if isinstance(kept, tuple) and kept[0] == context.run_id:
        return
    days = days_of(context)
    with stage_errors(context), pipeline.stage("plan") as connection:
        found = estimate(
            pipeline.settings, [days], connection=connection, models=pipeline.models, access=pipeline.access,
            lake=pipeline.lake(), now=pipeline.clock(), progress=pipeline.progress(context),
        )  # fmt: skip
    pipeline.reports["plan"] = (context.run_id, found)
    metadata = plan_metadata(found)
    keys = dict.fromkeys([dg.AssetKey(_PLANNED), *sorted(context.selected_asset_keys)])
    for key in keys:
        context.log_event(dg.AssetObservation(asset_key=key, metadata=metadata, partition=days.last.isoformat()))
    stopped = f"; it would be stopped by {', '.join(found.stopped_by)}" if found.stopped_by else ""
    context.log.info(
        f"dry run over {days}: {found.items:,} items, {found.tokens:,} tokens to embed, {found.usd:,.4f} USD{stopped}; "
        "nothing was written"
    )


def plan_metadata(found: Estimate) -> Metadata:
    """An estimate to look at."""
    return {
        "dry_run": dg.MetadataValue.bool(True),
        "days": dg.MetadataValue.text(", ".join(found.days)),
        "items": dg.MetadataValue.int(found.items),
        "tombstones": dg.MetadataValue.int(found.tombstones),
        "documents": dg.MetadataValue.int(found.documents),
        "chunks": dg.MetadataValue.int(found.chunks),
        "texts_to_embed": dg.MetadataValue.int(sum(model.texts for model in found.models)),
        "reused": dg.MetadataValue.int(found.reused),
        "tokens": dg.MetadataValue.int(found.tokens),
        "estimated_cost_usd": dg.MetadataValue.float(round(found.usd, 6)),
        "embedding_requests": dg.MetadataValue.int(sum(model.requests for model in found.models)),
        "github_requests": dg.MetadataValue.int(found.github_requests),
        "estimated_seconds": dg.MetadataValue.float(round(found.seconds, 1)),
        "would_be_stopped": dg.MetadataValue.bool(bool(found.stopped_by)),
        "models": table(
            ("model", "", "texts", "tokens", "USD"),
            [(m.model, m.role, m.texts, m.tokens, "?" if m.usd is None else round(m.usd, 6)) for m in found.models]
            + [(o.model, "for comparison", "", o.tokens, round(o.usd, 6)) for o in found.others],
        ),
        "repositories": table(
            ("tenant", "repository", "tokens", "USD"), [(*row[:3], round(row[3], 6)) for row in found.repositories]
        ),
        "budgets": table(
            ("tenant", "budget", "limit", "left", "needed"),
            [(b.tenant, b.key, b.limit, b.left, b.needed) for b in found.budgets],
        ),
        "notes": dg.MetadataValue.text("\n".join([*found.stopped_by, *found.notes]) or "nothing"),
    }  # fmt: skip
