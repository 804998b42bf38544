"""What an alert says, in the form that each channel wants. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_pipeline.model import Json

_MOST_LISTED = 20
_MOST_CHARS = 2_800
"""Slack refuses sections of more than 3,000 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One thing that a person should know."""

    kind: str
    """run_failure, check_failure, check_warning, quarantine, digest or test."""
    title: str
    facts: Sequence[tuple[str, str]] = ()
    """Name and value, a line each."""
    reason: str = ""
    """What was said when it went wrong, with no secret in it."""
    advice: str = ""
    """What to do."""
    link: str = ""


def digest(alerts: Sequence[Alert], *, left_out: int = 0) -> Alert:
    """Many alerts as one; `left_out` more are only counted."""
    total = len(alerts) + left_out
    listed = [(alert.title, alert.link or alert.reason.split("\n", 1)[0]) for alert in alerts[:_MOST_LISTED]]
    more = total - len(listed)
    return Alert(
        kind="digest", title=f"{total:,} alerts", facts=listed, reason=f"and {more:,} more" if more else "",
        advice="Many at once mostly have one cause: begin with the oldest.", link=alerts[0].link if alerts else "",
    )  # fmt: skip


def as_text(alert: Alert) -> str:
    """For e-mail and people."""
    parts = [
        alert.title,
        "\n".join(f"{name}: {value}" for name, value in alert.facts),
        alert.reason,
        alert.advice,
        alert.link,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(alert: Alert) -> Mapping[str, Json]:
    """For a webhook. `text` alone says everything, which is what most chat programs show."""
    return {
        "kind": alert.kind, "title": alert.title, "text": as_text(alert), "reason": alert.reason,
        "advice": alert.advice, "link": alert.link, "facts": dict(alert.facts),
    }  # fmt: skip


def as_slack(alert: Alert) -> Mapping[str, Json]:
    """Slack's message: https://api.slack.com/reference/block-kit/blocks"""
    lines = [f"*{_escaped(name)}*: {_escaped(value)}" for name, value in alert.facts]
    if alert.reason:
        lines.append(f"```{_escaped(_cut(alert.reason, 1_500)).replace('```', '')}```")
    if alert.advice:
        lines.append(_escaped(alert.advice))
    if alert.link:
        lines.append(f"<{alert.link}|Open in Dagster>")
    blocks: list[Json] = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(alert.title, 150), "emoji": False}}
    ]
    if lines:
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": _joined(lines)}})
    # `text` is what notifications show.
    return {"text": _escaped(alert.title), "blocks": blocks, "unfurl_links": False}


def _joined(lines: Sequence[str]) -> str:
    """As many lines as fit: one cut in its middle would break its own markup."""
    kept: list[str] = []
    for line in reversed(lines):
        # From the end: link and advice are worth more than the twentieth fact.
        if sum(map(len, kept)) + len(kept) + len(line) <= _MOST_CHARS:
            kept.append(line)
    return "\n".join(reversed(kept))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
