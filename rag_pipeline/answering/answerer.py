"""A question, with the conversation that it goes on with, to an answer: at once, or piece by piece as it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rag_pipeline.answering.extractive import answer
from rag_pipeline.answering.language_model import LanguageModel, Message
from rag_pipeline.embedding.tokens import TokenCounter
from rag_pipeline.model import Answer, SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found
from rag_pipeline.settings import Answering

Price = Callable[[str, int, int], float | None]
"""Model, input tokens, output tokens → USD; None: nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody wants to know."""

    query: SearchQuery
    """The question as it was asked, by whom, and where to look."""
    history: Sequence[Message] = ()
    """Earlier turns of user and assistant, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What the answer will be made from."""

    asked: str
    """What was looked up: the question, made to stand alone."""
    hits: Sequence[SearchHit]
    degraded: str
    """What the search had to do without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """More of the text."""

    text: str


class Answerer:
    """Answers questions from what a search finds; may be used from several threads."""

    def __init__(
        self, *, search: Callable[[SearchQuery], Found], model: LanguageModel | None, settings: Answering,
        count_tokens: TokenCounter | None = None, prices: Price | None = None,
    ) -> None:  # fmt: skip
        self._search = search

    def ask(self, question: Question) -> Answer:
        """The answer."""
        found = self._search(question.query)
        return answer(question.query.text, found.hits)

    def stream(self, question: Question) -> Iterator[Looked | Wrote | Answer]:
        """What was found, the text piece by piece, and one answer at the end, which is authoritative."""
        found = self._search(question.query)
        yield Looked(asked=question.query.text, hits=found.hits, degraded=found.degraded)
        made = answer(question.query.text, found.hits)
        yield Wrote(text=made.text)
        yield made
