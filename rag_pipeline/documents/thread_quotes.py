"""What a reply repeats of the thread it is in: quoted lines that were said before.

A quote of anything else stays: it may be the only place where the words stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from itertools import groupby
from typing import TypeAlias

from rag_pipeline.documents.thread_mail import FOOTERS, MAX_ATTRIBUTION_LINES, attribution_start, drop_attribution
from rag_pipeline.documents.thread_markup import Line, visible_lines

_FEW_WORDS = 4
"""A line of fewer words may occur by chance."""
_MANY_WORDS = 8
"""A line of as many words is repeated when most of it is: what was selected on a page lacks its formulas."""
_MOST = 0.75
_RUN = 3
_TOKEN = re.compile(r"https?://[^\s<>()\[\]\"'`]+|[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_MARKS = re.compile(r"[ \t]*(?:>[ \t]?)+")
_ELLIPSIS = re.compile(r"[\[(]?(?:\.{3}|…|\bsnip\b)[\])]?")

_Run: TypeAlias = tuple[str, ...]


class Said:
    """What was said in a thread so far; a text is looked into when it is first asked for."""

    def __init__(self) -> None:
        self._unread: list[str] = []
        self._runs: set[_Run] = set()

    def add(self, text: str) -> None:
        """What is said next."""
        self._unread.append(text)

    def share(self, words: Sequence[str], links: Sequence[str]) -> float:
        """How much of this was said before, 0 to 1: of each three words in a row, or of the fewer that there are."""
        for unread in self._unread:
            # A quote repeats what was written, or what was shown of it.
            said, linked = _words("\n".join([unread, *(line.text for line in visible_lines(unread))]))
            self._runs.update(*(_runs(said, length) for length in range(1, _RUN + 1)), ((link,) for link in linked))
        self._unread.clear()
        runs = list(_runs(words, min(_RUN, len(words))) if words else ((link,) for link in links))
        return sum(run in self._runs for run in runs) / len(runs) if runs else 1.0


def _words(text: str) -> tuple[list[str], list[str]]:
    """Words and links, apart: an e-mail shows a link's words without its address, or the address behind them."""
    tokens = _TOKEN.findall(text.casefold())
    links = [token.rstrip(".,;:!?") for token in tokens if "://" in token]
    return ([token for token in tokens if "://" not in token] if links else tokens), links


def _runs(words: Sequence[str], length: int) -> Iterator[_Run]:
    return zip(*(words[start:] for start in range(length)), strict=False)


class _Kind(Enum):
    FRESH = auto()
    REPEATED = auto()
    PERHAPS = auto()
    """Repeated, but so short that it may be chance: it goes with its neighbours."""
    EMPTY = auto()


def without_repetition(lines: Sequence[Line], said: Said) -> list[Line]:
    """The lines without quoted ones that repeat what was said, and without `On … wrote:` before those."""
    kept: list[Line] = []
    for quoted, group in groupby(lines, key=lambda line: line.quoted):
        block = list(group)
        if not quoted:
            kept += block
            continue
        left = _fresh_lines(block, said)
        if len(left) < len(block):
            drop_attribution(kept)
        kept += left
    return kept


def _fresh_lines(block: Sequence[Line], said: Said) -> list[Line]:
    """The lines of one quote that say something new; fenced code is new or repeated as a whole."""
    units = _units(block)
    kinds = [_kind(unit, said) for unit in units]
    _doubt_attributions(units, kinds)
    told = [number for number, kind in enumerate(kinds) if kind is not _Kind.EMPTY]
    for before, number, after in zip([-1, *told], told, [*told[1:], -1], strict=False):
        beside = [kinds[other] for other in (before, after) if other >= 0]
        if kinds[number] is _Kind.PERHAPS and _Kind.FRESH not in beside:
            kinds[number] = _Kind.REPEATED
    if _Kind.REPEATED not in kinds:
        return list(block)
    kept = [kind is _Kind.FRESH or kind is _Kind.PERHAPS for kind in kinds]
    for number in range(1, len(kinds) - 1):
        if kinds[number] is _Kind.EMPTY:
            kept[number] = kept[number - 1]
    return [line for unit, keep in zip(units, kept, strict=True) if keep for line in unit]


def _units(block: Sequence[Line]) -> list[list[Line]]:
    units: list[list[Line]] = []
    for code, group in groupby(block, key=lambda line: line.code):
        lines = list(group)
        units += [lines] if code else [[line] for line in lines]
    return units


def _kind(unit: Sequence[Line], said: Said) -> _Kind:
    text = "\n".join(_MARKS.sub("", line.text, count=1) for line in unit)
    parts = [_words(part) for part in (_ELLIPSIS.split(text) if _may_be_cut(text) else (text,))]
    length = sum(len(words) + len(links) for words, links in parts)
    if not length:
        return _Kind.EMPTY
    if any(mark in text for mark in FOOTERS) and not unit[0].code:
        return _Kind.REPEATED
    if min(said.share(words, links) for words, links in parts) < (_MOST if length >= _MANY_WORDS else 1):
        return _Kind.FRESH
    return _Kind.PERHAPS if length < _FEW_WORDS else _Kind.REPEATED


def _doubt_attributions(units: Sequence[Sequence[Line]], kinds: list[_Kind]) -> None:
    """`On … wrote:` inside a quote goes with what is quoted."""
    texts = [_MARKS.sub("", unit[0].text, count=1) for unit in units]
    for end, text in enumerate(texts, start=1):
        if text.rstrip().endswith((":", "\uff1a")):
            first = max(0, end - MAX_ATTRIBUTION_LINES)
            for number in range(first + attribution_start(texts[first:end]), end):
                kinds[number] = _Kind.PERHAPS


def _may_be_cut(text: str) -> bool:
    return "..." in text or "…" in text or "snip" in text
