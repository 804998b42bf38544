"""What `rag-pipeline spaces` runs and shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from rag_pipeline.cli.console import out, rows_table
from rag_pipeline.cli.dagster_storage import opened_instance
from rag_pipeline.cli.processes import process_tags
from rag_pipeline.cli.runs import reason_of
from rag_pipeline.cli.space_comparison import Comparison
from rag_pipeline.errors import ConfigError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.promotion import standing
from rag_pipeline.index.spaces import space_records
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.progress import Progress
from rag_pipeline.settings import Embedding, Settings

if TYPE_CHECKING:
    from rag_pipeline.refresh.spaces import BuildReport


def candidate_settings(
    embedding: Embedding, *, provider: str, model: str, dimensions: int | None, passage_prefix: str, query_prefix: str,
    base_url: str, api_key_env: str,
) -> Embedding:  # fmt: skip
    """The settings of another model: of its own what a model decides, the rest as configured for the same provider.

    Raises:
        ConfigError: an option is not what it may be.
    """
    same = provider in ("", embedding.provider)
    values = embedding.model_dump() if same else {"provider": provider}
    # Chunks are cut with one context for all spaces; the prefixes belong to the model.
    values |= {
        "model": model, "dimensions": dimensions, "context": embedding.context, "passage_prefix": passage_prefix,
        "query_prefix": query_prefix,
    }  # fmt: skip
    values |= {"base_url": base_url} if base_url else {}
    values |= {"api_key_env": api_key_env} if api_key_env else {}
    try:
        return Embedding.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise ConfigError(f"{option}: {str(first['msg']).removeprefix('Value error, ')}") from error


def space_rows(connection: Connection) -> list[dict[str, Any]]:
    """Every space with what it holds and lacks, as JSON would show it."""
    rows = []
    for record in space_records(connection):
        space, now = record.space, standing(connection, record.space)
        rows.append(
            {
                "space_id": space.space_id, "provider": space.provider, "model": space.model,
                "dimensions": space.dimensions, "recipe": space.recipe, "status": space.status,
                "partitions": space.partitions, "graph_over": space.graph,
                "vectors": now.vectors, "unreadable": now.unreadable,
                "missing": now.missing, "graph": now.has_graph, "bytes": now.bytes,
                "created_at": record.created_at, "activated_at": record.activated_at, "retired_at": record.retired_at,
            }
        )  # fmt: skip
    return rows


def print_spaces(rows: Sequence[dict[str, Any]]) -> None:
    """The spaces for people."""
    if not rows:
        out.print("no embedding space yet: `rag-pipeline up` makes the first one")
        return
    headers = (
        "id", "provider", "model", "dimensions", "status", "partitions", "graph over", "vectors", "missing", "MB",
        "created", "activated",
    )  # fmt: skip
    lines = [
        (row["space_id"], row["provider"], row["model"], row["dimensions"], row["status"], row["partitions"],
         row["graph_over"], row["vectors"], row["missing"], row["bytes"] / 1e6, f"{row['created_at']:%Y-%m-%d %H:%M}",
         f"{row['activated_at']:%Y-%m-%d %H:%M}" if row["activated_at"] else "")
        for row in rows
    ]  # fmt: skip
    out.print(rows_table("", headers, lines))


def run_build(settings: Settings, space_id: int, *, watch: Progress) -> BuildReport:
    """Run the job that fills a space, recorded in Dagster's storage like any other.

    Raises:
        RagPipelineError: the run failed; the error is the one that made it fail.
    """
    from rag_pipeline.definitions import build_defs
    from rag_pipeline.defs.jobs import BUILD_JOB, BUILD_OP
    from rag_pipeline.defs.resources import Pipeline

    pipeline = Pipeline(settings=settings, watch=watch)
    with opened_instance() as instance:
        result = build_defs(settings, pipeline=pipeline).resolve_job_def(BUILD_JOB).execute_in_process(
            instance=instance, raise_on_error=False, tags=process_tags(),
            run_config={
                "ops": {BUILD_OP: {"config": {"space_id": space_id}}},
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
        )  # fmt: skip
    if not result.success:
        raise reason_of(result)
    return cast("BuildReport", pipeline.reports["build"])


def build_summary(report: BuildReport) -> dict[str, Any]:
    """What building a space did, as JSON would show it."""
    embeddings, now = report.embeddings, report.standing
    return {
        "embedded": embeddings.embedded, "reused": embeddings.reused, "restored": embeddings.restored,
        "tokens": embeddings.tokens, "refused": len(embeddings.refused), "unreadable": embeddings.unreadable,
        "texts": now.texts, "missing": now.missing, "graph_built": report.graph_built,
        "model_seconds": round(embeddings.model_seconds, 2),
    }  # fmt: skip


def print_build(space: EmbeddingSpace, report: BuildReport) -> None:
    """What building a space did, for people, and what comes next."""
    from rag_pipeline.refresh.spaces import after_build

    rows = [(name.replace("_", " "), f"{value:,}") for name, value in build_summary(report).items()]
    out.print(rows_table("", (f"embedding space {space.space_id}", ""), rows))
    for text_hash, reason in report.embeddings.refused[:20]:
        out.print(f"refused: text {text_hash}: {reason}", markup=False)
    if space.status != "active":
        out.print(after_build(space, report), markup=False)


def print_comparison(found: Comparison, *, candidate: EmbeddingSpace, active: EmbeddingSpace) -> None:
    """The measures of both spaces side by side, and whether the candidate may be promoted."""
    headers = ("leg", "measure", f"active ({active.space_id})", f"candidate ({candidate.space_id})", "difference")
    rows = [(m.leg, m.measure, m.active, m.candidate, m.candidate - m.active) for m in found.measures]
    out.print(rows_table(f"{found.dataset}: {found.questions:,} questions", headers, rows))
    for fall in found.falls:
        out.print(f"worse: {fall}", markup=False)
    if not found.falls:
        out.print(f"nothing is worse: `rag-pipeline spaces promote {candidate.space_id}` lets it answer", markup=False)
