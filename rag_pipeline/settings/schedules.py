"""The `[schedules]` section: when runs start without a person, once they are switched on in the UI."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from pydantic import field_validator

from rag_pipeline.settings.sections import Section

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7))
_STEP = re.compile(r"(?:\*|(\d+)(?:-(\d+))?)(?:/([1-9]\d*))?")
_NAMED_TIMES = {"daily": "5 2 * * *", "hourly": "5 * * * *"}


def cron_expression(text: str) -> str:
    """A cron expression of five fields of numbers, checked, with single spaces between them."""
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ValueError('must have five fields (minute, hour, day of month, month, day of week), such as "5 2 * * *"')
    for field, (name, lowest, highest) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            found = _STEP.fullmatch(part)
            first, last = (int(found[n] or found[1] or lowest) if found else -1 for n in (1, 2))
            if not lowest <= first <= last <= highest:
                raise ValueError(
                    f"{part!r} is no {name}: write numbers from {lowest} to {highest}, as 3, 1-5, 1,15, * or */2"
                )
    return " ".join(fields)


class Schedules(Section):
    """When what happens; each schedule is switched on in the UI."""

    timezone: str = "UTC"
    """Of `scheduled_refresh`; a name such as `Europe/Berlin`. Partitions are days in UTC whatever it is."""
    refresh: str = "daily"
    """`daily` (02:05), `hourly` (five past), or a cron expression."""

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (OSError, ValueError, KeyError) as error:
            raise ValueError("is no time zone: write it as UTC or Europe/Berlin") from error
        return name

    @field_validator("refresh")
    @classmethod
    def _is_a_time(cls, when: str) -> str:
        return when if when in _NAMED_TIMES else cron_expression(when)

    @property
    def refresh_cron(self) -> str:
        """When the refresh schedule ticks, as cron."""
        return _NAMED_TIMES.get(self.refresh, self.refresh)
