"""Metadata worth reading: tables, numbers with units, and where a run's metadata goes. Formatting only."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import dagster as dg

from rag_pipeline.defs import versions
from rag_pipeline.defs.plots import bars_by_day, bars_by_name, histogram
from rag_pipeline.defs.versions import Fingerprints
from rag_pipeline.documents.redaction import redact
from rag_pipeline.model import DayRange, SourceItem
from rag_pipeline.settings import usd

Metadata: TypeAlias = dict[str, dg.MetadataValue]
Result: TypeAlias = dg.MaterializeResult[None]


def results(
    context: dg.AssetExecutionContext,
    days: DayRange,
    metadata: Mapping[str, Metadata],
    by_day: Mapping[str, Mapping[str, int]],
    *,
    fingerprints: Mapping[str, Fingerprints],
) -> Iterator[Result]:
    """One result per asset, with the version of its data, made of what its parts hold (`fingerprints`).

    The run's metadata goes to its last partition, the others get their own number of rows: a result's metadata is
    copied to every partition of a range, and three years of plots would be gigabytes.
    """
    several = len(days) > 1
    for name, entries in metadata.items():
        key = dg.AssetKey(name)
        if key not in context.selected_asset_keys:
            continue
        held, rows = versions.by_day(fingerprints[name]), by_day.get(name, {})
        entries = dict(entries)
        if several:
            for day in sorted({*held, *rows} - {days.last.isoformat()}):
                context.add_asset_metadata(_of_day(day, held, rows), asset_key=key, partition_key=day)
        entries |= _of_day(days.last.isoformat(), held, rows)
        if several:
            context.add_asset_metadata(entries, asset_key=key, partition_key=days.last.isoformat())
        version = versions.data_version(context, key, days, held)
        yield dg.MaterializeResult(asset_key=key, metadata={} if several else entries, data_version=version)


def _of_day(day: str, held: Mapping[str, str], rows: Mapping[str, int]) -> Metadata:
    found: Metadata = {}
    if day in rows:
        found["dagster/partition_row_count"] = dg.MetadataValue.int(rows[day])
    if day in held:
        found[versions.DATA_FINGERPRINT] = dg.MetadataValue.text(held[day])
    return found


def size(n: int) -> str:
    """Bytes for people."""
    amount = float(n)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} GB"


def cost(tokens: int, price: float | None) -> Metadata:
    """What tokens cost at a price per million; nothing where nobody knows the price."""
    return {} if price is None else {"estimated_cost_usd": dg.MetadataValue.float(round(usd(tokens, price), 6))}


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> dg.MetadataValue:
    """A Markdown table; cells are cut, and cannot break out of it."""
    lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return dg.MetadataValue.md("\n".join(lines))


def cell(value: object, *, limit: int = 160) -> str:
    """One table cell: a line of text that is no Markdown of its own."""
    # Raw items are shown as well, and their titles and paths were not cleaned.
    text = redact(" ".join(str(value).split())).text
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def items_preview(items: Sequence[SourceItem]) -> dg.MetadataValue:
    """The first items of a run."""
    rows = [
        (
            item.path or item.metadata.get("reference") or item.source_id,
            item.title or item.language or "",
            "deleted" if item.deleted else size(len(item.content)),
            item.source_updated_at.strftime("%Y-%m-%d %H:%M"),
            item.metadata.get("author", ""),
        )
        for item in items
    ]
    return table(("item", "title or language", "size", "changed (UTC)", "by"), rows)


def counts(numbers: Mapping[str, int]) -> dg.MetadataValue:
    """What was skipped, and why."""
    rows = sorted(numbers.items(), key=lambda entry: -entry[1])
    return table(("reason", "files"), rows) if rows else dg.MetadataValue.text("nothing")


def plot_by_day(title: str, by_day: Mapping[str, int]) -> Metadata:
    """A picture of rows per day, when there is more than one day to compare."""
    return {"per_day": dg.MetadataValue.md(bars_by_day(title, by_day))} if len(by_day) > 1 else {}


def plot_by_name(title: str, counts: Mapping[str, int]) -> Metadata:
    """A picture of what there is how often, when there is more than one thing to compare."""
    return {"by_name": dg.MetadataValue.md(bars_by_name(title, counts))} if len(counts) > 1 else {}


def plot_lengths(title: str, lengths: Sequence[int], *, unit: str) -> Metadata:
    """A picture of how lengths are distributed."""
    return {"lengths": dg.MetadataValue.md(histogram(title, lengths, unit=unit))} if lengths else {}
