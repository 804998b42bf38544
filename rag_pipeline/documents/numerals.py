"""Numbers of list items as they are shown: 4, d, D, iv, IV."""

from __future__ import annotations

from typing import Final, Literal

Style = Literal["arabic", "loweralpha", "upperalpha", "lowerroman", "upperroman"]
_MAX_ROMAN: Final = 3999
_ROMAN: Final = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def numeral(number: int, style: Style = "arabic") -> str:
    """The number in this style; in digits where the style has no sign for it."""
    if style == "arabic" or number < 1 or (style.endswith("roman") and number > _MAX_ROMAN):
        return str(number)
    letters = _roman(number) if style.endswith("roman") else _alpha(number)
    return letters.upper() if style.startswith("upper") else letters


def _roman(number: int) -> str:
    written = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        written += letters * count
    return written


def _alpha(number: int) -> str:
    written = ""
    while number:
        number, letter = divmod(number - 1, 26)
        written = chr(ord("a") + letter) + written
    return written
