"""`rag-pipeline ask` at work: a question to an answer, written to the terminal while it is made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial

from rich.markup import escape

from rag_pipeline.answering.answerer import Answerer, Question, Wrote
from rag_pipeline.answering.models import make_language_model
from rag_pipeline.cli.console import err, out, print_sources
from rag_pipeline.embedded import database_url
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.usage import book_answer
from rag_pipeline.model import Answer
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import open_retriever
from rag_pipeline.settings import Settings, cost_of


def answered(settings: Settings, query: SearchQuery, *, with_model: bool = True, is_shown: bool = False) -> Answer:
    """The answer; `is_shown`: written to the terminal as it comes, with its sources below."""
    with connected(database_url(settings)) as connection, open_answerer(
        settings, connection, with_model=with_model
    ) as answerer:  # fmt: skip
        asked = Question(query=query)
        answer = _shown(answerer, asked) if is_shown else answerer.ask(asked)
        book_answer(
            connection, tenant=query.tenant, provider=settings.answering.provider, model=settings.answering.model,
            tokens=answer.input_tokens + answer.output_tokens, cost_usd=answer.cost_usd, now=datetime.now(UTC),
        )  # fmt: skip
    return answer


@contextmanager
def open_answerer(settings: Settings, connection: Connection, *, with_model: bool = True) -> Iterator[Answerer]:
    """What answers questions over a connection as the settings say.

    Raises:
        ConfigError: the language model or the reranker cannot be made as it is configured.
    """
    with ExitStack() as closing:
        model = make_language_model(settings.answering, environ=os.environ) if with_model else None
        if model is not None:
            closing.callback(model.close)
        retriever = closing.enter_context(open_retriever(connection, settings, environ=os.environ))
        yield Answerer(
            search=retriever.find, model=model, settings=settings.answering,
            prices=partial(cost_of, prices=settings.prices),
        )  # fmt: skip


def print_answer(answer: Answer) -> None:
    """An answer for people, with its sources and what could be asked next."""
    out.print(f"[bold]{escape(answer.question)}[/bold]\n")
    out.print(escape(answer.text))
    _print_rest(answer)


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
