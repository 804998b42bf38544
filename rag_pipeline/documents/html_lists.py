"""Numbers of the items in HTML's ordered lists: `start`, `type`, `reversed`, and `value` of an item."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from bs4.element import Tag

from rag_pipeline.documents.html_tables import inside
from rag_pipeline.documents.numerals import Style, numeral

_STYLES: Final[dict[str, Style]] = {"a": "loweralpha", "A": "upperalpha", "i": "lowerroman", "I": "upperroman"}
_LISTS: Final = frozenset(["ol", "ul", "menu"])
_NUMBER = re.compile(r"\s*([+-]?\d{1,9})\s*$")


@dataclass(slots=True)
class Numbers:
    """What the items of one list count to."""

    style: Style
    following: int
    step: int

    @classmethod
    def of(cls, tag: Tag) -> Self:
        """The numbers of a list, as its tag says."""
        step = -1 if tag.has_attr("reversed") else 1
        start = _number(tag.get("start"))
        if start is None:
            # Items that are not closed stand in each other.
            items = (one for one in inside(tag, but=_LISTS) if isinstance(one, Tag) and one.name == "li")
            start = 1 if step > 0 else sum(1 for _ in items)
        return cls(_STYLES.get(str(tag.get("type", "")), "arabic"), start, step)

    def next(self, item: Tag) -> str:
        """What is shown before the item."""
        number = _number(item.get("value"))
        number = self.following if number is None else number
        self.following = number + self.step
        return f"{numeral(number, self.style)}. "


def _number(value: object) -> int | None:
    found = _NUMBER.match(value) if isinstance(value, str) else None
    return int(found[1]) if found else None
