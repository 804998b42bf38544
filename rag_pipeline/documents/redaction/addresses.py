"""Credentials by the place where they stand: in URLs, headers and commands; and e-mail addresses."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import chain

from rag_pipeline.documents.redaction.spans import Finding, places
from rag_pipeline.documents.redaction.values import is_hex, is_placeholder, is_random, is_reference, is_words

_USERINFO = re.compile(
    r"://([^\s:/?#\[\]@'\"`<>]{0,256}):([^\s'\"`<>/?#,;]{1,512}|[^\s'\"`<>/]{1,512}?|[^\s'\"`<>@]{1,512})@(?=[\w\[{$%(*<-])"
)
_TOKEN_USER = re.compile(r"://([^\s:/?#\[\]@'\"`<>,;()]{16,512})(?::x-oauth-basic|:)?@(?=[\w\[])")
_ENCODED = re.compile(r"%3A%2F%2F([^\s%&'\"<>]{0,128})%3A((?:(?!%40)[^\s&'\"<>]){1,256})%40", re.IGNORECASE)
_BEARER = re.compile(r"(?i:bearer|ssww?s|apikey|token token=)[\s:=]{1,3}[\"'`]?([A-Za-z0-9_~+/.=:|-]{8,4096})")
_BASIC = re.compile(r"(?i:basic)[ :=]{1,2}[\"'`]?([A-Za-z0-9+/_-]{8,1024}={0,2})")
_SCHEME = re.compile(
    r"(?i)authorization[\"'`\]]{0,2}\s{0,3}[:=,]\s{0,3}[\"'`]?(?:(?:token|key|apikey|api-key|basic|bearer|digest|negotiate|ssws"
    r"|genieKey|sso-key|discogs token=|bot)\s+)?([A-Za-z0-9_~+/.=:|-]{16,4096})"
)
_COMMAND_LINE = re.compile(r"[^\n]*?(?:\\\n[^\n]*?){0,12}(?=\n|$)")
_CURL_USER = re.compile(
    r"(?:^|\s)(?:-u|--user|--proxy-user|-U|-a)[ =]{0,2}([\"']?)[^\s:\"']{1,128}:([^\s\"'\\]{3,256})"
)
_SHORT_PASSWORD = re.compile(r" -(?:p|a|w|P|pw)[ =]?([\"']?)([^\s\"'\\-][^\s\"'\\]{3,255})")
_WITH_SHORT_PASSWORD = re.compile(
    r"(?<![\w/:.-])(?:mysql(?:dump|admin|import)?|mariadb(?:-dump)?|sshpass|redis-cli|docker login"
    r"|podman login|helm registry login"
    r"|az login|ldapsearch|ldapmodify|plink|pscp|mongo(?:sh|dump|restore)?|sqlcmd|bcp|influx)(?![\w/:.-])"
)
_COMMAND_ENDS = re.compile(r"[;|&](?=\s|[;|&])")
_PORTS = re.compile(r"\d+:\d+|/.*")
_TWO_ARGUMENTS = re.compile(r"\s*[\"']([^\"'\n]{1,128})[\"']\s*,\s*[\"']([^\"'\n]{4,256})[\"']")
_BASIC_CALLS = {
    "auth": ("auth=(", "auth = (", "basicauth(", "basic_auth(", "passwordauthentication("),
    "networkcredential": ("networkcredential(",),
}
"""By what all of them hold: most texts hold none."""
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
            if found and " basic " not in lowered[at : found.start(1)] and _is_credential(found.group(1).rstrip(".:,")):
                end = found.end(1) - len(found.group(1)) + len(found.group(1).rstrip(".:,"))
                yield Finding(kind="authorization-header", start=found.start(1), end=end, rank=3)
    for at in places(lowered, "basic"):
        if (found := _BASIC.match(text, at)) and is_basic_auth(found.group(1)):
            yield Finding(kind="basic-auth", start=found.start(1), end=found.end(1), rank=2)


def find_in_calls(text: str, lowered: str) -> Iterator[Finding]:
    """Passwords that are given beside their user to what authenticates: `auth=("user", "…")`."""
    for call in chain.from_iterable(calls for word, calls in _BASIC_CALLS.items() if word in lowered):
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


def find_in_commands(text: str, lowered: str) -> Iterator[Finding]:
    """Passwords given to commands: `curl -u user:password`, `mysql -ppassword`, `docker login -p …`."""
    at = lowered.find("curl ")
    while at >= 0:
        line = _COMMAND_LINE.match(text, at, at + 4000)
        end = line.end() if line else at + 5
        for found in _CURL_USER.finditer(text, at, end):
            if is_url_password("", found.group(2)):
                yield Finding(kind="password-in-command", start=found.start(2), end=found.end(2), rank=2)
        at = lowered.find("curl ", end)
    for option in _SHORT_PASSWORD.finditer(text):
        if _is_given(text, option):
            yield Finding(kind="password-in-command", start=option.start(2), end=option.end(2), rank=2)


def _is_given(text: str, option: re.Match[str]) -> bool:
    """Whether the option belongs to a command that takes a password by it."""
    value, at = option.group(2), option.start()
    start = max(0, at - 300, text.rfind("\n", 0, at))
    for other in _COMMAND_ENDS.finditer(text, start, at):
        start = other.end()
    if _PORTS.fullmatch(value) or not _WITH_SHORT_PASSWORD.search(text, start, at):
        return False
    return is_url_password("", value) and not value.isdigit() and (is_random(value) or not is_reference(value))


def find_emails(text: str) -> Iterator[Finding]:
    """Addresses of people; those of documentation (`@example.com`), of git and of nobody stay."""
    at = text.find("@")
    while at >= 0:
        before = _EMAIL_START.search(text, max(0, at - 64), at)
        if before and (found := _EMAIL.match(text, before.start())) and not _NOBODY.search(found.group()):
            yield Finding(kind="email", start=found.start(), end=found.end(), rank=9)
        at = text.find("@", at + 1)
