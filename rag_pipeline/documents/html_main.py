"""The main content of a page: what its author marks as such, else what an extractor takes for it.

The extractor (Resiliparse: https://resiliparse.chatnoir.eu) is asked which words belong to the content; lines and their
places stay ours. It reads a string and nothing else: no page is ever fetched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from bs4 import BeautifulSoup
from bs4.element import Tag

_MAX_CHARS: Final = 5_000_000
_MAX_DEPTH: Final = 1000  # the extractor takes quadratic time in the depth of nesting
_MIN_CHARS: Final = 500
"""A shorter page, or a part of one, is its content."""
_MIN_WORDS: Final = 20
_MIN_SHARE: Final = 0.15
"""Of the visible text; where the extractor finds less, it was wrong."""
_SHORT_GAP_CHARS: Final = 600
"""So much between two lines of the content belongs to it, too."""
_RUN: Final = 3
_MOST: Final = 0.5
_WORD = re.compile(r"\w+")


def declared_main(soup: BeautifulSoup, html: str) -> Tag | None:
    """The one `<main>`, `role="main"` or `<article>` of the page, if it holds some text."""
    for selector, sign in (("main", "<main"), ("[role=main]", "main"), ("article", "<article")):
        tags = soup.select(selector, limit=2) if sign in html else []
        if len(tags) == 1 and len(tags[0].get_text(" ").split()) >= _MIN_WORDS:
            return tags[0]
    return None


def main_lines(html: str, lines: Sequence[str], *, depth: int) -> list[bool] | None:
    """For each line of the page's visible text, whether it is main content; None when that cannot be told.

    `depth` is how deep the page's tags are nested.
    """
    if len(html) > _MAX_CHARS or depth > _MAX_DEPTH or sum(map(len, lines)) < _MIN_CHARS:
        return None
    # Here, not above: most runs clean no HTML.
    from resiliparse.extract.html2text import extract_plain_text

    try:
        content = extract_plain_text(html, main_content=True, alt_texts=False, list_bullets=False)
    except (RuntimeError, ValueError):
        return None
    runs = set(_runs(_words(content)))
    kept = _with_gaps(lines, [_belongs(unit, runs) for unit in _units(lines)])
    share = sum(len(line) for line, keep in zip(lines, kept, strict=True) if keep)
    enough = share >= _MIN_SHARE * sum(map(len, lines))
    return kept if enough and len(_words(content)) >= _MIN_WORDS else None


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _runs(words: Sequence[str]) -> zip[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(_RUN)), strict=False)


def _units(lines: Sequence[str]) -> list[list[str]]:
    """The lines one by one, fenced code and tables as a whole."""
    units: list[list[str]] = []
    fenced = False
    for line in lines:
        if fenced:
            units[-1].append(line)
            fenced = line != "```"
        elif line.startswith("| ") and units and units[-1][-1].startswith("| "):
            units[-1].append(line)
        else:
            units.append([line])
            fenced = line == "```"
    return units


def _belongs(unit: Sequence[str], runs: set[tuple[str, ...]]) -> tuple[int, bool | None]:
    """How many lines, and whether they are content; None where they are too short to tell."""
    own = list(_runs(_words(" ".join(unit))))
    if not own:
        return len(unit), None
    return len(unit), sum(run in runs for run in own) >= _MOST * len(own)


def _with_gaps(lines: Sequence[str], units: Sequence[tuple[int, bool | None]]) -> list[bool]:
    """The fate of each line; what lies between two lines of the content shares theirs when it is short."""
    fates = [fate for count, fate in units for _ in range(count)]
    kept: list[bool] = []
    for is_content, group in groupby(fates, key=lambda fate: fate is True):
        count = sum(1 for _ in group)
        start = len(kept)
        if is_content:
            kept += [True] * count
            continue
        gap = lines[start : start + count]
        inside = start > 0 and start + count < len(lines)
        short = inside and sum(map(len, gap)) <= _SHORT_GAP_CHARS
        kept += [True] * count if short else _headings_below(gap, ends_page=start + count == len(lines))
    return kept


def _headings_below(gap: Sequence[str], *, ends_page: bool) -> list[bool]:
    """Of lines that are not content, the headings right above it are."""
    kept = [False] * len(gap)
    for number in range(len(gap) - 1, -1, -1):
        if ends_page or (gap[number] and not gap[number].startswith("#")):
            break
        kept[number] = True
    return kept
