"""Attributes of AsciiDoc: what `{name}` stands for at each place, as far as the file itself says it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_MAX_VALUE_CHARS: Final = 1000
ENTRY: Final = re.compile(r":(?P<unset>!?)(?P<name>[A-Za-z0-9_][\w-]*)(?P<off>!?):(?:[ \t]+(?P<value>.*))?[ \t]*$")
_REFERENCE = re.compile(
    r"\+\+\+?[^+\n]++\+\+\+?|`\+[^`\n]++\+`|(?<![\w+])\+(?=\S)[^+\n]++(?<=\S)\+(?![\w+])|\bpass:[\w,]*\[[^\]\n]*+\]"
    r"|(?P<escape>\\?)\{(?:(?P<action>counter2?|set):(?P<key>[A-Za-z0-9_][\w-]*)(?P<off>!?)(?::(?P<seed>[^{}\n]*))?"
    r"|(?P<name>[A-Za-z0-9_][\w-]*))\}"
)
_AUTHOR = re.compile(r"(?P<author>\w[\w.'’ -]*?)(?:[ \t]+<(?P<email>[^<>\s]+)>)?[ \t]*(?:;.*)?$")
_REVISION = re.compile(r"v?(?P<revnumber>\d[\w.-]*)?(?:,?[ \t]*(?P<revdate>[^:\n]*?\d{4}[^:\n]*?))?(?:[ \t]*:.*)?$")
_INTRINSIC: Final = {
    "blank": "", "empty": "", "sp": " ", "nbsp": " ", "zwsp": "", "wj": "", "apos": "'", "quot": '"', "lsquo": "‘",
    "rsquo": "’", "ldquo": "“", "rdquo": "”", "deg": "°", "plus": "+", "brvbar": "¦", "vbar": "|", "amp": "&",
    "lt": "<", "gt": ">", "startsb": "[", "endsb": "]", "caret": "^", "asterisk": "*", "tilde": "~", "backslash": "\\",
    "backtick": "`", "two-colons": "::", "two-semicolons": ";;", "cpp": "C++", "cxx": "C++", "pp": "++",
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Attributes:
    """What is defined at the line that is being read; a later entry replaces an earlier one from there on."""

    room: int
    """So many characters may still be put in: values that grow by each other must not fill the memory."""
    known: dict[str, str | None] = field(default_factory=dict)
    """None: the file says that it is not set."""

    def enter(self, entry: re.Match[str], value: str) -> None:
        """Take an entry, whose value may have gone on over several lines."""
        name = entry["name"].lower()
        unset = entry["unset"] or entry["off"]
        self.known[name] = None if unset else self.replaced(value)[:_MAX_VALUE_CHARS]

    def enter_header(self, line: str, *, number: int) -> None:
        """Take the line of the author (1) or the revision (2) below the title."""
        if found := (_AUTHOR if number == 1 else _REVISION).match(line):
            self.known |= {name: value.strip() for name, value in found.groupdict().items() if value}

    def decides(self, names: str) -> bool | None:
        """Whether one of these names is set; None where the file does not say so."""
        known = [
            self.known[name.strip()] is not None for name in names.lower().split(",") if name.strip() in self.known
        ]
        if any(known):
            return True
        return False if known and len(known) == names.count(",") + 1 else None

    def replaced(self, text: str) -> str:
        """The text with what its references stand for; those that are not defined stay as they are."""
        return _REFERENCE.sub(self._value, text) if "{" in text else text

    def _value(self, found: re.Match[str]) -> str:
        if found["name"] is None and found["action"] is None:
            return found[0]
        if found["escape"]:
            return found[0][1:]
        if found["action"]:
            return self._act(found)
        name = found["name"].lower()
        value = self.known.get(name, _INTRINSIC.get(name))
        if value is None or len(value) > self.room:
            return found[0]
        self.room -= len(value)
        return value

    def _act(self, found: re.Match[str]) -> str:
        """Set an attribute, or count one on; what is shown of that."""
        key, seed = found["key"].lower(), found["seed"] or ""
        if found["action"] == "set":
            self.known[key] = None if found["off"] else seed
            return ""
        before = self.known.get(key)
        self.known[key] = value = _next(before) if before else seed or "1"
        return value if found["action"] == "counter" else ""


def _next(value: str) -> str:
    if value.isdecimal() and len(value) < 10:
        return str(int(value) + 1)
    return chr(ord(value) + 1) if len(value) == 1 else value
