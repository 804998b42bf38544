"""Jobs that make no asset of a day: filling an embedding space beside the active one."""

import dagster as dg
from pydantic import Field

from rag_pipeline.defs.failures import stage_errors
from rag_pipeline.defs.metadata import Metadata, cost, size
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.embedding.spaces import settings_of
from rag_pipeline.errors import SpaceUnavailable
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import building_spaces, numbered_space
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.refresh.spaces import BuildReport, after_build, build_space
from rag_pipeline.settings import price_of

BUILD_JOB = "build_embedding_space"
BUILD_OP = "embed_index"


class BuildConfig(dg.Config):
    """Which space to fill."""

    space_id: int | None = Field(
        default=None, description="Its number, as `rag-pipeline spaces list` shows it; without one, the newest in work."
    )


def build_space_job() -> dg.JobDefinition:
    """`build_embedding_space`: launched by hand or by `rag-pipeline spaces build`; goes on where it was stopped."""

    @dg.op(
        name=BUILD_OP, pool="embedding", tags={"stage": "embeddings"}, out=dg.Out(dg.Nothing),
        description="Gives one embedding space a vector for every text that the index shows, then its HNSW graph.",
    )  # fmt: skip
    def embed_index(context: dg.OpExecutionContext, config: BuildConfig, pipeline: dg.ResourceParam[Pipeline]) -> None:
        with stage_errors(context), pipeline.stage("embeddings") as connection:
            space = _chosen(connection, config.space_id)
            context.log.info(f"filling embedding space {space.space_id}: {space.provider} {space.model}")
            report = build_space(
                pipeline.lake(), space, models=pipeline.models, connection=connection,
                account=pipeline.account(context.run_id), now=pipeline.clock(), progress=pipeline.progress(context),
            )  # fmt: skip
        for text_hash, reason in report.embeddings.refused[:20]:
            context.log.warning(f"{space.model} refuses text {text_hash}: {reason}")
        pipeline.reports["build"] = report
        price = price_of(settings_of(space, pipeline.settings.embedding), pipeline.settings.prices)
        context.log.info(after_build(space, report))
        context.add_output_metadata(_metadata(space, report, price=price))

    @dg.job(
        name=BUILD_JOB,
        description=(
            "Fills another embedding space beside the active one: every text that the index shows gets its vector, "
            "each finished batch is stored, and a run that was stopped is launched again to go on. Questions are "
            "answered by the active space all the while."
        ),
    )  # fmt: skip
    def job() -> None:
        embed_index()

    return job


def _chosen(connection: Connection, space_id: int | None) -> EmbeddingSpace:
    if space_id is not None:
        return numbered_space(connection, space_id)
    waiting = building_spaces(connection)
    if not waiting:
        raise SpaceUnavailable("no embedding space is being built: make one with `rag-pipeline spaces create`")
    return waiting[-1]


def _metadata(space: EmbeddingSpace, report: BuildReport, *, price: float | None) -> Metadata:
    embeddings, standing = report.embeddings, report.standing
    return {
        "embedding_space": dg.MetadataValue.text(
            f"{space.space_id}: {space.provider} {space.model}, {space.dimensions} dimensions, recipe {space.recipe}"
        ),
        "embedded": dg.MetadataValue.int(embeddings.embedded),
        "reused": dg.MetadataValue.int(embeddings.reused),
        "restored_from_lake": dg.MetadataValue.int(embeddings.restored),
        "tokens": dg.MetadataValue.int(embeddings.tokens),
        **cost(embeddings.tokens, price),
        "refused": dg.MetadataValue.int(len(embeddings.refused)),
        "unreadable": dg.MetadataValue.int(embeddings.unreadable),
        "texts": dg.MetadataValue.int(standing.texts),
        "missing": dg.MetadataValue.int(standing.missing),
        "size": dg.MetadataValue.text(size(standing.bytes)),
        "graph": dg.MetadataValue.text("built in this run" if report.graph_built else "kept up row by row"),
        "next_step": dg.MetadataValue.text(after_build(space, report)),
    }
