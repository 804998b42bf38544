"""YAML front matter of a text: found, and read into what JSON can hold.

Documents take it out of markdown, drops take identity and title from it; what the values mean is theirs to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time

import yaml  # type: ignore[import-untyped]  # its stubs are a package of their own, not needed to run

from rag_pipeline.model import Json

_MAX_CHARS = 50_000  # more is not front matter but a document between two rules
_MAX_BITS = 1000  # Python writes no number of thousands of digits
_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # untyped base
    """Safe YAML without aliases: a few of them nested make gigabytes ("billion laughs")."""

    def compose_node(self, parent: object, index: object) -> object:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not followed in front matter")
        return super().compose_node(parent, index)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The values, how many characters and how many lines of the text they took."""

    values: Mapping[str, Json]
    end_char: int
    lines: int


def read_front_matter(text: str, *, clean: Callable[[str], str]) -> FrontMatter | None:
    """The front matter at the start of the text, every string of it cleaned.

    None when there is none, or when it is not a YAML mapping.
    """
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end(), opening.end() + _MAX_CHARS) if opening else None
    if not opening or not closing:
        return None
    try:
        values = _json(yaml.load(text[opening.end() : closing.start()], Loader=_Loader), clean)
    except (yaml.YAMLError, ValueError, TypeError, LookupError, RecursionError, OverflowError, AttributeError):
        return None
    if not isinstance(values, Mapping):
        return None
    return FrontMatter(values=values, end_char=closing.end(), lines=text.count("\n", 0, closing.end()))


def _json(value: object, clean: Callable[[str], str]) -> Json:
    """The value with everything that JSON cannot hold as text."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return hex(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {clean(str(_json(key, clean))): _json(item, clean) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return [_json(item, clean) for item in sorted(value, key=str)]
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_json(item, clean) for item in value]
    return clean(str(value))
