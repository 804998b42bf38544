"""What a language model's text is made of: a thought, perhaps that it does not know, the answer, further questions.

Read piece by piece; like cleaning, it passes on only what nothing that may follow could make into something else. Pure.
"""

from __future__ import annotations

import re
from typing import Final, Literal

UNKNOWN: Final = "UNKNOWN"
"""What a model begins with when the sources do not say."""
FOLLOW_UPS: Final = "FOLLOW-UPS:"
"""The line before the questions that it suggests."""

_THOUGHT: Final = ("<think>", "</think>")
_DECIDED_CHARS: Final = 24
# Never longer than the characters that are waited for.
_SAYS_UNKNOWN: Final = re.compile(r"[*_`\[\"']{0,8}UNKNOWN\b[\s*_`\]\"'.:,;–—-]{0,8}")
_MARKER: Final = re.compile(r"[ \t#*_>-]*FOLLOW[ -]?UPS?(?:[ ]QUESTIONS)?[*_ \t]*:[*_ \t]*", re.IGNORECASE)
_MARKER_LETTERS: Final = "FOLLOWUPSQUESTIONS"
_MOST_MARKER: Final = 60
_ITEM: Final = re.compile(r"^[\s>]*(?:[-*+•]|\d{1,2}[.)])?\s*")


class Reply:
    """Takes a model's text apart: `feed` gives what of it is answer, and `finish` the rest."""

    def __init__(self) -> None:
        self.is_unknown = False
        """The model said that the sources do not say."""
        self._buffer = ""
        self._part: Literal["start", "thought", "answer", "questions"] = "start"
        self._line = ""
        """Of the answer, what of its last line was passed on."""
        self._ended = False

    def feed(self, piece: str) -> str:
        """What can be passed on by now."""
        self._buffer += piece
        if self._part == "start":
            self._begin()
        if self._part == "thought":
            self._skip_thought()
        return self._answer() if self._part == "answer" else ""

    def finish(self) -> str:
        """The rest of the answer."""
        self._ended = True
        return self.feed("")

    @property
    def questions(self) -> list[str]:
        """What the model suggests to ask next, once it has finished, as it wrote it."""
        if self._part != "questions":
            return []
        lines = (_ITEM.sub("", line).strip().strip("*_\"'") for line in self._buffer.splitlines())
        return list(dict.fromkeys(line for line in lines if line))

    def _begin(self) -> None:
        text = self._buffer.lstrip()
        if text.startswith(_THOUGHT[0]):
            self._part = "thought"
        elif len(text) >= _DECIDED_CHARS or self._ended:
            if said := _SAYS_UNKNOWN.match(text):
                self.is_unknown = True
                text = text[said.end() :]
            self._buffer = text
            self._part = "answer"

    def _skip_thought(self) -> None:
        _, found, rest = self._buffer.partition(_THOUGHT[1])
        if found:
            self._buffer, self._part = rest, "start"
            self._begin()
        elif self._ended:
            self._buffer, self._part = "", "answer"

    def _answer(self) -> str:
        """Whole lines, and of the last one as much as cannot become the line before the questions."""
        shown: list[str] = []
        while self._buffer:
            line, newline, rest = self._buffer.partition("\n")
            marker = None if self._line else _MARKER.match(line[:_MOST_MARKER])
            if marker and (newline or self._ended or marker[0] != line):
                self._part, self._buffer = "questions", self._buffer[marker.end() :]
                break
            if not newline and not self._ended and not self._line and _may_be_marker(line):
                break
            shown.append(line + newline)
            self._line = "" if newline else self._line + line
            self._buffer = rest
        return "".join(shown)


def _may_be_marker(line: str) -> bool:
    if len(line) > _MOST_MARKER:
        return False
    letters = re.sub(r"[^A-Z]", "", line.upper())
    return _MARKER_LETTERS.startswith(letters) or letters == "FOLLOWUPQUESTIONS"[: len(letters)]
