"""`rag-pipeline quarantine …`: what could not be processed, trying it again, and leaving it out."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from rag_pipeline.cli.console import Watch, out, rows_table
from rag_pipeline.cli.session import AsJson, enter_dagster, print_json, settings_of_process
from rag_pipeline.errors import UserError

quarantine = typer.Typer(
    name="quarantine", no_args_is_help=True, rich_markup_mode=None,
    help="Items that could not be processed: every run of their day tries them again.",
)  # fmt: skip


@quarantine.command("list", short_help="Show what is in quarantine.")
def list_items(as_json: AsJson = False) -> None:
    """Show what is in quarantine, and why."""
    from rag_pipeline.embedded import database_url
    from rag_pipeline.index.database import connected
    from rag_pipeline.index.quarantine import quarantined

    settings = settings_of_process()
    with connected(database_url(settings)) as connection:
        items = quarantined(connection)
    if as_json:
        print_json([asdict(item) for item in items])
        return
    if not items:
        out.print("nothing is in quarantine")
        return
    rows = [
        (i.tenant, i.source_id, i.stage, str(i.day), i.attempts,
         "given up" if i.is_given_up(settings.quarantine) else "is tried again", i.reason[:200])
        for i in items
    ]  # fmt: skip
    out.print(rows_table("", ("tenant", "id", "stage", "day", "attempts", "", "reason"), rows))


@quarantine.command(short_help="Try items again now.")
def retry(
    ids: Annotated[
        list[str] | None, typer.Argument(help="As `quarantine list` shows them; all when none is named.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the days of items again, those that are given up too."""
    from rag_pipeline.cli.runs import prepare, print_summary, run_days
    from rag_pipeline.index.database import connected
    from rag_pipeline.index.quarantine import RECONCILIATION, quarantined
    from rag_pipeline.model import DayRange

    settings = settings_of_process()
    enter_dagster(settings)
    url = prepare(settings)
    with connected(url) as connection:
        items = [i for i in quarantined(connection) if i.stage != RECONCILIATION]
    if unknown := sorted(set(ids or ()) - {item.source_id for item in items}):
        raise UserError(f"{unknown[0]!r} is not in quarantine: see `rag-pipeline quarantine list`")
    today = datetime.now(UTC).date()
    chosen = {i.day for i in items if (not ids or i.source_id in ids) and settings.first_day <= i.day <= today}
    with Watch() as watch:
        ranges = [DayRange(first=day, last=day) for day in sorted(chosen)]
        summary = run_days(settings, ranges, select="", watch=watch, url=url)
    if as_json:
        print_json(asdict(summary))
    else:
        print_summary(summary)


@quarantine.command(short_help="Leave an item out.")
def accept(
    source_id: Annotated[str, typer.Argument(metavar="ID", help="As `quarantine list` shows it.")],
    note: Annotated[str, typer.Option(help="Why it may stay out; kept with it.")],
    tenant: Annotated[str, typer.Option(help="Only of this tenant.")] = "",
) -> None:
    """Leave an item out of the index as it is now; a newer state of it that fails, too, comes back into quarantine."""
    from rag_pipeline.embedded import database_url
    from rag_pipeline.index.database import connected
    from rag_pipeline.index.quarantine import accept as accept_item

    settings = settings_of_process()
    with connected(database_url(settings)) as connection:
        found = accept_item(connection, source_id, note=note, now=datetime.now(UTC), tenant=tenant or None)
    if not found:
        raise UserError(f"{source_id!r} is not in quarantine: see `rag-pipeline quarantine list`")
    out.print(f"{source_id} stays out until it changes")
