"""Credentials by the place where they stand: in URLs, headers and calls; and e-mail addresses."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from rag_pipeline.documents.redaction.spans import Finding, places
from rag_pipeline.documents.redaction.values import is_hex, is_placeholder, is_random, is_reference, is_words

_USERINFO = re.compile(
    r"://([^\s:/?#\[\]@'\"`<>]{0,256}):([^\s'\"`<>/?#,;]{1,512}|[^\s'\"`<>/]{1,512}?|[^\s'\"`<>@]{1,512})@(?=[\w\[{$%(*<-])"
)
_TOKEN_USER = re.compile(r"://([^\s:/?#\[\]@'\"`<>,;()]{16,512})(?::x-oauth-basic|:)?@(?=[\w\[])")
_ENCODED = re.compile(r"%3A%2F%2F([^\s%&'\"<>]{0,128})%3A((?:(?!%40)[^\s&'\"<>]){1,256})%40", re.IGNORECASE)
_JOINT = r"(?:\\?\n[ \t]*|[\"'`]\\\n[\"'`]|[\"'`][ \t]*(?:[+.&][ \t]*)?(?:\\?\n[ \t]*)?(?:[+.&][ \t]*)?[rbuf]?[\"'`])"
"""Where a value is broken: a line that goes on, or a literal that is put behind another."""
_BEARER = re.compile(
    rf"(?i:bearer|ssww?s|apikey|token token=)(?:[\s:=]{{1,3}}|(?=[\"'`])){_JOINT}?[ \t]*[\"'`]?"
    r"([A-Za-z0-9_~+/.=:|-]{8,4096})"
)
_GOES_ON = re.compile(rf"(?P<joint>{_JOINT})(?P<value>(?![-=])[A-Za-z0-9_~+/=.-]{{3,4096}})")
_SIGN = re.compile(r"[+.&]")
_MOST_PIECES = 40
_SHORTEST_BROKEN = 24
_BASIC = re.compile(r"(?i:basic)[ :=]{1,2}[\"'`]?([A-Za-z0-9+/_-]{8,1024}={0,2})")
_SCHEME = re.compile(
    r"(?i)authorization[\"'`\]]{0,2}\s{0,3}[:=,]\s{0,3}[\"'`]?(?:(?:token|key|apikey|api-key|api-token|basic|bearer|digest|negotiate|ssws"
    r"|genieKey|sso-key|discogs token=|bot)(?:\s|\\\n)+)?([A-Za-z0-9_~+/.=:|-]{16,4096})"
)
_TWO_ARGUMENTS = re.compile(r"\s*[\"']([^\"'\n]{1,128})[\"']\s*,\s*[\"']([^\"'\n]{4,256})[\"']")
_AUTH_CALLS = ("auth=(", "auth = (", "basicauth(", "basic_auth(", "passwordauthentication(")
_EMAIL = re.compile(r"[A-Za-z0-9][\w.+%-]{0,63}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,4}[A-Za-z]{2,24}\b")
_EMAIL_START = re.compile(r"[\w.+%-]{1,64}$")
_NOBODY = re.compile(
    r"(?i)@(?:[\w-]+\.)*example(?:\.\w+)?$|^(?:git|noreply|no-reply|donotreply|postmaster|hg|svn)@|@users\.noreply\."
)
_DIGITS = re.compile(r"\d")


def find_in_urls(text: str) -> Iterator[Finding]:
    """Passwords and tokens before a URL's host, also in a URL that is itself percent-encoded."""
    for at in places(text, "://"):
        near = text.find("@", at + 3, at + 800)
        if near < 0:
            pass
        elif found := _USERINFO.match(text, at):
            if is_url_password(found.group(1), found.group(2)):
                yield Finding(kind="password-in-url", start=found.start(2), end=found.end(2), rank=2)
            elif _is_token(found.group(1)):
                yield Finding(kind="token-in-url", start=found.start(1), end=found.end(1), rank=2)
        elif (found := _TOKEN_USER.match(text, at)) and _is_token(found.group(1)):
            yield Finding(kind="token-in-url", start=found.start(1), end=found.end(1), rank=2)
    if "%40" in text:
        for found in _ENCODED.finditer(text):
            if is_url_password(found.group(1), found.group(2)):
                yield Finding(kind="password-in-url", start=found.start(2), end=found.end(2), rank=2)


def is_url_password(user: str, password: str) -> bool:
    """Whether what stands between `user:` and `@` is a real password."""
    if len(password) < 3 or (password.isdigit() and len(password) <= 5 and "/" not in password):
        return False
    return not (
        is_placeholder(password) or is_words(password) or password.lower() == user.lower()
    ) and not password.startswith(("$", "{", "<", "%"))


def _is_token(user: str) -> bool:
    return (
        len(user) >= 16
        and not is_placeholder(user)
        and (is_random(user) or (is_hex(user) and len(user) in (32, 40, 64)))
    )


def find_in_headers(text: str, lowered: str) -> Iterator[Finding]:
    """Values of `Authorization` headers, whatever they are quoted with."""
    for word, pattern in (("bearer", _BEARER), ("authorization", _SCHEME)):
        for at in places(lowered, word):
            found = pattern.match(text, at)
            # What follows `Basic` is judged below.
            if found is None or " basic " in lowered[at : found.start(1)]:
                continue
            for start, end in _credential(text, *found.span(1)):
                yield Finding(kind="authorization-header", start=start, end=end, rank=3)
    for at in places(lowered, "basic"):
        found = _BASIC.match(text, at)
        if found and (is_basic_auth(found[1]) or _is_broken_auth(found[1], lowered[max(0, at - 20) : at])):
            yield Finding(kind="basic-auth", start=found.start(1), end=found.end(1), rank=2)


def _credential(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where the credential stands that begins there, with the pieces it goes on in; nowhere if it is none."""
    first = (start, start + len(text[start:end].rstrip(".:,")))
    found = [first]
    while found[-1][1] == end and len(found) < _MOST_PIECES and (more := _GOES_ON.match(text, end)):
        # After a plain line break, or between arguments of a shell, something else may begin.
        is_sure = _SIGN.search(more["joint"]) or more["joint"].lstrip("\"'`").startswith("\\\n")
        if not is_sure and not is_random(more["value"]):
            break
        end = more.end()
        found.append(more.span("value"))
    for pieces in (found, [first]) if len(found) > 1 else (found,):
        if _is_credential("".join(text[begins:ends] for begins, ends in pieces)):
            return pieces
    return []


def find_in_calls(text: str, lowered: str, *, has_words: bool) -> Iterator[Finding]:
    """Passwords that are given beside their user to what authenticates: `auth=("user", "…")`.

    `has_words`: what the engine says of the text.
    """
    calls = (*(_AUTH_CALLS if "auth" in lowered else ()), *(("networkcredential(",) if has_words else ()))
    for call in calls:
        for at in places(lowered, call):
            if (found := _TWO_ARGUMENTS.match(text, at + len(call))) and is_url_password(*found.groups()):
                yield Finding(kind="password", start=found.start(2), end=found.end(2), rank=2)


def _is_credential(value: str) -> bool:
    if (
        len(value) < 12
        or is_placeholder(value)
        or is_reference(value)
        or value.startswith(("http:", "https:", "realm="))
    ):
        return False
    return bool(_DIGITS.search(value)) and (is_random(value) or len(value) >= 20)


def is_basic_auth(value: str) -> bool:
    """Whether it is base64 of a user and a password that is no placeholder."""
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
    user, colon, password = plain.partition(":")
    return (
        bool(colon and plain.isprintable() and len(password) >= 3) and not is_placeholder(password) and user != password
    )


def _is_broken_auth(value: str, before: str) -> bool:
    """Whether a header gives it as Base64, though it makes no text: cut off, or mistyped."""
    if "authorization" not in before or len(value) < _SHORTEST_BROKEN or is_placeholder(value) or not is_random(value):
        return False
    try:
        base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return True
    return False


def find_emails(text: str) -> Iterator[Finding]:
    """Addresses of people; those of documentation (`@example.com`), of git and of nobody stay."""
    at = text.find("@")
    while at >= 0:
        before = _EMAIL_START.search(text, max(0, at - 64), at)
        if before and (found := _EMAIL.match(text, before.start())) and not _NOBODY.search(found.group()):
            yield Finding(kind="email", start=found.start(), end=found.end(), rank=9)
        at = text.find("@", at + 1)
