"""`rag-pipeline report`: the same page and picture that the pipeline_report asset makes, from the shell."""

from __future__ import annotations

import webbrowser
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rag_pipeline.cli.console import err, out, rows_table
from rag_pipeline.cli.dagster_storage import opened_instance
from rag_pipeline.errors import ConfigError
from rag_pipeline.index.database import connected
from rag_pipeline.lake.store import Lake
from rag_pipeline.reporting import Summary, Written, gather, page, picture, summarise, write_report
from rag_pipeline.reporting.files import PAGE_NAME
from rag_pipeline.reporting.page import key_numbers
from rag_pipeline.settings import Settings


def make_report(settings: Settings, url: str, output: Path | None) -> tuple[Summary, Written]:
    """Write the report; its key numbers, and where it lies.

    Raises:
        ConfigError: the output is a folder, or is not called like a page.
    """
    from rag_pipeline.defs.reuse import reuse_history

    path = output or settings.home / "reports" / PAGE_NAME
    if path.is_dir() or path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--output {path}: name a file that ends in .html; the picture is written beside it")
    now, days = datetime.now(UTC), settings.report.days
    with opened_instance() as instance, connected(url) as connection:
        reuse = reuse_history(instance, since=now - timedelta(days=days))
        report = gather(connection, Lake(settings.lake_url), days=days, reuse=reuse, now=now)
    return summarise(report), write_report(path.parent, page=page(report), picture=picture(report), name=path.name)


def print_report(summary: Summary, written: Written) -> None:
    """The key numbers, and where to look for the rest."""
    rows = [(name, f"{value} ({remark})") for name, value, remark, _ in key_numbers(summary)]
    out.print(rows_table("", ("report", ""), [*rows, ("Page", str(written.page)), ("Picture", str(written.picture))]))


def open_page(written: Written) -> None:
    """Show the page in the browser, if there is one."""
    if not webbrowser.open(written.page.resolve().as_uri()):
        err.print(f"no browser was found: open {written.page} yourself")
