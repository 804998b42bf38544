"""Secrets that nothing names, but that stand beside the public half they belong to: AWS's, beside their key's id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rag_pipeline.documents.redaction.spans import Finding, places
from rag_pipeline.documents.redaction.values import entropy, is_hex, is_placeholder, is_random

_MARKS: Final = ("AKIA", "ASIA")
_KEY_ID = re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])")
_SECRET = re.compile(r"(?:(?<=(?:AKIA|ASIA)[A-Z0-9]{16}/)|(?<![A-Za-z0-9+=/_-]))[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=_-])")
_NEAR: Final = 200
"""Characters between the two: cells of a row, lines below each other, arguments of a call."""
_LEAST_ENTROPY: Final = 4.0
"""Of 40 characters drawn from 64: 4.6 bits each; a path has fewer."""


def find_companions(text: str) -> Iterator[Finding]:
    """AWS's secret keys near an access key's id, whatever stands between them."""
    for mark in _MARKS:
        for at in places(text, mark):
            if _KEY_ID.match(text, at):
                yield from _near(text, at)


def _near(text: str, at: int) -> Iterator[Finding]:
    for found in _SECRET.finditer(text, max(0, at - _NEAR), at + _NEAR):
        value = found.group()
        if is_hex(value) or is_placeholder(value) or not is_random(value) or entropy(value) < _LEAST_ENTROPY:
            continue
        yield Finding(kind="aws-secret-access-key", start=found.start(), end=found.end(), rank=2)
