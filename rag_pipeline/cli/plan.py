"""`rag-pipeline plan`: what a refresh would do and cost; heavy imports wait for it."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_pipeline.cli.console import Watch
from rag_pipeline.cli.days import chosen_days
from rag_pipeline.cli.session import AsJson, print_json, settings_of_process


def plan(
    from_: Annotated[str, typer.Option("--from", help="First day of a range.")] = "",
    to: Annotated[str, typer.Option("--to", help="Last day of a range; by default today.")] = "",
    as_json: AsJson = False,
) -> None:
    """Count what a refresh of these days, or of whatever the index has not seen, would embed, and what that costs.

    Git repositories are fetched; lake, index and ledger are left as they are, and no model is asked.
    """
    from rag_pipeline.cli.estimates import estimate_refresh, of_estimate, print_estimate

    settings = settings_of_process()
    chosen = chosen_days(settings, from_=from_, to=to)
    with Watch() as watch:
        found = estimate_refresh(settings, chosen, watch=watch)
    if as_json:
        print_json(of_estimate(found))
    else:
        print_estimate(found)
