"""What must be true of source items, of whichever source: columns, identities, and the day that holds them.

Reads no contents. How many items there are is judged by `volume`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.schemas import ITEMS
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import SourceItem
from rag_pipeline.quality.expectations import SAMPLE_ROWS, Row
from rag_pipeline.quality.parts import SCHEMA, Measured, PartSuite, about, none_of, wrong_columns

_VERSION: Final = "raw/1"
_COLUMNS: Final = (
    "tenant", "source_type", "source_id", "repository", "day", "source_updated_at", "observed_at", "deleted",
)  # fmt: skip
_LATER_COLUMNS: Final = [f.name for f in dataclasses.fields(SourceItem) if f.default is not dataclasses.MISSING]
_AGAIN: Final = "delete the file and materialize these days again; if it comes back, the source is at fault"

_RULES: Final = (
    *SCHEMA,
    none_of(
        "nameless", name="identity_complete", check="identities",
        expects="every item has a tenant, a source type and a source id", remedy=_AGAIN,
    ),
    none_of(
        "repeated", name="identity_unique", check="identities",
        expects="no item occurs twice in a day of a repository", remedy=_AGAIN,
    ),
    none_of(
        "elsewhere", name="tenant_and_repository", check="identities",
        expects="every item is of the tenant and repository whose file it is in",
        remedy=f"it would be shown to another tenant: {_AGAIN}",
    ),
    none_of(
        "other_day", name="day_of_file", check="days", expects="every item is of the day whose file it is in",
        remedy=_AGAIN,
    ),
    none_of(
        "out_of_window", name="day_of_change", check="days",
        expects="an item's last change (drops: its arrival) is on its day; what is older is in the first partition",
        remedy=(
            "materialize these days again; after a change of start_date, all days from the first on. A wrong clock at "
            "the source is accepted with quality.accepted"
        ),
    ),
)  # fmt: skip

FirstDays: TypeAlias = Mapping[tuple[str, str], date]
"""The first partition of each configured repository, by tenant and name."""


def raw_suite(stage: str, *, first_days: FirstDays, drops: bool = False) -> PartSuite:
    """The suite of one raw stage; of `drops`, the arrival decides the day."""

    def measure(lake: Lake, part: Part) -> Measured:
        return _measure(lake, part, stage=stage, first=_first_day(lake, part, stage, first_days), drops=drops)

    starts = sorted(f"{tenant} {name} {day}" for (tenant, name), day in first_days.items())
    return PartSuite(stage=stage, rules=_RULES, measure=measure, version=combine(_VERSION, str(drops), *starts))


def _first_day(lake: Lake, part: Part, stage: str, first_days: FirstDays) -> date:
    """The first partition of the part's repository; of one that is not configured any more, its oldest file."""
    configured = first_days.get((part.tenant, part.repository))
    return configured or min(lake.days(stage, tenant=part.tenant, repository=part.repository), default=part.day)


def _measure(lake: Lake, part: Part, *, stage: str, first: date, drops: bool) -> Measured:
    found = Measured()
    if wrong_columns(lake, part, found, stage=stage, schema=ITEMS, optional=_LATER_COLUMNS):
        return found
    items = pa.Table.from_batches(lake.read(stage, part, columns=_COLUMNS))
    found.rows = items.num_rows
    offending = {
        "identity_complete": ("nameless", _nameless(items)),
        "identity_unique": ("repeated", _repeated(items)),
        "tenant_and_repository": ("elsewhere", _elsewhere(items, part)),
        "day_of_file": ("other_day", _days(items, "day") != _day(part.day)),
        "day_of_change": ("out_of_window", _out_of_window(items, part, first=first, drops=drops)),
    }
    for rule, (figure, rows) in offending.items():
        found.figures[figure] = int(rows.sum())
        found.add(rule, _rows(items, rows, part))
    return found


def _nameless(items: pa.Table) -> NDArray[np.bool_]:
    empty = np.zeros(items.num_rows, dtype=bool)
    for name in ("tenant", "source_type", "source_id"):
        empty |= _mask(pc.equal(pc.utf8_trim_whitespace(items.column(name)), ""), where_null=True)
    return empty


def _repeated(items: pa.Table) -> NDArray[np.bool_]:
    """All rows but the first of each identity."""
    keys = pc.binary_join_element_wise(
        *(items.column(name).cast(pa.string()) for name in ("tenant", "source_type", "source_id")), "\x1f",
        null_handling="replace", null_replacement="",
    )  # fmt: skip
    return later_occurrences(keys)


def later_occurrences(keys: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Which values occurred before."""
    codes = keys.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    later = np.ones(len(codes), dtype=bool)
    later[np.unique(codes, return_index=True)[1]] = False
    return later


def _elsewhere(items: pa.Table, part: Part) -> NDArray[np.bool_]:
    other_tenant = _mask(pc.not_equal(items.column("tenant"), part.tenant), where_null=True)
    return other_tenant | _mask(pc.not_equal(items.column("repository"), part.repository), where_null=True)


def _out_of_window(items: pa.Table, part: Part, *, first: date, drops: bool) -> NDArray[np.bool_]:
    changed, observed = _days(items, "source_updated_at"), _days(items, "observed_at")
    if drops:
        # A drop is put on the day it is taken in; what it tells of may be older, and a clock may be a little ahead.
        return (observed > _day(part.day)) | (changed > _day(part.day) + np.timedelta64(1, "D"))
    # A clock that is ahead of ours cannot put a change on a day that had not come when it was read.
    expected = np.maximum(np.minimum(changed, observed), _day(first))
    return np.asarray(expected != _day(part.day))


def _days(items: pa.Table, name: str) -> NDArray[np.datetime64]:
    column = items.column(name)
    if column.null_count:
        # A time that is missing is out of every window.
        column = pc.fill_null(column.cast(pa.timestamp("us")), pa.scalar(0, pa.timestamp("us")))
    return np.asarray(column.to_numpy().astype("datetime64[D]"))


def _day(day: date) -> np.datetime64:
    return np.datetime64(day, "D")


def _mask(column: Any, *, where_null: bool) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(column, where_null).to_numpy().astype(bool))


def _rows(items: pa.Table, offending: NDArray[np.bool_], part: Part) -> list[Row]:
    places = np.flatnonzero(offending)[:SAMPLE_ROWS]
    return [about(part) | {f"item's {k}": v for k, v in row.items()} for row in items.take(places).to_pylist()]
