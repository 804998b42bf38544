"""All detectors over one text, and its redaction. Pure: the same text and settings give the same result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rag_pipeline.documents.redaction.addresses import (
    find_emails,
    find_in_calls,
    find_in_headers,
    find_in_urls,
)
from rag_pipeline.documents.redaction.assignments import find_assignments
from rag_pipeline.documents.redaction.commands import find_given, find_in_commands
from rag_pipeline.documents.redaction.companions import find_companions
from rag_pipeline.documents.redaction.cookies import find_in_cookies
from rag_pipeline.documents.redaction.encoded import find_escaped, find_in_base64
from rag_pipeline.documents.redaction.engine import SHORTEST, find_tokens, occurrences
from rag_pipeline.documents.redaction.key_blocks import find_key_blocks
from rag_pipeline.documents.redaction.prefixes import find_facebook, find_prefixed
from rag_pipeline.documents.redaction.prose import find_foreign, find_pairs
from rag_pipeline.documents.redaction.spans import (
    MARKER,
    MARKER_START,
    Finding,
    Redacted,
    apply,
    composed,
    holds_run,
    merged,
)
from rag_pipeline.documents.redaction.tables import find_in_tables
from rag_pipeline.documents.redaction.values import is_random

REDACTION_VERSION = "5"
"""Raised whenever the same text could be redacted in another way."""

_MOST_ROUNDS = 1000  # one or two are the rule; each takes away some text that no marker holds
_TWO_LETTERS = "\u0130"
"""The only one whose small letter is two characters: places in small letters must be those of the text."""


def redact(text: str, *, emails: bool = False, allowed: Sequence[str] = (), code: bool = False) -> Redacted:
    """The text with every secret replaced by `[REDACTED:<kind>]`; its number of newlines stays.

    `emails` redacts people's addresses too; values that one of the regular expressions in `allowed` matches as a whole
    stay; `code` says that the text is a program, in which words without quotes are names.

    Redacting the result again changes nothing.
    """
    patterns = [re.compile(pattern) for pattern in allowed]
    done = Redacted(text=text)
    for _ in range(_MOST_ROUNDS):
        findings = list(_wanted(done.text, find_secrets(done.text, emails=emails, code=code), patterns))
        if not findings:
            break
        done = composed(done, apply(done.text, _everywhere(done.text, findings)))
    return done


def find_secrets(text: str, *, emails: bool = False, code: bool = False) -> Iterator[Finding]:
    """What the detectors find, overlaps included."""
    yield from _find_written(text, emails=emails, code=code)
    yield from find_escaped(text, _find_tokens)
    yield from find_in_base64(text, _find_written)


def _find_written(text: str, *, emails: bool = False, code: bool = False) -> Iterator[Finding]:
    """Of a text as it is written, with nothing decoded."""
    lowered = text.replace(_TWO_LETTERS, "i").lower()
    yield from find_key_blocks(text)
    scanned = find_tokens(text)
    yield from scanned.findings
    if scanned.has_words:
        yield from find_facebook(text, lowered)
        yield from find_given(text, lowered)
        yield from find_pairs(text, lowered)
    yield from find_foreign(text, lowered, has_words=scanned.has_words, code=code)
    has_run = holds_run(text)
    yield from find_prefixed(text, has_run=has_run)
    if has_run:
        yield from find_companions(text)
    yield from find_in_urls(text)
    yield from find_in_headers(text, lowered)
    yield from find_in_calls(text, lowered, has_words=scanned.has_words)
    yield from find_in_cookies(text, lowered)
    yield from find_in_commands(text, lowered)
    yield from find_assignments(text, lowered, code=code)
    if not code:
        yield from find_in_tables(text)
    if emails:
        yield from find_emails(text)


def _find_tokens(text: str) -> Iterator[Finding]:
    yield from find_tokens(text).findings
    yield from find_prefixed(text)


def _wanted(text: str, findings: Iterable[Finding], allowed: Sequence[re.Pattern[str]]) -> Iterator[Finding]:
    """Without what is allowed, and without what holds a marker: that was redacted already."""
    has_markers = MARKER_START in text
    for found in findings:
        value = text[found.start : found.end]
        touches = has_markers and _touches_marker(text, found)
        if not touches and not any(pattern.fullmatch(value) for pattern in allowed):
            yield found


def _touches_marker(text: str, found: Finding) -> bool:
    near = MARKER.finditer(text, max(0, found.start - 80), min(len(text), found.end + 80))
    return any(marker.start() < found.end and found.start < marker.end() for marker in near)


def _everywhere(text: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, and every other place where such a value stands without what gave it away the first time."""
    kinds = {
        value: found.kind
        for found in findings
        if found.kind not in ("private-key", "email")
        and len(value := text[found.start : found.end]) >= SHORTEST
        and "\n" not in value
        and is_random(value)
    }
    return merged([*findings, *occurrences(text, kinds, rank=8)])
