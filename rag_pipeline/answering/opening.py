"""Answers as the settings have them: the model that they name, what its tokens cost, and what it took on record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial

from rag_pipeline.answering.answerer import Answerer
from rag_pipeline.answering.language_model import LanguageModel
from rag_pipeline.answering.models import make_language_model
from rag_pipeline.index.database import Connection
from rag_pipeline.index.usage import book_answer
from rag_pipeline.model import Answer
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found
from rag_pipeline.settings import Answering, Settings, cost_of


@contextmanager
def open_answerer(
    settings: Settings,
    *,
    search: Callable[[SearchQuery], Found],
    environ: Mapping[str, str],
    with_model: bool = True,
    make_model: Callable[..., LanguageModel | None] = make_language_model,
    watched: Callable[[LanguageModel], LanguageModel] = lambda model: model,
) -> Iterator[Answerer]:
    """What answers questions from what `search` finds; `watched` is put around the model.

    Raises:
        ConfigError: the language model cannot be made as it is configured.
    """
    with ExitStack() as closing:
        model = make_model(settings.answering, environ=environ) if with_model else None
        if model is not None:
            closing.callback(model.close)
            model = watched(model)
        yield Answerer(
            search=search, model=model, settings=settings.answering, prices=partial(cost_of, prices=settings.prices)
        )


def book(
    connection: Connection, answer: Answer, *, tenant: str, settings: Answering, now: datetime, run_id: str = ""
) -> None:
    """Put on record what the model of an answer took; nothing where it took nothing."""
    book_answer(
        connection, tenant=tenant, provider=settings.provider, model=settings.model, run_id=run_id,
        tokens=answer.input_tokens + answer.output_tokens, cost_usd=answer.cost_usd, now=now,
    )  # fmt: skip
