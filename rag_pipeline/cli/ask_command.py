"""`rag-pipeline ask`: its words to a query; heavy imports wait for it."""

from __future__ import annotations

import dataclasses
import sys
from typing import Annotated

import typer

from rag_pipeline.cli import session
from rag_pipeline.cli.session import AsJson


def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    k: Annotated[
        int | None, typer.Option("-k", "--k", help="Look at so many hits; by default answering.k.", show_default=False)
    ] = None,
    tenant: Annotated[str, typer.Option(help="Whose knowledge; by default the configured tenant.")] = "",
    scope: Annotated[list[str] | None, typer.Option(help="Also what this scope may see; repeatable.")] = None,
    repo: Annotated[str, typer.Option(help="Only this repository.")] = "",
    source_type: Annotated[str, typer.Option(help="Only docs, code, github_issue, github_pull_request, ….")] = "",
    language: Annotated[str, typer.Option(help="Only this language.")] = "",
    path_prefix: Annotated[str, typer.Option(help="Only paths that begin like this.")] = "",
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Quote the sources, though a language model is configured.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from the index, with citations; by the configured language model, or in quotes without one.

    An answer that nothing is known is an answer, too: the exit code says only whether it could be looked for.
    """
    from rag_pipeline.cli.ask import answered, print_answer
    from rag_pipeline.retrieval.query import SearchQuery

    settings = session.settings_of_process()
    query = SearchQuery(
        text=question, k=settings.answering.k if k is None else k, tenant=tenant or settings.tenant,
        scopes=tuple(scope or ()), repository=repo or None, source_type=source_type or None, language=language or None,
        path_prefix=path_prefix or None,
    )  # fmt: skip
    answer = answered(settings, query, with_model=not no_model, is_shown=not as_json and sys.stdout.isatty())
    if as_json:
        session.print_json(dataclasses.asdict(answer))
    elif not sys.stdout.isatty():
        print_answer(answer)
