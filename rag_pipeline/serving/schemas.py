"""What is sent and answered by the routes that ask the index, as OpenAPI shows it, and nouns to bodies.

Requests hold nothing unknown and nothing that the index cannot hold; every text in them has a longest length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from rag_pipeline.model import Answer, AnswerStatus, CitedSource, Markup, SearchHit
from rag_pipeline.retrieval.context import LEAST_BUDGET_TOKENS, Reason
from rag_pipeline.retrieval.known_sources import KnownSource
from rag_pipeline.retrieval.query import MAX_K, Legs, SearchQuery
from rag_pipeline.serving.fields import Name, Question, Storable, Strict
from rag_pipeline.serving.highlights import highlights, wanted_terms

MOST_SCOPES: Final = 50
_MOST_TURNS: Final = 50
MOST_TEXT_CHARS: Final = 2_000_000
"""Of a text to be chunked."""

_CORRECTED: Final = "Words of the question that no document holds, with the words that were looked for instead."
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _written_as_a_day(value: object) -> object:
    """Refuse what pydantic would take for a day as well, such as a number of seconds."""
    if isinstance(value, str) and not _DAY.fullmatch(value):
        raise ValueError("must be a day, written as YYYY-MM-DD")
    if isinstance(value, int | float):
        raise ValueError("must be a day, written as YYYY-MM-DD")
    return value


Day = Annotated[date, BeforeValidator(_written_as_a_day), Field(strict=False)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=1_000), Storable]
Turn = Annotated[str, StringConstraints(min_length=1, max_length=20_000), Storable]
Said = Annotated[str, StringConstraints(max_length=4_000), Storable]
Score = Annotated[float, Field(allow_inf_nan=False)]
K = Annotated[int, Field(ge=1, le=MAX_K)]


class Filters(Strict):
    """Where to look; what is not named is everywhere."""

    repository: Name | None = Field(default=None, description="As `GET /v1/sources` lists it.", examples=["acme/app"])
    source_type: Name | None = Field(default=None, examples=["docs"])
    language: Name | None = Field(default=None, description="Of code.", examples=["python"])
    path_prefix: Path | None = Field(default=None, description="What paths begin with.", examples=["docs/"])
    author: Name | None = None
    state: Name | None = Field(default=None, description="`open`, `closed` or `merged`.", examples=["open"])
    updated_from: Day | None = Field(default=None, description="Last changed on this day (UTC) or later.")
    updated_to: Day | None = Field(default=None, description="Last changed on this day (UTC) or earlier.")

    @model_validator(mode="after")
    def _days_in_order(self) -> Self:
        if self.updated_from and self.updated_to and self.updated_from > self.updated_to:
            raise ValueError(f"no day is from {self.updated_from} to {self.updated_to}: exchange the two")
        return self

    def parts(self) -> dict[str, Any]:
        """The filters as a query takes them."""
        return {name: getattr(self, name) for name in Filters.model_fields}


class SearchParameters(Filters):
    """What `GET /v1/search` takes."""

    q: Question = Field(description="What you are looking for.", examples=["how to roll back a deployment"])
    k: K = Field(default=10, description="So many hits at most.")
    legs: Legs = Field(default="fused", description="Words (`lexical`), meaning (`vector`), or both (`fused`).")
    label: list[Name] = Field(default=[], max_length=50, description="Repeat it for several: all must be there.")
    min_score: Score | None = Field(default=None, description="Hits with a lower score are left out.")
    scope: list[Name] = Field(
        default=[], max_length=MOST_SCOPES, examples=[["user:ada"]],
        description="In whose name you ask, as far as your key may: what is for their eyes only is found, too.",
    )  # fmt: skip
    rerank: bool | None = Field(default=None, description="By default as configured.")
    diversity: float | None = Field(
        default=None, ge=0, le=1, description="0: by score alone; 1: as different from each other as can be."
    )
    stitch: bool = Field(default=False, description="Join hits that stand beside each other in one document.")
    linked: bool = Field(default=False, description="Add what the hits are linked to.")

    def query(self, *, tenant: str, scopes: Sequence[str]) -> SearchQuery:
        """The query of a caller."""
        return SearchQuery(
            text=self.q, tenant=tenant, scopes=scopes, k=self.k, legs=self.legs, min_score=self.min_score,
            labels=tuple(self.label), rerank=self.rerank, diversity=self.diversity, stitch=self.stitch,
            linked=self.linked, **self.parts(),
        )  # fmt: skip


class Body(Strict):
    """JSON, where a number is no text and a text no number."""

    model_config = ConfigDict(strict=True)


class BodyFilters(Filters, Body):
    """Where to look, in a body."""

    labels: list[Name] = Field(default=[], max_length=50, description="All of them.")
    scopes: list[Name] = Field(
        default=[], max_length=MOST_SCOPES, examples=[["user:ada"]],
        description="In whose name you ask, as far as your key may: what is for their eyes only is found, too.",
    )  # fmt: skip


class TurnBody(Body):
    """One turn of the conversation so far."""

    role: Literal["user", "assistant"]
    content: Turn


class AskBody(BodyFilters):
    """What `POST /v1/ask` takes."""

    question: Question = Field(examples=["How do I roll back a deployment?"])
    history: list[TurnBody] = Field(default=[], max_length=_MOST_TURNS, description="Earlier turns, oldest first.")
    k: K | None = Field(default=None, description="So many hits are looked at; by default as configured.")


class ContextBody(BodyFilters):
    """What `POST /v1/context` takes."""

    question: Said = Field(examples=["How do I roll back a deployment?"])
    budget_tokens: int = Field(
        default=2_000, ge=LEAST_BUDGET_TOKENS, le=100_000,
        description="So long is the context at most; the service may allow less (`serving.most_context_tokens`).",
    )  # fmt: skip
    k: K = Field(default=20, description="So many hits are tried, best first.")
    min_score: Score | None = Field(default=None, description="Hits with a lower score are left out.")
    timeout_ms: int | None = Field(
        default=None, ge=50, le=60_000,
        description="The answer is there after so long, with or without a context; by default as configured.",
    )  # fmt: skip


class ChunkBody(Body):
    """What `POST /v1/chunk` takes."""

    text: Annotated[str, StringConstraints(max_length=MOST_TEXT_CHARS), Storable] = Field(
        examples=["# Deploying\n\nRun `make deploy`."]
    )
    markup: Markup | None = Field(default=None, description="How it is laid out; by default as `path` says, or text.")
    path: Path | None = Field(
        default=None, examples=["docs/deploy.md"],
        description="A file name to tell markup and language by; nothing is read from there.",
    )  # fmt: skip
    language: Name | None = Field(default=None, description="Of code; by default as `path` says.", examples=["python"])
    embed: bool = Field(default=False, description="Whether each chunk's vector is wanted.")


class LegBody(BaseModel):
    """Where one leg of a search saw a hit."""

    leg: str
    rank: int | None = Field(description="From 1; null: not among its best.")
    score: float = Field(description="BM25, cosine similarity, or the reranker's own.")


class HitBody(BaseModel):
    """A passage that was found."""

    rank: int
    score: float
    title: str
    text: str
    url: str
    location: str = Field(description="`path:start-end`.")
    repository: str
    source_type: str
    source_id: str
    language: str | None
    heading_path: list[str]
    start_line: int
    end_line: int
    document_id: UUID
    chunk_id: UUID
    updated_at: datetime = Field(description="When it last changed in its source.")
    tokens: int
    legs: list[LegBody]
    matched_terms: list[str] = Field(description="Of the question, the rarest first, as they are indexed.")
    corrected: dict[str, list[str]] = Field(description=f"{_CORRECTED} Of those, the ones that this passage holds.")
    highlights: list[tuple[int, int]] = Field(
        description="Start and end of what to mark in `text`, in code points, in order."
    )


class SearchBody(BaseModel):
    """What a search found, best first."""

    query_id: UUID | None = Field(description="For feedback; null: questions are not kept.")
    hits: list[HitBody]
    degraded: str = Field(description="What could not be done, and was done without; empty: nothing.")
    corrected: dict[str, list[str]] = Field(description=_CORRECTED)
    milliseconds: int


class SourceBody(BaseModel):
    """One kind of documents of one repository."""

    repository: str
    source_type: str
    documents: int
    chunks: int
    newest_change: datetime = Field(description="When its source last changed any of it.")
    newest_indexed: datetime = Field(description="When the index last took a change in.")


class SourcesBody(BaseModel):
    """What there is to search."""

    sources: list[SourceBody]


class CitedBody(BaseModel):
    """A passage by the number that it is cited by, `[Source N]`."""

    number: int
    title: str
    url: str
    location: str
    score: float
    repository: str
    source_type: str
    start_line: int
    end_line: int
    chunk_id: UUID
    document_id: UUID


class AnswerSourceBody(CitedBody):
    """A passage that an answer cites."""

    quote: str = Field(description="What of it bears the answer out best.")
    support: float = Field(description="How well it does, 0 to 1.")


class AnswerBody(BaseModel):
    """An answer with what it stands on."""

    query_id: UUID | None = Field(description="For feedback; null: questions are not kept.")
    question: str
    asked: str = Field(description="What was looked up.")
    status: AnswerStatus
    text: str = Field(description="With `[Source N]` marks.")
    sources: list[AnswerSourceBody]
    confidence: float = Field(description="0 to 1.")
    follow_ups: list[str]
    removed_citations: int = Field(description="Marks of the model that pointed to nothing.")
    model: str = Field(description="Empty: no model wrote it, it is made of quotes.")
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    degraded: str
    milliseconds: int


class LookedHit(BaseModel):
    """A passage that an answer will be written from."""

    number: int
    title: str
    url: str
    location: str


class LookedBody(BaseModel):
    """The event `looked`: what the answer will be written from."""

    asked: str
    hits: list[LookedHit]
    degraded: str


class ContextAnswer(BaseModel):
    """Text for a prompt, and where it comes from."""

    text: str
    sources: list[CitedBody]
    enabled: bool = Field(description="Whether the text is worth putting into a prompt.")
    reason: Reason
    tokens: int
    degraded: str = Field(description="What could not be done, and was done without; empty: nothing.")
    corrected: dict[str, list[str]] = Field(description=_CORRECTED)


class ChunkOf(BaseModel):
    """A span of the text that can stand alone."""

    text: str
    start_char: int
    end_char: int
    start_line: int
    end_line: int
    heading_path: list[str]
    tokens: int
    context: str = Field(description="What is put before it when it is embedded.")
    embedding: list[float] | None = Field(default=None, description="Null: not asked for, or refused by the model.")


class ChunksBody(BaseModel):
    """A text in chunks."""

    chunks: list[ChunkOf]
    model: str | None = None
    dimensions: int | None = None


def hit_body(hit: SearchHit, *, question: str) -> HitBody:
    """A hit as it is answered, with what of it the question asks for."""
    return HitBody(
        rank=hit.rank, score=hit.score, title=hit.title, text=hit.text, url=hit.url, location=hit.location,
        repository=hit.repository, source_type=hit.source_type, source_id=hit.source_id, language=hit.language,
        heading_path=list(hit.heading_path), start_line=hit.start_line, end_line=hit.end_line,
        document_id=hit.document_id, chunk_id=hit.chunk_id, updated_at=hit.source_updated_at, tokens=hit.tokens,
        legs=leg_bodies(hit), matched_terms=list(hit.matched_terms), corrected=corrected_words(hit.corrected),
        highlights=highlights(hit.text, wanted_terms(question)),
    )  # fmt: skip


def corrected_words(corrected: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Corrections as they are answered."""
    return {word: list(words) for word, words in corrected.items()}


def leg_bodies(hit: SearchHit) -> list[LegBody]:
    """Where each leg saw a hit."""
    return [LegBody(leg=leg.leg, rank=leg.rank, score=leg.score) for leg in hit.legs]


def source_body(source: KnownSource) -> SourceBody:
    """What there is of one kind in one repository."""
    return SourceBody(
        repository=source.repository, source_type=source.source_type, documents=source.documents,
        chunks=source.chunks, newest_change=source.newest_change, newest_indexed=source.newest_indexed,
    )  # fmt: skip


def cited_bodies(hits: Sequence[SearchHit]) -> list[CitedBody]:
    """Hits by the numbers that a context gives them."""
    return [CitedBody(number=number, **_place(hit)) for number, hit in enumerate(hits, start=1)]


def looked_hits(hits: Sequence[SearchHit]) -> list[LookedHit]:
    """Hits by the numbers that a model sees them under."""
    return [
        LookedHit(number=number, title=hit.title, url=hit.url, location=hit.location)
        for number, hit in enumerate(hits, start=1)
    ]


def answer_body(answer: Answer, *, query_id: UUID | None, milliseconds: int) -> AnswerBody:
    """An answer as it is sent."""
    return AnswerBody(
        query_id=query_id, question=answer.question, asked=answer.asked, status=answer.status, text=answer.text,
        sources=[_answer_source(source) for source in answer.sources], confidence=answer.confidence,
        follow_ups=list(answer.follow_ups), removed_citations=answer.removed_citations, model=answer.model,
        input_tokens=answer.input_tokens, output_tokens=answer.output_tokens, cost_usd=answer.cost_usd,
        degraded=answer.degraded, milliseconds=milliseconds,
    )  # fmt: skip


def _answer_source(source: CitedSource) -> AnswerSourceBody:
    return AnswerSourceBody(number=source.number, quote=source.quote, support=source.support, **_place(source.hit))


def _place(hit: SearchHit) -> dict[str, Any]:
    return {
        "title": hit.title, "url": hit.url, "location": hit.location, "score": hit.score,
        "repository": hit.repository, "source_type": hit.source_type, "start_line": hit.start_line,
        "end_line": hit.end_line, "chunk_id": hit.chunk_id, "document_id": hit.document_id,
    }  # fmt: skip
