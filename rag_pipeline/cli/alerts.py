"""`rag-pipeline alerts test`: whether alerts arrive."""

from __future__ import annotations

import os

import typer

from rag_pipeline.cli.console import out, rows_table
from rag_pipeline.cli.session import AsJson, print_json, settings_of_process
from rag_pipeline.errors import ConfigError, DeliveryFailed

alerts = typer.Typer(
    name="alerts", no_args_is_help=True, rich_markup_mode=None, help="Who is told when something goes wrong."
)


@alerts.callback()
def _group() -> None:
    """Keeps `test` a command of its own."""


@alerts.command(short_help="Send a test message.")
def test(as_json: AsJson = False) -> None:
    """Send a test message by each configured channel, and say what became of it."""
    from rag_pipeline.alerting.channels import channels_of, try_all
    from rag_pipeline.alerting.messages import Alert

    settings = settings_of_process().alerts
    channels = channels_of(settings, environ=os.environ)
    if not channels:
        raise ConfigError("no channel is configured: set one under [alerts], see docs/operations.md")
    message = Alert(kind="test", title="a test of alerts", advice="Nothing has gone wrong.", link=settings.ui_url)
    outcomes = try_all(channels, message)
    if as_json:
        print_json([{"channel": name, "taken": taken, "answer": said} for name, taken, said in outcomes])
    else:
        rows = [(name, "taken" if taken else "FAILED", said) for name, taken, said in outcomes]
        out.print(rows_table("", ("channel", "", "answer"), rows))
    failed = [said for _, taken, said in outcomes if not taken]
    if failed:
        raise DeliveryFailed(failed[0])
