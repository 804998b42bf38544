"""Bytes to text that every later stage can trust: one newline, one normal form, nothing that PostgreSQL refuses.

How bytes are read, in this order; what does not hold is passed over:

1. A byte order mark is believed.
2. UTF-16 and UTF-32 without a mark, only where NULs stand in every second place, or in three of four.
3. Valid UTF-8 is UTF-8, whatever is declared: text in another encoding is hardly ever valid UTF-8 by chance. A few
   characters can be; where they are unlikely as UTF-8, a declared encoding of Asia is believed, and without one the
   document is marked as guessed. ISO-2022 is ASCII with escape sequences, and is told by them.
4. A declaration is believed when the bytes decode in it without control characters: what the source says (Content-Type,
   `working-tree-encoding`) before what the text says (see `declared_encoding`).
5. A few bad bytes among more intact characters of UTF-8 are damage.
6. The rest is guessed (see `encoding_guess`); a guess that little speaks for is marked.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from rag_pipeline.documents.declared_encoding import codecs_named, declared_encodings
from rag_pipeline.nul_bytes import CONTROL, wide_encoding

# UTF-32 before UTF-16: the little-endian mark of the one begins with that of the other.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_FIRST_OF_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_REPLACEMENT = "\ufffd"
_UNUSUAL_ASCII = bytes([*range(9), *range(0x0B, 0x20), 0x7F])
_UNUSUAL = tuple(
    re.compile(pattern)
    for pattern in (
        rb"\xc2[\x80-\x9f\xad]",
        rb"\xd8\x9c",
        rb"\xe2(?:\x80[\x8b-\x8f\xa8-\xae]|\x81[\xa0-\xaf])",
        rb"\xed[\xa0-\xbf]",
        rb"\xef(?:\xbb\xbf|\xbf[\xb9-\xbc])",
        rb"\xf3\xa0[\x80\x81]",
    )
)
"""All that `plain_text` takes out or replaces, in UTF-8, by first bytes; those that a text lacks cost nothing."""

_SOFT_BREAKS = re.compile("[\x85\u2028\u2029]")
"""End a line for a reader, but not for editors and GitHub, which number the lines."""
_ESCAPE_SEQUENCES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*(?P<end>[@-~])"  # colours, and movements of the cursor
    r"|[\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"  # titles and links
    r"|[()*+][0-9A-Z]|#[3-8]|%[@G]|[78=>c])"
)
_MOVES = frozenset("ABCDEFGHadef`")
_OVERSTRUCK = re.compile(r"_\x08(?=\w)|(\w)\x08(?=\1)")
"""How pages of a manual print bold and underlined letters."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x9f\xad\u061c\u200e\u200f\u202a-\u202e\u2060-\u2062\u2064-\u206f\ufeff\ufff9"
    "\U000e0000-\U000e007f]"
)
"""Controls, soft hyphens, word joiners, marks of direction, byte order marks, and tags: they part no words."""
_JOINERS = re.compile(
    "[\u200c\u200d](?<![\u0590-\u1cff\u2190-\u2ad0\u2b00-\u2bff\ufb1d-\ufdff\ufe00-\ufe0f\ufe70-\ufefc"
    "\U00010a00-\U00011fff\U0001f000-\U0001faff][\u200c\u200d])"
)
"""Zero-width joiners and non-joiners, save after letters of Arabic and Indic scripts and emoji, which are spelt with
them."""
_GAPS = re.compile("[\x1c-\x1f\u200b\u2063\ufffa-\ufffc]+")
"""Zero-width spaces and other separators that are not seen."""
_PART_OF_WORD = re.compile(r"[^\s!-/:-@\[-`{-~\u2000-\u206f\u3000-\u303f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")

_ISO_2022 = re.compile(rb"\x1b\$(?:[@AB]|\([DOPQ]|\)[CAG])")
_STATEFUL = ("iso2022_jp", "iso2022_jp_2", "iso2022_jp_ext", "iso2022_kr")
_MANY_BYTES = frozenset(["gb18030", "big5hkscs", "cp932", "euc_jp", "cp949", "johab", "cp874"])
"""Encodings in which two or three characters may be valid UTF-8 by chance."""
_FEW, _FEW_DIFFERENT = 8, 3
_ASCII = bytes(range(0x80))
_LIKELY_ALONE = re.compile("[\xa0-\u017f\u0386-\u03ce]*")
"""Single letters and signs that stand in English texts."""
_ASCII_LETTER = re.compile(rb"[A-Za-z]")
_IN_NO_TEXT = re.compile(f"{CONTROL.pattern}|[\ue000-\uf8ff]")
_SURE_INTACT = 3
"""So many intact characters for each that is not say that the text is damaged UTF-8."""
_ODD_SHARE = 0.1
"""A text with more control characters has been read in a wrong encoding, or is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Text, and how its bytes were read."""

    text: str
    encoding: str
    replaced_characters: int = 0
    """Characters that were lost in reading."""
    is_guessed: bool = False
    """Whether little speaks for the encoding."""
    source_lines: Sequence[int] | None = None
    """For each line of the text the 1-based line of the source; None: they are the same."""


def decode(content: bytes, *, declared: Iterable[str] = (), is_json: bool = False) -> Decoded:
    """Bytes as text. `declared`: encodings that the source names, by any of their names.

    `is_json`: a line end inside a string of JSON is written as an escape, as JSON allows no other.
    """
    if (text := _plain_utf8(content)) is not None:
        return Decoded(text=text, encoding="utf-8")
    found = _read(content, declared)
    text = found.text.removeprefix("\ufeff")
    if is_json:
        text = _SOFT_BREAKS.sub(r"\\n", text)
    plain, source_lines = plain_lines(text)
    is_odd = plain != text and len(CONTROL.findall(text)) > _ODD_SHARE * len(text)
    return replace(found, text=plain, source_lines=source_lines, is_guessed=found.is_guessed or is_odd)


def plain_text(text: str) -> str:
    """Text in NFC with `\\n` newlines, without what nobody sees: control and format characters, terminal codes.

    What parts words becomes a space or a line end, what does not is taken out; tabs stay, lone surrogates are replaced.
    """
    content = text.encode("utf-8", "surrogatepass")
    if not _is_usual(content):
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if not _is_usual(text.encode("utf-8", "surrogatepass")):  # most have lines of Windows, and nothing else
            return _cleaned(_SOFT_BREAKS.sub("\n", text))
    elif len(content) == len(text):
        return text
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def _plain_utf8(content: bytes) -> str | None:
    """The text of UTF-8 in which there is nothing to be done, as most is."""
    if content.startswith(_FIRST_OF_MARKS) or not _is_usual(content):
        return None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    more = len(content) - len(text)
    if more and ((more <= _FEW and _is_scant(content)) or not unicodedata.is_normalized("NFC", text)):
        return None
    return text


def _is_usual(content: bytes) -> bool:
    """Whether `plain_text` has nothing to take out or replace in UTF-8."""
    if len(content) != len(content.translate(None, _UNUSUAL_ASCII)):
        return False
    return content.isascii() or not any(unusual.search(content) for unusual in _UNUSUAL)


def plain_lines(text: str) -> tuple[str, Sequence[int] | None]:
    """`plain_text`, and for each of its lines the 1-based line of `text`; None where they are the same.

    Lines of `text` are what editors and GitHub count: they end with `\\n`, `\\r\\n` or `\\r`. The other line ends
    (U+0085, U+2028, U+2029) make further lines of the same number.
    """
    plain = plain_text(text)
    if text.isascii() or plain == text or not _SOFT_BREAKS.search(text):
        return plain, None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return plain, [number for number, line in enumerate(lines, 1) for _ in _SOFT_BREAKS.split(line)]


def _cleaned(text: str) -> str:
    """Text whose line ends are `\\n`, without what nobody sees; no line end is added or taken."""
    if "\x1b" in text:
        text = _ESCAPE_SEQUENCES.sub(lambda found: " " if found["end"] in _MOVES else "", text)
    if "\b" in text:
        text = _OVERSTRUCK.sub("", text)
    # Form feed and vertical tab become a space, not a newline: editors and GitHub do not count them as lines.
    text = text.replace("\f", " ").replace("\v", " ")
    text = _UNSEEN.sub("", unicodedata.normalize("NFC", text))
    text = _GAPS.sub(_gap, _JOINERS.sub("", text))
    return unicodedata.normalize("NFC", _SURROGATES.sub(_REPLACEMENT, text))


def _gap(found: re.Match[str]) -> str:
    """A space where an unseen separator stands between words, else nothing."""
    text, start, end = found.string, *found.span()
    is_between = start > 0 and _PART_OF_WORD.match(text, start - 1) and _PART_OF_WORD.match(text, end)
    return " " if is_between and not unicodedata.combining(text[end]) else ""


def _read(content: bytes, declared: Iterable[str]) -> Decoded:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _decode_as(content[len(mark) :] if encoding == "utf-8" else content, encoding)
    if wide := wide_encoding(content):
        encoding, is_sure = wide
        return Decoded(text=content.decode(encoding), encoding=encoding, is_guessed=not is_sure)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return _read_other(content, declared)
    if len(content) == len(text):
        return _stateful(content) or Decoded(text=text, encoding="utf-8")
    if len(content) - len(text) <= _FEW and _is_scant(content):
        known = next((each for each in _declared(content, declared) if each.encoding in _MANY_BYTES), None)
        return known or Decoded(text=text, encoding="utf-8", is_guessed=True)
    return Decoded(text=text, encoding="utf-8")


def _read_other(content: bytes, declared: Iterable[str]) -> Decoded:
    """The text of bytes that are not UTF-8."""
    if (known := next(_declared(content, declared), None)) is not None:
        return known
    replaced = _decode_as(content, "utf-8")
    # A few bad bytes among many good multi-byte sequences are damage, not another encoding.
    intact = sum(1 for _ in re.finditer(r"[^\x00-\x7f\ufffd]", replaced.text))
    if intact > replaced.replaced_characters:
        is_sure = intact >= _SURE_INTACT * replaced.replaced_characters
        return replace(replaced, is_guessed=not is_sure)
    from rag_pipeline.documents.encoding_guess import guess_encoding  # few texts need it

    guess = guess_encoding(content)
    if guess is None:
        return replace(replaced, is_guessed=True)
    return replace(_decode_as(content, guess.encoding), is_guessed=not guess.is_sure)


def _declared(content: bytes, declared: Iterable[str]) -> Iterator[Decoded]:
    """The text in each declared encoding that it can be in."""
    named = chain.from_iterable(map(codecs_named, declared))
    for encoding in chain(named, declared_encodings(content)):
        try:
            text = content.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        # Bytes of other encodings decode as well, but often to characters that no text holds.
        if not _IN_NO_TEXT.search(text):
            yield Decoded(text=text, encoding=encoding)


def _stateful(content: bytes) -> Decoded | None:
    """The text of ASCII whose escape sequences say that it is ISO-2022."""
    if b"\x1b" in content and _ISO_2022.search(content):
        for encoding in _STATEFUL:
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError:
                continue
            return Decoded(text=text, encoding=encoding)
    return None


def _is_scant(content: bytes) -> bool:
    """Whether the few characters that are not ASCII are unlikely to stand alone in UTF-8."""
    found = set(content.translate(None, _ASCII).decode("utf-8"))
    if len(found) > _FEW_DIFFERENT or max(found) > "\u07ff":
        return False  # as many, or of three bytes, they are not valid by chance
    return not _LIKELY_ALONE.fullmatch("".join(found)) or not _ASCII_LETTER.search(content)


def _decode_as(content: bytes, encoding: str) -> Decoded:
    try:
        return Decoded(text=content.decode(encoding), encoding=encoding)
    except UnicodeDecodeError:
        text = content.decode(encoding, "replace")
        return Decoded(text=text, encoding=encoding, replaced_characters=text.count(_REPLACEMENT))
