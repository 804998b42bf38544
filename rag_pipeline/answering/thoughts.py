"""What a reasoning model thinks before it answers, taken out of its text. Pure."""

from __future__ import annotations

import re
from typing import Final

_TAGS: Final = ("<think>", "<thinking>")
_ENDS: Final = re.compile(r"</think(?:ing)?>\s*")
_LONGEST_END: Final = len("</thinking>")
_FORGOTTEN_BEGINNING: Final = re.compile(r"\A.*?^</think(?:ing)?>\s*$\s*", re.DOTALL | re.MULTILINE)


class Thoughts:
    """Passes a text on as it comes, without the `<think>…</think>` that it begins with.

    Only at the beginning: further on, the same words are what an answer is about.
    """

    def __init__(self) -> None:
        self._held = ""
        self._state = "beginning"

    def passed(self, text: str) -> str:
        """What may be shown of what has come so far and was not shown yet."""
        self._held += text
        if self._state == "beginning":
            begun = self._held.lstrip().lower()
            if begun.startswith(_TAGS):
                self._state = "thinking"
            elif not any(tag.startswith(begun) for tag in _TAGS):
                self._state = "text"
        if self._state == "thinking":
            end = _ENDS.search(self._held)
            if end is None:
                self._held = self._held[-_LONGEST_END:]
                return ""
            self._held, self._state = self._held[end.end() :], "after"
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "text" if self._held else "after"
        return self._taken() if self._state == "text" else ""

    def rest(self) -> str:
        """What was held back when the text ended, and is no thought."""
        return self._taken() if self._state == "beginning" else ""

    def _taken(self) -> str:
        taken, self._held = self._held, ""
        return taken


def without_thoughts(text: str) -> str:
    """A whole text without what was thought before it, also where only the end of the thoughts is marked.

    Some servers put the opening mark into the prompt, so that the model writes only the closing one.
    """
    thoughts = Thoughts()
    shown = thoughts.passed(text)
    shown += thoughts.rest()
    return shown if shown != text else _FORGOTTEN_BEGINNING.sub("", text)
