"""Find the encoding that a text declares for itself, in the places where editors, compilers and browsers look."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final

_TOP_BYTES: Final = 4096
_BOTTOM_BYTES: Final = 3000
_NAME: Final = rb"""[ \t]*["']?[ \t]*(?P<name>[A-Za-z][\w.:+-]{1,40})"""
_TOP: Final = tuple(
    re.compile(pattern + _NAME + ending, re.IGNORECASE | re.MULTILINE)
    for pattern, ending in (
        # XML's prolog, CSS and AsciiDoc's header.
        (rb"""\A\s*<\?xml\b[^>]{0,200}?\bencoding[ \t]*=""", rb""),
        (rb"""\A@charset[ \t]""", rb""),
        (rb"""^:encoding:""", rb""),
        # HTML, JSP, gettext and mail.
        (rb"""<meta\b[^>]{0,400}?\bcharset[ \t]*=""", rb""),
        (rb"""<%@[ \t]*page\b[^>]{0,400}?\b(?:pageEncoding|charset)[ \t]*=""", rb""),
        (rb"""^["' \t]{0,8}Content-Type:[^\n]{0,200}?\bcharset[ \t]*=""", rb""),
        # Python and Ruby (PEP 263), Emacs and Vim: a comment in the first two lines.
        (rb"""\A(?:[^\n]{0,500}\n)?[^\w\n]{1,40}[^\n]{0,200}?coding[:=]""", rb""),
        (rb"""\A(?:[^\n]{0,500}\n){0,4}[^\n]{0,200}?\b(?:vim?|ex):[^\n]{0,200}?\b(?:fileencoding|fenc)=""", rb""),
        # Perl, TeX and R.
        (rb"""^(?:=encoding|use[ \t]+encoding|\\encoding\{|%[ \t]*!TEX[ \t]+encoding[ \t]*=)""", rb""),
        (rb"""\\usepackage[ \t]*\[""", rb"""[^\]\n]{0,40}\][ \t]*\{inputenc\}"""),
    )
)  # fmt: skip
_BOTTOM: Final = tuple(
    re.compile(pattern + _NAME, re.IGNORECASE)
    for pattern in (
        rb"""\b(?:vim?|ex):[^\n]{0,200}?\b(?:fileencoding|fenc)=""",
        rb"""\bLocal Variables:[^\n]{0,80}\n(?:[^\n]{0,200}\n){0,20}?[^\n]{0,80}?\bcoding:""",
    )
)
_HINT: Final = re.compile(rb"coding|charset|fenc|inputenc", re.IGNORECASE)

_WIDER: Final = {
    # As browsers do (https://encoding.spec.whatwg.org/#names-and-labels): text that claims the one is in the other.
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "tis-620": "cp874", "iso8859-11": "cp874",
    "shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "big5": "big5hkscs",
}  # fmt: skip
_OTHER_NAMES: Final = {
    "ansinew": "cp1252", "applemac": "mac-roman", "cp1251-unix": "cp1251", "iso-8859-6-e": "iso8859-6",
    "iso-8859-6-i": "iso8859-6", "iso-8859-8-e": "iso8859-8", "iso-8859-8-i": "iso8859-8", "koi8": "koi8-r",
    "ks_c_5601-1987": "cp949", "logical": "iso8859-8", "x-cp1251": "cp1251", "x-euc-jp": "euc_jp", "x-gbk": "gb18030",
    "x-mac-cyrillic": "mac-cyrillic", "x-mac-roman": "mac-roman", "x-sjis": "cp932", "sjis-win": "cp932",
    "eucjp-ms": "euc_jp", "utf8x": "utf-8", "latin9": "iso8859-15", "windows-874": "cp874",
}  # fmt: skip
_NO_TEXT: Final = frozenset(
    ["idna", "mbcs", "oem", "palmos", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"]
)
_LINE_ENDS: Final = re.compile(r"-(?:unix|dos|mac)\Z")


def declared_encodings(content: bytes) -> Iterator[str]:
    """Codecs that the bytes declare for themselves, the likeliest first; only those that Python knows."""
    top = content[:_TOP_BYTES]
    bottom = content[-_BOTTOM_BYTES:] if len(content) > _BOTTOM_BYTES else b""
    for part, patterns in ((top, _TOP), (bottom or top, _BOTTOM)):
        if not _HINT.search(part):
            continue
        for pattern in patterns:
            if found := pattern.search(part):
                yield from codecs_named(found["name"].decode("ascii"))


def codecs_named(label: str) -> Iterator[str]:
    """The codecs that a label may mean: first the wider one that people mean by it, then the one it names."""
    name = _LINE_ENDS.sub("", label.strip().lower())
    try:
        codec = codecs.lookup(_OTHER_NAMES.get(name, name))
    except (LookupError, UnicodeError, ValueError):
        return
    # `rot13`, `base64` and the like turn no bytes into text.
    if codec.name.replace("_", "-") in _NO_TEXT or not getattr(codec, "_is_text_encoding", True):
        return
    if codec.name in _WIDER:
        yield _WIDER[codec.name]
    yield codec.name
