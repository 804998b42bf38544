"""What the tools for agents take: strict, bounded, and without a word about whose knowledge it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.retrieval.context import LEAST_BUDGET_TOKENS
from rag_pipeline.retrieval.knowledge import MOST_CONTEXT_TOKENS
from rag_pipeline.retrieval.query import Legs, SearchQuery
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.fields import Name, Question, Storable, Strict

_MOST_HITS: Final = 50
_ADDRESS_CHARS: Final = 2_000


def _listed(value: object) -> object:
    """Some clients send a list as the text of its JSON."""
    if isinstance(value, str) and value.startswith("["):
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value


class _Filtered(Strict):
    """Where to look; everywhere when nothing is named."""

    question: Question = Field(description="What you want to know, in words; identifiers and error messages help.")
    repository: Name | None = Field(default=None, description="Only this repository, as list_sources names it.")
    source_type: Name | None = Field(
        default=None, description="Only this type: docs, code, github_issue, github_pull_request, … (see list_sources)."
    )
    language: Name | None = Field(default=None, description="Only this language, such as python or markdown.")
    path_prefix: Name | None = Field(default=None, description="Only files whose path begins like this.")
    author: Name | None = Field(default=None, description="Only issues and pull requests that this login opened.")
    labels: Annotated[list[Name], Field(max_length=20), BeforeValidator(_listed)] = Field(
        default_factory=list, description="Only what has all of these labels."
    )
    state: Name | None = Field(
        default=None, description="Only issues and pull requests that are so: open, closed, merged."
    )
    updated_from: date | None = Field(default=None, description="Only what changed on this day (UTC) or later.")
    updated_to: date | None = Field(default=None, description="Only what last changed on this day (UTC) or earlier.")
    min_score: float | None = Field(default=None, allow_inf_nan=False, description="Only hits with this score or more.")

    def _query(self, caller: Caller, **more: Any) -> SearchQuery:
        return SearchQuery(
            text=self.question, tenant=caller.tenant, scopes=tuple(caller.scopes), repository=self.repository,
            source_type=self.source_type, language=self.language, path_prefix=self.path_prefix, author=self.author,
            labels=tuple(self.labels), state=self.state, updated_from=self.updated_from, updated_to=self.updated_to,
            min_score=self.min_score, **more,
        )  # fmt: skip


class SearchArguments(_Filtered):
    """Of `search_knowledge`."""

    k: int = Field(default=8, ge=1, le=_MOST_HITS, description="How many hits.")
    legs: Legs = Field(
        default="fused", description="Rank by words and meaning together (fused), or by one: lexical, vector."
    )
    stitch: bool = Field(default=False, description="Join hits that stand beside each other in one document.")
    linked: bool = Field(default=False, description="Add issues and pull requests that the hits are linked to.")

    def query(self, caller: Caller) -> SearchQuery:
        """What is asked, in the caller's name."""
        return self._query(caller, k=self.k, legs=self.legs, stitch=self.stitch, linked=self.linked)


class ContextArguments(_Filtered):
    """Of `get_context`."""

    budget_tokens: int = Field(
        default=2_000,
        ge=LEAST_BUDGET_TOKENS,
        le=MOST_CONTEXT_TOKENS,
        description="How long the context may be, in tokens.",
    )
    k: int = Field(default=20, ge=1, le=_MOST_HITS, description="How many hits are tried, the best first.")

    def query(self, caller: Caller) -> SearchQuery:
        """What is asked, in the caller's name."""
        return self._query(caller, k=self.k)


class DocumentArguments(Strict):
    """Of `get_document`."""

    document: Annotated[str, StringConstraints(min_length=1, max_length=_ADDRESS_CHARS), Storable] = Field(
        description="The document_id or url of a hit, a source_id, a path, or owner/name#1."
    )
    from_line: int | None = Field(
        default=None, ge=1, le=2**31, description="Begin at this line of the source, such as a hit's start_line."
    )
    offset: int | None = Field(
        default=None, ge=0, le=2**31, description="Begin at this character: next_offset of the page before."
    )
    max_chars: int = Field(default=20_000, ge=200, le=100_000, description="How long the page may be.")


class NoArguments(Strict):
    """Of `list_sources`."""


def complaint(error: ValidationError) -> str:
    """What is wrong with the arguments, in one line; what was sent is not repeated."""
    problems: Sequence[Any] = error.errors(include_url=False, include_context=False, include_input=False)
    said = [f"{'.'.join(str(part)[:80] for part in one['loc']) or 'arguments'}: {_said(one)}" for one in problems[:5]]
    return "; ".join(said)


def _said(problem: Any) -> str:
    if problem["type"] == "extra_forbidden":
        return "there is no such argument"
    return str(problem["msg"]).removeprefix("Value error, ")
