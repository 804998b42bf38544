"""Sessions in cookies: `Cookie: sessionid=…`, `Set-Cookie: …`, `cookies={"sessionid": "…"}`, `curl --cookie`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from rag_pipeline.documents.redaction.spans import Finding, places
from rag_pipeline.documents.redaction.values import is_placeholder, is_plain, looks_drawn

_PAIRS = re.compile(r"cookies?[\"'`\])]{0,3}[\s:=,(]{1,4}[\[{]?\s{0,40}[\"'`]?(?P<pairs>[^\n]{4,4000})", re.IGNORECASE)
_PAIR = re.compile(r"(?P<name>[\w.-]{1,60})[\"']?\s{0,3}[=:]\s{0,3}[\"']?(?P<value>[^\s;,\"'`<>\\(){}\[\]]{8,2048})")
_SESSION = re.compile(
    r"sess|sid$|^sid|auth|token|jwt|^\.aspnet|^remember|logged_in|login|^access$|identity|ticket|^bearer$",
    re.IGNORECASE,
)
_PUBLIC = re.compile(r"csrf|xsrf|author", re.IGNORECASE)
_SHORT = re.compile(r"(?=(?:[^\d]*\d){3})(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9]+")


def find_in_cookies(text: str, lowered: str) -> Iterator[Finding]:
    """Sessions in the cookies that the text names; `lowered` is the text in small letters."""
    done = 0
    for at in places(lowered, "cookie"):
        if at >= done and (header := _PAIRS.match(text, at)):
            done = header.end()
            yield from find_sessions(text, *header.span("pairs"))


def find_sessions(text: str, start: int, end: int) -> Iterator[Finding]:
    """Sessions in pairs of a name and a value."""
    for pair in _PAIR.finditer(text, start, end):
        name, value = pair["name"], unquote(pair["value"])
        if not _SESSION.search(name) or _PUBLIC.search(name) or is_placeholder(value) or is_plain(value):
            continue
        if looks_drawn(value) or _SHORT.fullmatch(value):
            yield Finding(kind="cookie", start=pair.start("value"), end=pair.end("value"), rank=4)
