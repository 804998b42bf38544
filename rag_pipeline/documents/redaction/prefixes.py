"""Tokens whose only mark is too short or too common for the engine's keywords; each is looked up by its letters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from rag_pipeline.documents.redaction.spans import Finding
from rag_pipeline.documents.redaction.values import is_placeholder, is_random, looks_drawn


class _Prefixed(NamedTuple):
    kind: str
    mark: re.Pattern[str]
    """Begins with fixed letters, which Python's engine skips to; what may stand before them is in `whole`."""
    before: int
    """How far before the mark the token may begin."""
    whole: re.Pattern[str]


_PREFIXED: Final = tuple(
    _Prefixed(kind, re.compile(mark), before, re.compile(rf"(?<![A-Za-z0-9_.$-])(?:{whole})(?![A-Za-z0-9_(])"))
    for kind, mark, before, whole in (
        ("telegram-token", r":AA[A-Za-z0-9_-]{33}", 13, r"(?:bot)?[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
        (
            "discord-token",
            r"\.(?<=[A-Za-z0-9_-]{23}\.)[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27}",
            30,
            r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,45}",
        ),
        ("twilio-key", r"SK[0-9a-f]{32}", 0, r"SK[0-9a-f]{32}"),
        ("sendgrid-key", r"SG\.[A-Za-z0-9_-]{16}", 0, r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
        ("mailgun-key", r"key-[0-9a-f]{32}", 0, r"key-[0-9a-f]{32}"),
        ("mailchimp-key", r"-us[0-9]", 32, r"[0-9a-f]{32}-us[0-9]{1,2}"),
        ("package-registry-token", r"cio[A-Za-z0-9]{32}", 0, r"cio[A-Za-z0-9]{32}"),
        ("vault-token", r"s\.[A-Za-z0-9]{24}", 0, r"s\.[A-Za-z0-9]{24}(?:\.[A-Za-z0-9]{5})?"),
        ("pagerduty-token", r"u\+[A-Za-z0-9_-]{18}", 0, r"u\+[A-Za-z0-9_-]{18}"),
        ("airtable-token", r"pat[A-Za-z0-9]{14}\.", 0, r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    )
)
_MAY_HOLD_NO_RUN: Final = frozenset(["pagerduty-token", "sendgrid-key", "telegram-token"])
"""Of these, hyphens and underscores may break every run of letters and digits."""
_SHORT_MARKS: Final = frozenset(["pagerduty-token", "vault-token"])
"""Code may look like these; a random value does not look like code."""


_FACEBOOK = ("facebook-access-token", re.compile(r"\b\d{15,16}[|%][0-9A-Za-z_-]{27,40}(?![\w-])", re.ASCII))


def find_prefixed(text: str, *, has_run: bool = True) -> Iterator[Finding]:
    """Every token of these formats; `has_run`: what `holds_run` says of the text."""
    for kind, mark, before, whole in _PREFIXED:
        if not has_run and kind not in _MAY_HOLD_NO_RUN:
            continue
        for marked in mark.finditer(text):
            found = whole.match(text, _start(text, marked.start(), before))
            if found and not is_placeholder(found.group()) and (kind not in _SHORT_MARKS or is_random(found.group())):
                yield Finding(kind=kind, start=found.start(), end=found.end(), rank=1)


def find_facebook(text: str, lowered: str) -> Iterator[Finding]:
    """Facebook's tokens, whose format means something only in a text that names it."""
    kind, pattern = _FACEBOOK
    for found in pattern.finditer(text) if "facebook" in lowered else ():
        if not is_placeholder(found.group()) and looks_drawn(found.group()):
            yield Finding(kind=kind, start=found.start(), end=found.end(), rank=1)


def _start(text: str, at: int, before: int) -> int:
    """Where the letters and digits that end at `at` begin, at most `before` characters back."""
    begins = at
    while begins > max(0, at - before) and text[begins - 1].isalnum():
        begins -= 1
    return begins
