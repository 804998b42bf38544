"""Bytes to text that every later stage can trust: one newline, one normal form, nothing PostgreSQL refuses."""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass

# UTF-32 before UTF-16: the little-endian mark of the one begins with that of the other.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_REPLACEMENT = "\ufffd"
_NEWLINES = re.compile(r"\r\n?")
# Form feed and vertical tab become a space, not a newline: editors and GitHub do not count them as lines.
_PAGE_BREAKS = re.compile(r"[\x0b\x0c]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_UNUSUAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""What one of the patterns above takes; most texts hold none, and one search says so."""
_WESTERN = "cp1252"
_BESIDE_EACH_OTHER = re.compile(rb"[\x80-\xff]{2}")
_UNUSUAL_ASCII = bytes([*range(9), *range(0x0B, 0x20), 0x7F])


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Text, how its bytes were read, and how many characters were lost in reading them."""

    text: str
    encoding: str
    replaced_characters: int


def decode(content: bytes) -> Decoded:
    """Bytes as text: UTF-8, else what the byte order mark says, else the best guess, else UTF-8 with replacements."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            body = content[len(mark) :] if encoding == "utf-8" else content
            return _decode_as(body, encoding)
    try:
        return _decoded(content.decode("utf-8"), "utf-8", 0)
    except UnicodeDecodeError:
        return _decode_unmarked(content)


def plain_text(text: str) -> str:
    """Text in NFC with `\\n` newlines, without control characters (tabs stay) and without lone surrogates."""
    # Bytes are looked through much faster. The other characters that are taken begin with one of two.
    content = text.encode("utf-8", "surrogatepass")
    plain = len(content) == len(content.translate(None, _UNUSUAL_ASCII))
    if plain and len(content) == len(text):
        return text  # ASCII, as most are
    if not (plain and b"\xc2" not in content and b"\xed" not in content) and _UNUSUAL.search(text):
        text = _NEWLINES.sub("\n", text)
        text = _PAGE_BREAKS.sub(" ", text)
        text = _CONTROLS.sub("", text)
        text = _SURROGATES.sub(_REPLACEMENT, text)
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def _decode_unmarked(content: bytes) -> Decoded:
    replaced = _decode_as(content, "utf-8")
    # A few bad bytes among many good multi-byte sequences are damage, not another encoding.
    intact = sum(1 for _ in re.finditer(r"[^\x00-\x7f\ufffd]", replaced.text))
    if intact > replaced.replaced_characters:
        return replaced
    encoding = _guessed(content)
    return replaced if encoding is None else _decode_as(content, encoding)


def _guessed(content: bytes) -> str | None:
    """The likeliest encoding; of equally likely ones that of Western Europe, as most such files are in it.

    The detector names the first of the alphabet, and `è` then becomes another letter. It also takes a single accent
    between two letters for a character of Chinese, where no words tell it the language.
    """
    import charset_normalizer

    guesses = charset_normalizer.from_bytes(content)
    best = guesses.best()
    if best is None:
        return None
    as_likely = [guess for guess in guesses if (guess.chaos, -guess.coherence) <= (best.chaos, -best.coherence)]
    known = {name for guess in as_likely for name in (guess.encoding, *guess.could_be_from_charset)}
    if _WESTERN in known or (not best.coherence and not _BESIDE_EACH_OTHER.search(content) and _is_western(content)):
        return _WESTERN
    return str(best.encoding.replace("_", "-"))


def _is_western(content: bytes) -> bool:
    try:
        content.decode(_WESTERN)
    except UnicodeDecodeError:
        return False
    return True


def _decode_as(content: bytes, encoding: str) -> Decoded:
    try:
        return _decoded(content.decode(encoding), encoding, 0)
    except UnicodeDecodeError:
        text = content.decode(encoding, "replace")
        return _decoded(text, encoding, text.count(_REPLACEMENT))


def _decoded(text: str, encoding: str, replaced: int) -> Decoded:
    return Decoded(text=plain_text(text.removeprefix("\ufeff")), encoding=encoding, replaced_characters=replaced)
