"""Numbers, sizes, times and lengths of time as people read them."""

from __future__ import annotations

from datetime import datetime, timedelta


def number(value: float) -> str:
    """With separators; large ones shortened: 1,234 and 1.2 M."""
    if abs(value) < 100_000:
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
    for size, unit in ((1e9, "G"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value / 1e3:,.0f} k"


def bytes_of(value: float) -> str:
    """A size in bytes."""
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} GB"


def share(value: float | None) -> str:
    """A share of 1 in percent."""
    return "–" if value is None else f"{100 * value:.1f} %"


def money(value: float) -> str:
    """US dollars; small amounts with the digits that tell them from nothing."""
    return f"${value:,.2f}" if value >= 0.01 or value == 0 else f"${value:.4f}"


def moment(value: datetime | None) -> str:
    """A time in UTC, without seconds."""
    return f"{value:%Y-%m-%d %H:%M}" if value else "never"


def span(value: timedelta | None) -> str:
    """A length of time in its two largest units."""
    if value is None:
        return "–"
    seconds = max(0, int(value.total_seconds()))
    days, hours, minutes = seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
