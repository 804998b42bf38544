"""`rag-pipeline queries`: what was asked over HTTP and MCP, and what people thought of it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, time, timedelta
from typing import Annotated

import typer

from rag_pipeline.cli.console import out, rows_table
from rag_pipeline.cli.session import AsJson, print_json, settings_of_process

_SHOWN_CHARS = 100


def queries(
    since: Annotated[str, typer.Option(help="First day, YYYY-MM-DD (UTC); by default a week ago.")] = "",
    tenant: Annotated[str, typer.Option(help="Of this tenant; by default of all.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="So many questions.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show the questions of the query log, worst first: thumbs down, then unanswered, then answered unsurely."""
    from rag_pipeline.embedded import database_url
    from rag_pipeline.index.database import connected
    from rag_pipeline.index.feedback import asked_questions
    from rag_pipeline.index.migrations import migrate
    from rag_pipeline.retrieval.query import day_of

    settings = settings_of_process()
    day = day_of(since, "--since")
    first = datetime.combine(day, time(), UTC) if day else datetime.now(UTC) - timedelta(days=7)
    url = database_url(settings)
    migrate(url)
    with connected(url) as connection:
        asked = asked_questions(connection, since=first, tenant=tenant or None, limit=limit)
    if as_json:
        print_json([asdict(question) for question in asked])
        return
    if not asked:
        kept = "" if settings.serving.query_log else "; the query log is off (serving.query_log)"
        out.print(f"nothing was asked since {first:%Y-%m-%d}{kept}")
        return
    rows = [
        (
            q.tenant, q.question[:_SHOWN_CHARS], q.asked, q.unanswered, q.helpful, q.unhelpful,
            "" if q.confidence is None else f"{q.confidence:.2f}", "; ".join(q.reasons)[:_SHOWN_CHARS],
        )
        for q in asked
    ]  # fmt: skip
    columns = ("tenant", "question", "asked", "unanswered", "helpful", "unhelpful", "confidence", "reasons")
    out.print(rows_table("", columns, rows))
