"""The query asset: ask the index a question from the launchpad and see the hits in the UI."""

from collections.abc import Sequence
from textwrap import shorten
from typing import Any, get_args

import dagster as dg
from pydantic import Field

from rag_pipeline.answering.answerer import Looked, Question
from rag_pipeline.answering.opening import book, open_answerer
from rag_pipeline.defs.failures import stage_errors
from rag_pipeline.defs.metadata import Result, table
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.errors import ConfigError
from rag_pipeline.model import Answer, SearchHit
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
        tags={"stage": "query"}, code_version="2",
        description=(
            "Asks the index a question. Open the launchpad (shift-click Materialize), write the question, and see the "
            "answer with its citations, and the hits with their scores and links, in this asset's metadata. Answers "
            "are quotes unless a language model is configured under [answering]."
        ),
    )  # fmt: skip
    def query(context: dg.AssetExecutionContext, config: QueryConfig, pipeline: dg.ResourceParam[Pipeline]) -> Result:
        with stage_errors(context):
            hits, found = _answered(pipeline, _query_of(config), run_id=context.run_id)
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
                **_told(found),
            }
        )

    return query


def _answered(pipeline: Pipeline, query: SearchQuery, *, run_id: str) -> tuple[Sequence[SearchHit], Answer]:
    """What was found, and the answer made of it; what its model took is booked."""
    with open_answerer(pipeline.settings, search=pipeline.find, environ=pipeline.environ) as answerer:
        *events, answer = answerer.stream(Question(query=query))
    assert isinstance(answer, Answer)
    if answer.input_tokens or answer.output_tokens:
        with pipeline.connection() as connection:
            book(
                connection, answer, tenant=query.tenant, settings=pipeline.settings.answering, now=pipeline.clock(),
                run_id=run_id,
            )  # fmt: skip
    looked = [event for event in events if isinstance(event, Looked)]
    return looked[0].hits if looked else (), answer


def _told(answer: Answer) -> dict[str, Any]:
    """What is known of an answer beside its text."""
    cited = "\n".join(f"{one.number}. [{one.hit.location}]({one.hit.url})" for one in answer.sources)
    metadata: dict[str, Any] = {
        "status": answer.status,
        "confidence": dg.MetadataValue.float(round(answer.confidence, 3)),
        "citations": dg.MetadataValue.md(cited or "none"),
        "follow_ups": dg.MetadataValue.md("\n".join(f"- `{one.replace('`', '')}`" for one in answer.follow_ups)),
        "model": answer.model or "none: quotes of the sources",
    }
    if answer.input_tokens or answer.output_tokens:
        metadata["tokens"] = answer.input_tokens + answer.output_tokens
    if answer.model and answer.cost_usd is not None:
        metadata["cost_usd"] = dg.MetadataValue.float(answer.cost_usd)
    return metadata | ({"degraded": answer.degraded} if answer.degraded else {})


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
