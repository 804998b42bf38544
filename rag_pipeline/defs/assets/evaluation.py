"""The retrieval evaluation: how well the index answers labelled questions, and what changed since the time before."""

from collections.abc import Sequence
from itertools import pairwise

import dagster as dg
from pydantic import Field

from rag_pipeline.defs.failures import stage_errors
from rag_pipeline.defs.metadata import Metadata, Result, table
from rag_pipeline.defs.plots import lines_over_time
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.compare import ablation
from rag_pipeline.evaluation.indexed import Outcome, evaluate_index, labels_to_ask
from rag_pipeline.evaluation.measures import HEADLINE
from rag_pipeline.evaluation.remembering import open_search
from rag_pipeline.index.spaces import active_space
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.settings import Settings

RETRIEVAL_EVALUATION = "retrieval_evaluation"
_SHOWN = 30  # questions that got worse, and labelled documents that are missing


def retrieval_evaluation_asset(settings: Settings) -> dg.AssetsDefinition:
    """`retrieval_evaluation`: unpartitioned, by hand, on a schedule, or after a change of settings."""

    class RetrievalEvaluationConfig(dg.Config):
        """Whose index is evaluated; the labels are those of the settings."""

        tenant: str = Field(default=settings.tenant, description="Whose knowledge the questions are asked of.")

    @dg.asset(
        name=RETRIEVAL_EVALUATION, deps=["knowledge_index"], group_name="serving", kinds={"postgres"},
        owners=["team:knowledge"], tags={"stage": "evaluation"}, code_version="1",
        description=(
            "Asks the index labelled questions and measures the answers: precision, recall, MRR and nDCG of the "
            "lexical leg, the vector leg, both fused, and reranked. Shows what each leg adds, how the figures went "
            "over time, and which questions are answered worse than before. The labels are those that `[evaluation]` "
            "names, else closed issues whose pull requests the index holds."
        ),
    )  # fmt: skip
    def retrieval_evaluation(
        context: dg.AssetExecutionContext, config: RetrievalEvaluationConfig, pipeline: dg.ResourceParam[Pipeline]
    ) -> Result:
        with stage_errors(context), pipeline.stage("evaluation"):
            space, outcomes = _evaluate(context, pipeline, tenant=config.tenant)
        for outcome in outcomes:
            for fall in outcome.falls:
                context.log.warning(f"{outcome.labels.name}: {fall}")
        pipeline.reports["evaluation"] = outcomes
        return dg.MaterializeResult(metadata=_metadata(space, outcomes))

    return retrieval_evaluation


def _evaluate(
    context: dg.AssetExecutionContext, pipeline: Pipeline, *, tenant: str
) -> tuple[EmbeddingSpace, list[Outcome]]:
    settings = pipeline.settings
    with pipeline.connection() as connection:
        space = active_space(connection)
        if space is None:
            raise ConfigError("nothing is indexed yet: materialize knowledge_index first")
        sets = labels_to_ask(connection, settings.evaluation, base=settings.base, tenant=tenant)
        embedder = pipeline.models.unchecked(space)
        try:
            with open_search(connection, embedder, settings=settings, environ=pipeline.environ) as search:
                return space, [
                    evaluate_index(
                        connection, labels, search, tenant=tenant, space=space, settings=settings.evaluation,
                        now=pipeline.clock(), progress=pipeline.progress(context),
                    )
                    for labels in sets
                ]  # fmt: skip
        finally:
            embedder.close()


def _metadata(space: EmbeddingSpace, outcomes: Sequence[Outcome]) -> Metadata:
    metrics = [(outcome.labels.name, outcome.evaluation.metrics) for outcome in outcomes]
    differences = [(outcome.labels.name, ablation(outcome.evaluation)) for outcome in outcomes]
    return {
        "questions": dg.MetadataValue.int(sum(outcome.evaluation.queries for outcome in outcomes)),
        "embedding_space": dg.MetadataValue.text(f"{space.space_id}: {space.model}"),
        **_numbers(outcomes),
        "measures": table(("labels", "leg", *HEADLINE), [
            (name, leg, *(f"{means[measure]:.3f}" for measure in HEADLINE))
            for name, legs in metrics for leg, means in legs.items()
        ]),
        "ablation": table(("labels", "leg", *(f"{measure} − fused" for measure in HEADLINE)), [
            (name, leg, *(f"{means[measure]:+.3f}" for measure in HEADLINE))
            for name, legs in differences for leg, means in legs.items()
        ]),
        **{f"over_time_{number}": _over_time(outcome) for number, outcome in enumerate(outcomes, start=1)},
        **_worse(outcomes),
        **_missing(outcomes),
    }  # fmt: skip


def _numbers(outcomes: Sequence[Outcome]) -> Metadata:
    """Means over all questions, as numbers, which Dagster draws over its own runs."""
    found: Metadata = {}
    questions = sum(outcome.evaluation.queries for outcome in outcomes)
    for leg in outcomes[0].evaluation.metrics:
        weighted = [outcome.evaluation.metrics[leg][HEADLINE[0]] * outcome.evaluation.queries for outcome in outcomes]
        found[f"{leg}_ndcg_at_10"] = dg.MetadataValue.float(round(sum(weighted) / questions, 4))
    return found


def _over_time(outcome: Outcome) -> dg.MetadataValue:
    name = HEADLINE[0]
    series = {
        leg: [(point.evaluated_at, point.metrics[leg][name]) for point in outcome.history if leg in point.metrics]
        for leg in outcome.evaluation.per_query
    }
    changes = [
        now.evaluated_at
        for before, now in pairwise(outcome.history)
        if (before.labels_hash, before.space_id) != (now.labels_hash, now.space_id)
    ]
    title = f"{name} of {outcome.labels.name}" + (" (dotted: other labels or another space)" if changes else "")
    return dg.MetadataValue.md(lines_over_time(title, series, changes=changes))


def _worse(outcomes: Sequence[Outcome]) -> Metadata:
    compared = [outcome for outcome in outcomes if outcome.before]
    if not compared:
        return {
            "worse": dg.MetadataValue.text("nothing to compare with: these labels were evaluated for the first time")
        }
    rows = [
        (outcome.labels.name, c.query, texts[c.query], c.leg, f"{c.before:.3f}", f"{c.after:.3f}")
        for outcome in compared
        for texts in [{question.id: question.text for question in outcome.labels.questions}]
        for c in outcome.worse
    ]  # fmt: skip
    falls = [(outcome.labels.name, str(fall)) for outcome in compared for fall in outcome.falls]
    columns = ("labels", "question", "text", "leg", f"{HEADLINE[0]} before", "now")
    return {
        "answers_worse": dg.MetadataValue.int(len(rows)),
        "worse": table(columns, rows[:_SHOWN])
        if rows
        else dg.MetadataValue.text("nothing is answered worse than before"),
        "falls": table(("labels", "measure"), falls) if falls else dg.MetadataValue.text("within the tolerance"),
    }


def _missing(outcomes: Sequence[Outcome]) -> Metadata:
    rows = [(outcome.labels.name, kind or "any", id_) for outcome in outcomes for kind, id_ in outcome.missing]
    found: Metadata = {"labelled_documents_missing": dg.MetadataValue.int(len(rows))}
    if rows:
        found["missing"] = table(("labels", "source type", "source id"), rows[:_SHOWN])
    return found
