"""The one reader of JSON that comes from outside: within limits, with reasons that a person can act on, never a crash.

Python's decoder takes NaN, keeps the last of two equal keys, and dies of deep nesting or of a number with a million
digits. `checked` refuses all of these; the functions before it find such a value where it stands, so that one bad
record does not spoil its neighbours. `parse_json` is for answers of services and for files such as notebooks: it holds
the same limits, but lets pass what is merely untidy.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rag_pipeline.errors import ItemError
from rag_pipeline.model import Json

_MAX_DEPTH = 100
_MAX_DIGITS = 400
_TOO_DEEP = f"is nested deeper than {_MAX_DEPTH} levels"
_BLANK = re.compile(r"[ \t\r\n]*")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]|\\u(?:0000|[dD][89a-fA-F])")
_UNFINISHED_WORDS = ("true", "false", "null", "NaN", "-Infinity", ".", "e+", "e-", "E+", "E-")


@dataclass(frozen=True, slots=True)
class _Unusable:
    """Stands in a decoded value for what JSON allows to write, or Python to read, and nobody can store."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """Text that is not JSON."""

    reason: str
    ends_early: bool
    """It may only lack its end, as when it is still being written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """A decoded value, not yet checked, and where in the text it stands."""

    value: object
    start: int
    end: int


def text_of(content: bytes) -> str | Malformed:
    """The text of JSON in any of its encodings, without a byte order mark."""
    encoding = json.detect_encoding(content)
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        ends_early = error.reason in ("unexpected end of data", "truncated data")
        named = encoding.upper().removesuffix("-SIG")
        return Malformed(reason=f"is not {named} text (byte {error.start + 1})", ends_early=ends_early)


def read_value(text: str) -> Element | Malformed:
    """The one value that the text holds, still to be `checked`."""
    element = _read(text, _skip_blank(text, 0))
    if isinstance(element, Malformed):
        return element
    end = _skip_blank(text, element.end)
    return element if end == len(text) else _malformed(json.JSONDecodeError("Extra data", text, end))


def read_checked(content: bytes) -> Json | Malformed:
    """The one value that the bytes hold, when it can be stored.

    Raises:
        ItemError: as `checked`.
    """
    text = text_of(content)
    found = text if isinstance(text, Malformed) else read_value(text)
    if isinstance(found, Malformed) and found.reason == _TOO_DEEP:
        raise ItemError(_TOO_DEEP)
    return found if isinstance(found, Malformed) else checked(found.value)


def read_elements(text: str) -> list[Element] | Malformed:
    """The elements of the array that the text holds, each still to be `checked`."""
    elements: list[Element] = []
    at = _skip_blank(text, _skip_blank(text, 0) + 1)
    while not (text.startswith("]", at) and not elements):
        element = _read(text, at)
        if isinstance(element, Malformed):
            return element
        elements.append(element)
        at = _skip_blank(text, element.end)
        if text.startswith("]", at):
            break
        if not text.startswith(",", at):
            return _malformed(json.JSONDecodeError("Expecting ',' delimiter", text, at))
        at = _skip_blank(text, at + 1)
    end = _skip_blank(text, at + 1)
    return elements if end == len(text) else _malformed(json.JSONDecodeError("Extra data", text, end))


def checked(value: object) -> Json:
    """The value, when it can be stored.

    Raises:
        ItemError: it holds a key twice, NaN, a number without end, or is nested too deeply.
    """
    return _checked(value, _MAX_DEPTH)


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON text in any of its encodings; of two equal keys the last one counts, and NaN is a float.

    Raises:
        ValueError: it is no JSON, is nested too deeply, or holds a number of too many digits.
    """
    text = content if isinstance(content, str) else text_of(content)
    if isinstance(text, Malformed):
        raise ValueError(text.reason)
    try:
        value = _TOLERANT.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(_malformed(error).reason) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level = [value]
    for _ in range(_MAX_DEPTH + 1):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, dict | list)]
        if not level:
            break
    else:
        raise ValueError(_TOO_DEEP)
    return storable(value) if _UNSTORABLE.search(text) else value


def storable(value: Json) -> Json:
    """The value without what UTF-8 and PostgreSQL refuse in texts: lone surrogates are replaced, NUL goes."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, Mapping):
        return {storable_text(key): storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    return value


def storable_text(text: str) -> str:
    """`storable`, for a text."""
    return _SURROGATES.sub("\ufffd", text).replace("\x00", "")


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _checked(value: object, depth: int) -> Json:
    if isinstance(value, _Unusable):
        raise ItemError(value.reason)
    if isinstance(value, dict | list):
        if not depth:
            raise ItemError(_TOO_DEEP)
        for item in value.values() if isinstance(value, dict) else value:
            _checked(item, depth - 1)
        return value
    assert value is None or isinstance(value, str | bool | int | float)
    return value


def _read(text: str, at: int) -> Element | Malformed:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        return _malformed(error)
    except RecursionError:
        return Malformed(reason=_TOO_DEEP, ends_early=False)
    return Element(value=value, start=at, end=end)


def _malformed(error: json.JSONDecodeError) -> Malformed:
    rest = error.doc[error.pos :].strip(" \t\r\n")
    ends_early = error.msg != "Extra data" and (
        not rest
        or error.msg.startswith("Unterminated string")
        or (len(rest) < 10 and any(word.startswith(rest) for word in _UNFINISHED_WORDS))
        or ("escape" in error.msg and len(rest) <= 6 and not rest.endswith('"'))
    )
    reason = f"is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
    return Malformed(reason=reason, ends_early=ends_early)


def _skip_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _object(pairs: list[tuple[str, Any]]) -> object:
    found = dict(pairs)
    if len(found) < len(pairs):
        return _Unusable(f"holds the key {next(_doubled(pairs))[:100]!r} twice")
    return found


def _doubled(pairs: list[tuple[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            yield key
        seen.add(key)


def _integer(digits: str) -> int | _Unusable:
    return int(digits) if len(digits) <= _MAX_DIGITS else _Unusable(f"holds a number of {len(digits):,} digits")


def _short_integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"holds a number of {len(digits):,} digits")
    return int(digits)


def _number(digits: str) -> float | _Unusable:
    value = float(digits)
    return value if math.isfinite(value) else _Unusable(f"holds a number that is too large: {digits[:20]}")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_number,
    parse_constant=lambda word: _Unusable(f"holds {word}, which is not JSON"),
)
_TOLERANT = json.JSONDecoder(parse_int=_short_integer)
