"""What NULs and control characters say of bytes: that they are UTF-16, UTF-32, or no text at all."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_SAMPLE_BYTES: Final = 8000
"""Git looks at as many to tell what is binary."""
_WIDE: Final = (("utf-32-le", 4, 3, 0), ("utf-32-be", 4, 0, 3), ("utf-16-le", 2, 1, 0), ("utf-16-be", 2, 0, 1))
"""Encoding, bytes of a character, which of them is NUL in many, and which in few."""
_SURE_SHARE: Final = 0.3
"""Of characters with a NUL: so many are ASCII, and no other text looks so."""
_MAX_OTHERS: Final = 2
_SURE_OTHERS: Final = 20
"""So many NULs of ASCII for each NUL elsewhere: the text may be in this encoding, and it surely is."""
_CONTROL_BYTES: Final = bytes([*range(8), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])
_MAX_CONTROLS: Final = 0.1
"""Compressed data has as many control characters, text only by mistake."""
_MAX_CONTROLS_OTHERWISE: Final = 0.05
"""Of bytes that are not UTF-8."""

CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f]")
"""Characters that no text holds; escape sequences and U+0085 stand in some."""


def wide_encoding(content: bytes) -> tuple[str, bool] | None:
    """The encoding where NULs say that the bytes are UTF-16 or UTF-32 without a mark, and whether that is sure."""
    if content.find(b"\0", 0, _SAMPLE_BYTES) < 0:
        return None
    sample = content[:_SAMPLE_BYTES]
    is_narrow = _is_narrow(sample)
    for encoding, width, high, low in _WIDE:
        nuls, characters = sample[high::width].count(0), len(sample) // width
        others = sample[low::width].count(0)  # some of an Asian or a rare script: U+4E00, and half of a surrogate pair
        if _MAX_OTHERS * others > nuls or len(content) % width or not nuls or (width == 4 and nuls < characters):
            continue
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        is_text = not CONTROL.search(text) and not any(unicodedata.category(c) in ("Cn", "Co") for c in text[:2000])
        is_sure = nuls >= _SURE_SHARE * characters and _SURE_OTHERS * others <= nuls
        if is_text and (is_sure or not is_narrow):
            return encoding, is_sure
    return None


def is_binary(content: bytes) -> bool:
    """Whether NULs, and how many control characters stand with them, say that the bytes are no text.

    As for git, bytes without a NUL among the first 8,000 are text; unlike for git, a few NULs in a text are a mistake.
    """
    sample = content[:_SAMPLE_BYTES]
    if b"\0" not in sample or wide_encoding(content):
        return False
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    most = _MAX_CONTROLS if _is_utf8(sample) else _MAX_CONTROLS_OTHERWISE
    return controls > most * len(sample)


def _is_narrow(sample: bytes) -> bool:
    """Whether the bytes are text without their NULs, as where a page holds one by mistake."""
    return _is_utf8(sample) and not CONTROL.search(sample.replace(b"\0", b"").decode("utf-8", "ignore"))


def _is_utf8(sample: bytes) -> bool:
    """Whether a sample, which may end inside a character, is UTF-8."""
    return len(sample.decode("utf-8", "ignore").encode()) >= len(sample) - 3
