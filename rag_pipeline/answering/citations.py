"""`[Source 1]` marks: how models write them, and what becomes of those that point to nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

OPENING: Final = "[【［"
CLOSING: Final = "]】］"
"""Some models write their marks in the brackets of other scripts."""
MOST_CHARS: Final = 120
"""Between the brackets; more than this is no mark."""

_MOST_IN_RANGE: Final = 20
_SEPARATOR = r"(?:\s*(?:,|;|&|and|und|et|y|e)\s*)"
_ONE = r"(?:(?:sources?|quellen?|fuentes?|fonti|fonte)\s*[#:]?\s*)?\d{1,9}(?:\s*[-–—]\s*\d{1,9})?(?:†[^,;]*)?"
_MARK: Final = re.compile(rf"\s*{_ONE}(?:{_SEPARATOR}{_ONE})*\s*", re.IGNORECASE)
_NUMBERS: Final = re.compile(r"(\d{1,9})(?:\s*[-–—]\s*(\d{1,9}))?(?:†[^,;]*)?")
_NAMED: Final = re.compile(r"\s*(?:sources?|quellen?|fuentes?|fonti|fonte)\b", re.IGNORECASE)
_OURS: Final = re.compile(r"\[Source (\d+)\]")


def numbers_cited(inside: str, *, glued: bool) -> list[int] | None:
    """The numbers that a mark names by what stands between its brackets; None: it is no mark.

    Bare numbers are marks too (`[1]`), unless they are years or, `glued` to a word before them, the 0 of an index.
    """
    if len(inside) > MOST_CHARS or not _MARK.fullmatch(inside):
        return None
    found: list[int] = []
    for first, last in _NUMBERS.findall(inside):
        start, end = int(first), int(last or first)
        found += range(start, end + 1) if start <= end < start + _MOST_IN_RANGE else [start, end]
    named = _NAMED.match(inside) is not None
    if not named and (max(found) > 999 or (glued and 0 in found)):
        return None
    return list(dict.fromkeys(found))


def cited_in(text: str) -> list[int]:
    """The numbers of the `[Source N]` marks of a cleaned text, in order of appearance, each once."""
    return list(dict.fromkeys(int(number) for number in _OURS.findall(text)))


def without_marks(text: str) -> str:
    """A cleaned text without its marks."""
    return re.sub(r"[ \t]*\[Source \d+\]", "", text)


def marks(numbers: Sequence[int]) -> str:
    """These sources as they are cited."""
    return "".join(f"[Source {number}]" for number in numbers)


class Numbering:
    """New numbers of sources, in the order in which they are cited, without gaps."""

    def __init__(self, sources: int) -> None:
        self._sources = sources
        self._new: dict[int, int] = {}
        self.removed = 0
        """Marks that pointed to nothing."""

    @property
    def cited(self) -> list[int]:
        """The old numbers, from 1, by their new ones."""
        return list(self._new)

    def renumbered(self, numbers: Sequence[int]) -> str:
        """The marks of those that point to a source; the others are counted."""
        known = [number for number in numbers if 1 <= number <= self._sources]
        self.removed += len(numbers) - len(known)
        return marks([self._new.setdefault(number, len(self._new) + 1) for number in known])


def renumbered(text: str, kept: Sequence[int]) -> str:
    """A cleaned text whose marks have the places (from 1) in `kept` as numbers; those of other sources are left out."""
    new = {number: place for place, number in enumerate(kept, start=1)}

    def replace(match: re.Match[str]) -> str:
        number = int(match[2])
        return f"{match[1]}[Source {new[number]}]" if number in new else ""

    return re.sub(r"([ \t]*)\[Source (\d+)\]", replace, text)


def is_named_mark(inside: str) -> bool:
    """Whether this, in brackets, would be read as `[Source N]`, in whichever spelling."""
    return _NAMED.match(inside) is not None and numbers_cited(inside, glued=True) is not None
