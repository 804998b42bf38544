"""The query asset: ask the index a question from the launchpad and see the hits in the UI."""

from textwrap import shorten

import dagster as dg
from pydantic import Field

from rag_pipeline.answering.extractive import answer
from rag_pipeline.defs.failures import stage_errors
from rag_pipeline.defs.metadata import Result, table
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.model import SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.settings import Settings


def query_asset(settings: Settings) -> dg.AssetsDefinition:
    """`query`, with the configured sample question as default."""

    class QueryConfig(dg.Config):
        """A question to the index."""

        question: str = Field(default=settings.sample_question, description="What you want to know.")
        tenant: str = Field(default=settings.tenant, description="Whose knowledge to search.")
        k: int = Field(default=5, ge=1, le=200, description="How many hits.")
        repository: str | None = Field(default=None, description="Only this repository.")
        source_type: str | None = Field(default=None, description="Only docs, or only code.")
        language: str | None = Field(default=None, description="Only this language, such as python or markdown.")
        path_prefix: str | None = Field(default=None, description="Only paths that begin like this.")

    @dg.asset(
        deps=["knowledge_index"], group_name="serving", kinds={"postgres"}, owners=["team:knowledge"],
        tags={"stage": "query"}, code_version="1",
        description=(
            "Asks the index a question. Open the launchpad (shift-click Materialize), write the question, and see the "
            "hits with their scores and links in this asset's metadata."
        ),
    )  # fmt: skip
    def query(context: dg.AssetExecutionContext, config: QueryConfig, pipeline: dg.ResourceParam[Pipeline]) -> Result:
        with stage_errors(context):
            hits = pipeline.search(
                SearchQuery(
                    text=config.question, tenant=config.tenant, k=config.k, repository=config.repository,
                    source_type=config.source_type, language=config.language, path_prefix=config.path_prefix,
                )
            )  # fmt: skip
        found = answer(config.question, hits)
        return dg.MaterializeResult(
            metadata={
                "question": config.question,
                "hits": dg.MetadataValue.int(len(hits)),
                "best_score": dg.MetadataValue.float(round(hits[0].score, 4) if hits else 0.0),
                "results": table(("#", "score", "where", "text"), [_row(hit) for hit in hits]),
                "links": dg.MetadataValue.md("\n".join(f"{hit.rank}. [{hit.location}]({hit.url})" for hit in hits)),
                "answer": dg.MetadataValue.md(_fenced(found.text)),
            }
        )

    return query


def _row(hit: SearchHit) -> tuple[object, ...]:
    # The UI shows short Markdown in place, and hides longer behind a click.
    return (hit.rank, f"{hit.score:.3f}", hit.location, shorten(hit.text, width=90, placeholder="…"))


def _fenced(text: str) -> str:
    # Retrieved text is shown as it is, never rendered.
    fence = "~~~~~~"
    return f"{fence}text\n{text.replace(fence, '')}\n{fence}"
