"""`rag-pipeline restore-drops`: accepted files into the lake and the index again, as after a lost lake."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from filelock import FileLock

from rag_pipeline.cli.console import Watch, out, rows_table
from rag_pipeline.cli.days import chosen_days
from rag_pipeline.cli.session import AsJson, enter_dagster, print_json, settings_of_process
from rag_pipeline.model import DayRange

if TYPE_CHECKING:
    from rag_pipeline.lake.store import Part
    from rag_pipeline.settings import Settings

_ASSETS = "raw_webhook_drops,documents,chunks,embeddings,knowledge_index"
_SHOWN = 10
_HEADERS = ("day", "tenant", "repository", "items")


def restore_drops(
    from_: Annotated[str, typer.Option("--from", help="First day of a range; by default the first there is.")] = "",
    to: Annotated[str, typer.Option("--to", help="Last day of a range; by default today.")] = "",
    tenant: Annotated[list[str] | None, typer.Option(help="Only of this tenant; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take the files in inbox/accepted in again: into the lake on the days they were taken in, then into the index.

    Newer states win and what was forgotten stays so; doing it again changes nothing.
    """
    from rag_pipeline.cli.runs import prepare, print_summary, require_all_read, run_days

    settings = settings_of_process()
    days = chosen_days(settings, from_=from_, to=to) or chosen_days(settings, from_=str(settings.first_day), to="")
    assert days is not None
    enter_dagster(settings)
    url = prepare(settings)
    restored, unusable = _restore(settings, days, tenants=tenant or [])
    touched = sorted(part.day for part in restored)
    ranges = [DayRange(first=touched[0], last=touched[-1])] if touched else []
    rows = [(str(part.day), part.tenant, part.repository, items) for part, items in restored.items()]
    with Watch() as watch:
        summary = run_days(settings, ranges, select=_ASSETS, watch=watch, url=url)
    if as_json:
        named = [dict(zip(_HEADERS, row, strict=True)) for row in rows]
        print_json({"restored": named, "unusable": unusable, "summary": asdict(summary)})
        require_all_read(summary)
        return
    if rows:
        out.print(rows_table("", _HEADERS, rows))
    else:
        out.print("there are no accepted files of these days")
    for name, reason in unusable[:_SHOWN]:
        out.print(f"{name} was not taken: {reason}", soft_wrap=True)
    if len(unusable) > _SHOWN:
        out.print(f"and {len(unusable) - _SHOWN:,} more files were not taken")
    print_summary(summary)
    require_all_read(summary)


def _restore(
    settings: Settings, days: DayRange, *, tenants: list[str]
) -> tuple[dict[Part, int], list[tuple[str, str]]]:  # fmt: skip
    from rag_pipeline.lake.store import Lake
    from rag_pipeline.sources.drops.parts import inbox_of, restore_day
    from rag_pipeline.sources.raw_parts import PartsReport

    found: dict[Part, int] = {}
    unusable: list[tuple[str, str]] = []
    lake, report = Lake(settings.lake_url), PartsReport()
    with FileLock(settings.home / "inbox.lock"):
        for day in inbox_of(settings).accepted_days():
            if day in days:
                now = datetime.now(UTC)
                restored, accepted = restore_day(settings, lake, day, tenants=tenants, now=now, report=report)
                found |= restored
                unusable += [(f"{day}/{name}", reason) for name, reason in accepted.unusable]
    return found, unusable
