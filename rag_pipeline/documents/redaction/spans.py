"""Where a text holds secrets, and what stands there instead. Positions are characters of the text as it was given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MARKER_START: Final = "[REDACTED:"
MARKER = re.compile(re.escape(MARKER_START) + r"[a-z0-9-]+\]")
"""What a redacted value became: never a secret itself."""


_IN_RUNS = bytes(code < 128 and (chr(code).isalnum() or chr(code) == "+") for code in range(256))
_RUN: Final = b"\x01" * 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One redacted value: `text[start:end]` became `replacement`."""

    kind: str
    """What it was, such as `github-token`; lower case with hyphens."""
    start: int
    end: int
    replacement: str
    """The marker, followed by the newlines that the value held: no line moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text without its secrets, and where they stood in the text that was given: disjoint spans, in order."""

    text: str
    spans: Sequence[Span] = ()

    def moved(self, position: int) -> int:
        """Where a position of the given text is now; one inside a redacted value is now at its marker's end."""
        shift = 0
        for span in self.spans:
            if position <= span.start:
                break
            if position < span.end:
                return span.start + shift + len(span.replacement)
            shift += len(span.replacement) - (span.end - span.start)
        return position + shift


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a detector takes for a secret: `text[start:end]`."""

    kind: str
    start: int
    end: int
    rank: int = 1
    """Where findings overlap, the lowest rank names the kind."""


def places(text: str, word: str) -> Iterator[int]:
    """Where the word stands, each place behind the one before."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def holds_run(text: str) -> bool:
    """Whether twenty letters and digits stand beside each other anywhere, as in most tokens and keys; quickly."""
    return _RUN in text.encode("utf-8", errors="replace").translate(_IN_RUNS)


def apply(text: str, findings: Iterable[Finding]) -> Redacted:
    """The text with the findings replaced; those that overlap become one."""
    spans: list[Span] = []
    pieces: list[str] = []
    at = 0
    for found in merged(findings):
        value = text[found.start : found.end]
        replacement = f"[REDACTED:{found.kind}]" + "\n" * value.count("\n")
        spans.append(Span(kind=found.kind, start=found.start, end=found.end, replacement=replacement))
        pieces += [text[at : found.start], replacement]
        at = found.end
    return Redacted(text="".join([*pieces, text[at:]]), spans=spans)


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Disjoint findings in order; of overlapping ones, the kind of the lowest rank."""
    whole: list[Finding] = []
    for found in sorted(findings, key=lambda f: (f.start, -f.end)):
        if whole and found.start < whole[-1].end:
            last = whole.pop()
            best = min(last, found, key=lambda f: f.rank)
            end = max(last.end, found.end)
            found = Finding(kind=best.kind, start=last.start, end=end, rank=best.rank)
        if found.start < found.end:
            whole.append(found)
    return whole


def composed(first: Redacted, second: Redacted) -> Redacted:
    """Two redactions after each other as one; `second` is of the text of `first`, and touches none of its markers."""
    shifted = [_before(first, span) for span in second.spans]
    return Redacted(text=second.text, spans=sorted([*first.spans, *shifted], key=lambda span: span.start))


def _before(first: Redacted, span: Span) -> Span:
    """A span of the redacted text as one of the text that was given."""
    shift = 0
    for earlier in first.spans:
        if earlier.start + shift >= span.end:
            break
        shift += len(earlier.replacement) - (earlier.end - earlier.start)
    return Span(kind=span.kind, start=span.start - shift, end=span.end - shift, replacement=span.replacement)
