"""What tests ask of times that lie beside each other."""

from __future__ import annotations


def most_at_once(spans: list[tuple[float, float]]) -> int:
    """Of intervals, how many overlap at the fullest moment."""
    changes = sorted([(end, -1) for _, end in spans] + [(begin, 1) for begin, _ in spans])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most
