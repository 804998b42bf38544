"""Finding front matter: none, its values, or what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rag_pipeline.errors import BrokenFrontMatter
from rag_pipeline.front_matter.attempts import MAX_CHARS, Attempt, access_lines, attempt_in
from rag_pipeline.front_matter.keys import ACCESS_KEYS, matched_key, similar_key
from rag_pipeline.front_matter.parse import nested_keys, read_toml, read_yaml
from rag_pipeline.model import Json

_BREAK: Final = r"(?:\r\n|\r(?!\n)|\n)"
_OPENING: Final = re.compile(rf"\ufeff?(---|\+\+\+)[ \t]*{_BREAK}")
_CLOSING: Final = {
    "---": re.compile(rf"(?:---|\.\.\.)[ \t]*(?:{_BREAK}|\Z)"),
    "+++": re.compile(rf"\+\+\+[ \t]*(?:{_BREAK}|\Z)"),
}
_LINE_START: Final = re.compile(r"(?<=[\r\n])(?=---|\.\.\.|\+\+\+)")
_WORD: Final = re.compile(r"[\w-]+")
_ONLY_SCOPE: Final = frozenset({"scope"})
_SCOPE: Final = re.compile(r"[a-z][\w-]*:\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The values, the lines of their keys, and how many characters and lines of the text they took."""

    values: Mapping[str, Json]
    key_lines: Mapping[str, int]
    end_char: int
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Front matter that was meant as such and cannot be read."""

    line: int
    reason: str
    end_char: int
    """Where the text goes on behind it; 0 where that cannot be told."""
    lines: int

    @property
    def error(self) -> BrokenFrontMatter:
        """What is wrong, to be raised."""
        return BrokenFrontMatter(self.line, f"broken front matter: {self.reason}")


def read_front_matter(text: str, *, clean: Callable[[str], str]) -> FrontMatter | Broken | None:
    """The front matter at the start of the text, every string of it cleaned; None when there is none."""
    opening = _OPENING.match(text)
    end = _end(text, opening) if opening else None
    problem: BrokenFrontMatter | None = None
    if opening and end:
        source = text[opening.end() : end[0]]
        try:
            values, lines = (read_yaml if opening[1] == "---" else read_toml)(source, clean)
            _check_access(source, values)
        except BrokenFrontMatter as error:
            problem = error
        else:
            if values and all(" " in key and not similar_key(key) for key in values):
                return None  # A sentence with a colon between two rules.
            return FrontMatter(
                values=values, key_lines={key: line + 1 for key, line in lines.items()}, end_char=end[1],
                lines=_count_lines(text, end[1]),
            )  # fmt: skip
    attempt = attempt_in(text)
    if attempt is None and (problem is None or not opening or not end or not _speaks_of_scope(text[: end[0]])):
        return None
    if problem is not None and end is not None:
        at = end[1] if attempt is None or attempt.end else 0
        return Broken(line=problem.line + 1, reason=problem.reason, end_char=at, lines=_count_lines(text, at))
    assert attempt is not None
    line, reason = _complaint(text, attempt, is_open=opening is not None)
    return Broken(line=line, reason=reason, end_char=attempt.end, lines=_count_lines(text, attempt.end))


def _end(text: str, opening: re.Match[str]) -> tuple[int, int] | None:
    """Where the closing line begins, and where the text goes on."""
    last = opening.end() + MAX_CHARS
    for start in _LINE_START.finditer(text, opening.end() - 1, last):
        if closing := _CLOSING[opening[1]].match(text, start.start(), last):
            return closing.span()
    return None


def _check_access(source: str, values: Mapping[str, Json]) -> None:
    """Refuse front matter that says who may see the text where it is not read as such.

    Raises:
        BrokenFrontMatter: such a line is part of another value, or the key stands below another key.
    """
    keys = {similar_key(key) for key in (*values, *(key for key, _ in nested_keys(values)))}
    for line, key in access_lines(source):
        if similar_key(key) not in keys:
            raise BrokenFrontMatter(line, f"{key!a} is not read as a key, but as a part of the value before it")
    if nested := nested_scope(values):
        raise BrokenFrontMatter(
            1, f"{nested!a} stands below another key: it must begin at the left margin (scope: null is for everyone)"
        )


def nested_scope(values: Mapping[str, Json]) -> str | None:
    """A key below another one with a scope such as `user:jane`, where none stands at the top."""
    if any(matched_key(key, _ONLY_SCOPE) for key in values):
        return None
    return next(
        (
            key
            for key, value in nested_keys(values)
            if similar_key(key) in ACCESS_KEYS and isinstance(value, str) and _SCOPE.fullmatch(value)
        ),
        None,
    )


def _speaks_of_scope(source: str) -> bool:
    """Whether the word of an access key and a scope such as `user:jane` stand in it, wherever that is."""
    return bool(_SCOPE.search(source)) and any(similar_key(word) in ACCESS_KEYS for word in _WORD.findall(source))


def _complaint(text: str, attempt: Attempt, *, is_open: bool) -> tuple[int, str]:
    number, opening = attempt.opening.number, text[attempt.opening.start : attempt.opening.end].strip()
    if attempt.before is not None:
        return attempt.before.number, "the first line must be --- (or +++ for TOML), with nothing before it"
    if not is_open:
        return number, f"{opening[:20]!a} does not open front matter: the first line must be exactly --- or +++"
    if attempt.closing is not None:
        closing = attempt.closing.text.strip()
        return attempt.closing.number, f"{closing[:20]!a} does not close it: write {opening[:3]} on a line of its own"
    if len(text) > MAX_CHARS:
        return number, f"it has no closing line {opening[:3]} within {MAX_CHARS:,} characters"
    return number, f"it has no closing line {opening[:3]}"


def _count_lines(text: str, end: int) -> int:
    return len(re.findall(_BREAK, text[:end]))
