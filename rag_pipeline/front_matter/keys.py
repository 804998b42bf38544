"""The keys that decide what a drop is, and keys that look like one of them.

A key that looks like `scope` but is not it would be metadata, and the text would be found by everyone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

FRONT_KEYS: Final = frozenset(
    {"id", "tenant", "source_type", "title", "url", "updated_at", "scope", "deleted", "metadata"}
)
"""Keys of front matter."""
KEYS: Final = FRONT_KEYS | {"content", "content_type"}
"""Keys of a JSON record."""
ACCESS_KEYS: Final = frozenset({"scope", "tenant"})
"""Keys that decide who may see a text."""

_OTHER_WORDS: Final = frozenset(
    {"consent", "contest", "context", "convent", "scape", "slope", "tile", "titre", "update", "updated"}
)
"""Words of their own, though they are spelled almost like a key."""
_ACCESS_SUFFIXES: Final = ("id", "ids", "key", "keys", "list", "name", "names")
_LEAST_EDITED: Final = 5  # of shorter keys, most words are an edit away
_LEAST_EDITED_TWICE: Final = 9
_PAIRS: Final = "аaвbсcԁdеeɡgһhнhіiјjкkӏlмmոnоoрpԛqгrѕsтtսuѵvԝwхxуyօoցgαaβbεeηnιiκkνnοoρpτtυuχxγyωwϲc"
_LOOK_ALIKES: Final = str.maketrans(_PAIRS[::2], _PAIRS[1::2])
"""Letters of Cyrillic, Armenian and Greek as the Latin letters that they look like."""
_LATIN: Final = re.compile(r"LATIN (?:SMALL |CAPITAL )?(?:LETTER )?(?:SMALL CAPITAL )?([A-Z])\b")


def matched_key(key: str, known: frozenset[str]) -> str | None:
    """The known key that this is, in upper or lower case; None for any other key."""
    lower = key.lower()
    return lower if key.isascii() and lower in known else None


def key_problems(keys: Iterable[str], known: frozenset[str]) -> Iterator[str]:
    """What is wrong with each key that looks like a known one, or repeats one in another spelling."""
    seen: dict[str, str] = {}
    for key in keys:
        if match := matched_key(key, known):
            if match in seen:
                yield f"the keys {seen[match]!a} and {key!a} are the same: keep one of them"
            seen[match] = key
        elif (like := similar_key(key)) and like in known:
            yield f"the key {key!a} looks like {like}: write {like}, or give it another name"


@lru_cache(maxsize=4096)
def similar_key(key: str) -> str | None:
    """The known key that this one is, or is likely meant to be."""
    if match := matched_key(key, KEYS):
        return match
    if len(key) > 60:
        return None
    bare = _bare(key)
    if bare in _OTHER_WORDS:
        return None
    return next((name for name in sorted(KEYS) if _is_similar(bare, name)), None)


def _is_similar(bare: str, name: str) -> bool:
    target = name.replace("_", "")
    if bare in (target, f"{target}s"):
        return True
    if name in ACCESS_KEYS and bare.startswith(target) and bare.removeprefix(target) in _ACCESS_SUFFIXES:
        return True
    if len(bare) == len(target) and not bare.isascii() and sum(letter.isascii() for letter in bare) * 2 >= len(bare):
        return all(one == other or not one.isascii() for one, other in zip(bare, target, strict=True))
    if len(target) < _LEAST_EDITED or len(bare) < len(target) - 2:
        return False
    return _edits(bare, target) <= (1 if len(target) < _LEAST_EDITED_TWICE else 2)


def _bare(key: str) -> str:
    """The key's letters and digits as plain Latin ones, as far as they look so."""
    letters = []
    for letter in unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", key).casefold()):
        if unicodedata.category(letter)[0] in "LN":
            latin = None if letter.isascii() else _LATIN.match(unicodedata.name(letter, ""))
            letters.append(latin[1].lower() if latin else letter.translate(_LOOK_ALIKES))
    return "".join(letters)


def _edits(one: str, other: str) -> int:
    """How many letters must be changed, added, taken away or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        last, before, row = before, row, [i]
        for j, wanted in enumerate(other, start=1):
            edits = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                edits = min(edits, last[j - 2] + 1)
            row.append(edits)
    return row[-1]
