"""A cleaned answer to its claims: sentences with the sources that they cite. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rag_pipeline.answering.citations import cited_in, without_marks

_MARKS = r"(?:\s*\[Source \d+\])*"
_END: Final = re.compile(
    rf"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bz\.B)(?<!\bvs)(?<!^\d)(?<!\n\d)[.!?…]+[\"'”’)*_]*{_MARKS}(?=\s|$)"
    rf"|[。！？]+[」』”）]*{_MARKS}"
    r"|\n[ \t]*\n|\n(?=[ \t]*(?:[-*+•|#>]|\d{1,3}[.)])\s)"
)
_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LEAD: Final = re.compile(r"^(?:[ \t]*(?:[-*+•>]|\d{1,3}[.)])[ \t]+)*")
_HEADING: Final = re.compile(r"#{1,6}\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence, an item of a list, or a block of code."""

    start: int
    """In the answer's text."""
    end: int
    text: str
    """Without marks of citations and lists."""
    cited: tuple[int, ...]
    is_code: bool = False


def claims_of(text: str) -> list[Claim]:
    """The claims of an answer in order; headings claim nothing. Marks behind a block of code or a line are its own."""
    claims: list[Claim] = []
    start = 0
    for fence in _FENCE.finditer(text):
        _add_prose(claims, text, start, fence.start())
        claims.append(Claim(start=fence.start(), end=fence.end(), text=_code_of(fence[0]), cited=(), is_code=True))
        start = fence.end()
    _add_prose(claims, text, start, len(text))
    return claims


def _code_of(fence: str) -> str:
    lines = fence.strip().splitlines()
    return "\n".join(line for line in lines if not line.strip().startswith(("```", "~~~")))


def _add_prose(claims: list[Claim], text: str, start: int, end: int) -> None:
    ends = [start + found.end() for found in _END.finditer(text[start:end])]
    for stop in [*ends, end]:
        _add(claims, text, start, stop)
        start = stop


def _add(claims: list[Claim], text: str, start: int, end: int) -> None:
    raw = text[start:end]
    cited = tuple(cited_in(raw))
    words = _LEAD.sub("", without_marks(raw).strip())
    if not re.search(r"\w", words):
        if cited and claims:  # nothing but marks: they belong to what stands before them
            last = claims[-1]
            both = tuple(dict.fromkeys((*last.cited, *cited)))
            claims[-1] = Claim(start=last.start, end=end, text=last.text, cited=both, is_code=last.is_code)
        return
    if not _HEADING.match(words):
        claims.append(Claim(start=start, end=end, text=words, cited=cited))
