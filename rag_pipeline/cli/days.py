"""Days as commands take them: checked, and inside the partitions that there are."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from rag_pipeline.errors import ConfigError
from rag_pipeline.model import DayRange

if TYPE_CHECKING:
    from rag_pipeline.settings import Settings


def chosen_days(settings: Settings, *, from_: str, to: str, partition: str = "") -> DayRange | None:
    """One day, or a range up to today; None when none is named.

    Raises:
        ConfigError: a word that is no day, or a day without a partition.
    """
    if partition and (from_ or to):
        raise ConfigError("--partition and --from/--to exclude each other: name one day, or a range")
    if not (partition or from_ or to):
        return None
    today = datetime.now(UTC).date()
    first = _day(partition or from_, settings, today) if partition or from_ else settings.first_day
    last = first if partition else _day(to, settings, today) if to else today
    if last < first:
        raise ConfigError(f"--from {first} is after --to {last}: swap them")
    return DayRange(first=first, last=last)


def _day(text: str, settings: Settings, today: date) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{text!r} is not a day: write it as YYYY-MM-DD, such as {today}") from error
    if not settings.first_day <= day <= today:
        raise ConfigError(
            f"there is no partition {day}: they run from {settings.first_day} to {today} (UTC); "
            "set start_date in rag_pipeline.toml to begin earlier"
        )
    return day
