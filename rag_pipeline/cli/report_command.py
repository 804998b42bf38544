"""`rag-pipeline report` as it is typed; `report` does what it says."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from rag_pipeline.cli.session import AsJson, enter_dagster, print_json, settings_of_process


def report(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The HTML file; by default RAG_HOME/reports/pipeline_report.html."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a page, and a picture beside it: what the index holds, its growth, freshness, quality and cost."""
    from rag_pipeline.cli.report import make_report, open_page, print_report
    from rag_pipeline.cli.runs import prepare

    settings = settings_of_process()
    enter_dagster(settings)
    made, written = make_report(settings, prepare(settings), output)
    if as_json:
        print_json({**dataclasses.asdict(made), "page": written.page, "picture": written.picture})
    else:
        print_report(made, written)
    if open_:
        open_page(written)
