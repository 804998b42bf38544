"""The query asset: ask the index a question from the launchpad and see the hits in the UI."""

from textwrap import shorten
from typing import Any, get_args

import dagster as dg
from pydantic import Field

from rag_pipeline.answering.extractive import answer
from rag_pipeline.defs.failures import stage_errors
from rag_pipeline.defs.metadata import Result, table
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.errors import ConfigError
from rag_pipeline.model import SearchHit
from rag_pipeline.retrieval.query import Legs, SearchQuery, day_of
from rag_pipeline.settings import Settings


def query_asset(settings: Settings) -> dg.AssetsDefinition:
    """`query`, with the configured sample question as default."""

    class QueryConfig(dg.Config):
        """A question to the index."""

        question: str = Field(default=settings.sample_question, description="What you want to know.")
        tenant: str = Field(default=settings.tenant, description="Whose knowledge to search.")
        k: int = Field(default=5, ge=1, le=200, description="How many hits.")
        legs: str = Field(default="fused", description="fused, or one leg alone: lexical or vector.")
        scopes: list[str] = Field(default=[], description="Also what these scopes may see, such as user:ada.")
        repository: str | None = Field(default=None, description="Only this repository.")
        source_type: str | None = Field(default=None, description="Only docs, code, github_issue, ….")
        language: str | None = Field(default=None, description="Only this language, such as python or markdown.")
        path_prefix: str | None = Field(default=None, description="Only paths that begin like this.")
        author: str | None = Field(default=None, description="Only what this login opened.")
        labels: list[str] = Field(default=[], description="Only what has all of these labels.")
        state: str | None = Field(default=None, description="Only what is open, closed or merged.")
        updated_from: str | None = Field(default=None, description="Only what changed on this day (UTC) or later.")
        updated_to: str | None = Field(default=None, description="Only what changed on this day (UTC) or earlier.")
        metadata: dict[str, str] = Field(default={}, description="Only what has this metadata.")
        min_score: float | None = Field(default=None, description="Only hits with this score or a higher one.")
        rerank: bool | None = Field(default=None, description="Use the configured reranker; by default if any.")
        diversity: float | None = Field(default=None, description="0: by score alone, to 1: as different as can be.")
        stitch: bool = Field(default=False, description="Join hits that stand beside each other.")
        linked: bool = Field(default=False, description="Add issues and pull requests that hits are linked to.")

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
            result = pipeline.find(_query_of(config))
        hits = result.hits
        found = answer(config.question, hits)
        return dg.MaterializeResult(
            metadata={
                "question": config.question,
                "hits": dg.MetadataValue.int(len(hits)),
                "best_score": dg.MetadataValue.float(round(hits[0].score, 4) if hits else 0.0),
                "results": table(
                    ("#", "score", "lexical", "vector", "where", "words", "text"), [_row(h) for h in hits]
                ),
                "links": dg.MetadataValue.md("\n".join(f"{hit.rank}. [{hit.location}]({hit.url})" for hit in hits)),
                "answer": dg.MetadataValue.md(_fenced(found.text)),
                **({"degraded": result.degraded} if result.degraded else {}),
            }
        )

    return query


def _query_of(config: Any) -> SearchQuery:
    """The query that a launchpad's configuration asks for.

    Raises:
        ConfigError: a leg or a day is none.
    """
    values = config.model_dump()
    for name in ("updated_from", "updated_to"):
        values[name] = day_of(values[name] or "", name)
    if values["legs"] not in get_args(Legs):
        raise ConfigError(f"legs is {values['legs']!r}: choose one of {', '.join(get_args(Legs))}")
    return SearchQuery(text=values.pop("question"), **values)


def _row(hit: SearchHit) -> tuple[object, ...]:
    # The UI shows short Markdown in place, and hides longer behind a click.
    text = shorten(hit.text, width=48, placeholder="…")
    legs = {leg.leg: f"#{leg.rank} " * bool(leg.rank) + f"({leg.score:.2f})" for leg in hit.legs}
    words = ", ".join(hit.matched_terms[:3])
    return (hit.rank, f"{hit.score:.3f}", legs.get("lexical", ""), legs.get("vector", ""), hit.location, words, text)


def _fenced(text: str) -> str:
    # Retrieved text is shown as it is, never rendered.
    fence = "~~~~~~"
    return f"{fence}text\n{text.replace(fence, '')}\n{fence}"
