"""`rag-pipeline ask` at work: a question to an answer, written to the terminal while it is made."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from rich.markup import escape

from rag_pipeline.answering.answerer import Answerer, Question, Wrote
from rag_pipeline.answering.opening import book, open_answerer
from rag_pipeline.cli.console import err, out, print_sources
from rag_pipeline.embedded import database_url
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import connected
from rag_pipeline.model import Answer
from rag_pipeline.retrieval.opening import opened_for_reading
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import open_retriever
from rag_pipeline.settings import Settings


def answered(settings: Settings, query: SearchQuery, *, with_model: bool = True, is_shown: bool = False) -> Answer:
    """The answer; `is_shown`: written to the terminal as it comes, with its sources below."""
    with (
        opened_for_reading(settings, primary=database_url) as connection,
        open_retriever(connection, settings, environ=os.environ) as retriever,
        open_answerer(settings, search=retriever.find, environ=os.environ, with_model=with_model) as answerer,
    ):
        asked = Question(query=query)
        answer = _shown(answerer, asked) if is_shown else answerer.ask(asked)
    if answer.input_tokens or answer.output_tokens:
        _book(settings, answer, tenant=query.tenant)
    return answer


def print_sample(settings: Settings) -> None:
    """The sample question and its answer, for those who try it."""
    tenant = next((repository.tenant for repository in settings.repositories), "") or settings.tenant
    query = SearchQuery(text=settings.sample_question, tenant=tenant, k=settings.answering.k)
    # It shows what an answer looks like, whatever the index holds about that.
    shown = settings.model_copy(update={"answering": settings.answering.model_copy(update={"min_evidence": 0.0})})
    print_answer(answered(shown, query))


def print_answer(answer: Answer) -> None:
    """An answer for people, with its sources and what could be asked next."""
    out.print(f"[bold]{escape(answer.question)}[/bold]\n")
    out.print(escape(answer.text))
    _print_rest(answer)


def _book(settings: Settings, answer: Answer, *, tenant: str) -> None:
    """In the database itself: what was read may have been a replica."""
    try:
        with connected(database_url(settings)) as connection:
            book(connection, answer, tenant=tenant, settings=settings.answering, now=datetime.now(UTC))
    except DatabaseUnavailable as error:
        err.print(f"warning: what the answer took is not on record: {error}", markup=False)


def _shown(answerer: Answerer, question: Question) -> Answer:
    """Streamed to the terminal. What is streamed is shown as it is; where the answer differs, it is shown again."""
    written: list[str] = []
    out.print(f"[bold]{escape(question.query.text)}[/bold]\n")
    for event in answerer.stream(question):
        if isinstance(event, Wrote):
            written.append(event.text)
            out.print(escape(event.text), end="")
        elif isinstance(event, Answer):
            out.print()
            if event.text != "".join(written):
                out.print(f"\n[bold]Held against its sources, the answer is[/bold]\n\n{escape(event.text)}")
            _print_rest(event)
            return event
    raise AssertionError("a stream of events ends with an answer")


def _print_rest(answer: Answer) -> None:
    print_sources(answer)
    if answer.follow_ups:
        out.print("\nAsk next:")
        for question in answer.follow_ups:
            out.print(f"  {escape(question)}")
    cost = "" if answer.cost_usd is None else f", {answer.cost_usd:.4f} USD"
    wrote = f", written by {answer.model}, {answer.input_tokens:,} + {answer.output_tokens:,} tokens{cost}"
    err.print(f"{answer.status}, confidence {answer.confidence:.2f}{wrote if answer.model else ''}", markup=False)
    if answer.degraded:
        err.print(f"warning: {answer.degraded}", markup=False)
