"""Passwords that are given to commands, by an option or in an address of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rag_pipeline.documents.redaction.addresses import is_url_password
from rag_pipeline.documents.redaction.cookies import find_sessions
from rag_pipeline.documents.redaction.plausible import is_plausible
from rag_pipeline.documents.redaction.spans import Finding
from rag_pipeline.documents.redaction.values import is_easy, is_random, is_reference, looks_drawn

_COMMAND_LINE = re.compile(r"[^\n]*?(?:\\\n[^\n]*?){0,12}(?=\n|$)")
_CURL_USER = re.compile(
    r"(?:^|\s)(?:-u|--user|--proxy-user|-U|-a)[ =]{0,2}"
    r"[\"']?(?P<user>[^\s:\"'<]{0,128})[\"']?:[\"']?(?P<password>[^\s\"'\\]{3,256})?"
)
_CURL_COOKIE = re.compile(r"\s-b[ =]?[\"']?([^\s\"'-][^\n\"']{3,4000})")
_SHORT_PASSWORD = re.compile(r" -(?:p|a|w|P|pw)[ =]?([\"']?)([^\s\"'\\-][^\s\"'\\]{3,255})")
_WITH_SHORT_PASSWORD = re.compile(
    r"(?<![\w/:.-])(?:mysql(?:dump|admin|import)?|mariadb(?:-dump)?|sshpass|redis-cli|docker login"
    r"|podman login|helm registry login"
    r"|az login|ldapsearch|ldapmodify|plink|pscp|mongo(?:sh|dump|restore)?|sqlcmd|bcp|influx)(?![\w/:.-])"
)
_COMMAND_ENDS = re.compile(r"[;|&](?=\s|[;|&])")
_PORTS = re.compile(r"\d+:\d+|/.*")
_GIVEN: Final = tuple(
    (words, re.compile(pattern))
    for words, pattern in (
        (("jdbc:oracle:",), r"(?i:jdbc:oracle:(?:thin|oci8?|kprb)):[\"']?[\w$#.-]{1,60}/\"?([^\s@\"'/]{3,100})\"?@"),
        (
            ("sqlplus ", "sqlldr ", "expdp ", "impdp ", "rman "),
            r"\b(?:sqlplus|sqlldr|expdp|impdp|rman)(?: +-\w+(?: +\d)?){0,5} +(?:target +)?[\"']?[\w$#.-]{1,60}/\"?"
            r"([^\s@\"'/]{3,100})\"?@",
        ),
        (("@tcp(", "@unix("), r"(?<![\w.-])[\w.-]{1,60}:([^\s:@/\"'`]{3,100})@(?:tcp|unix)\("),
        (
            ("smbclient", "rpcclient"),
            r"\b(?:smbclient|rpcclient)\b[^\n|;]{0,200}? (?:-U|--user)[ =]?[\"']?[\w.\\/@-]{1,80}%([^\s\"']{4,100})",
        ),
        (("freerdp",), r"\b[xw]freerdp\b[^\n|;]{0,200}? /p:[\"']?([^\s\"']{4,100})"),
        (("net use ",), r"(?i:\bnet use )[^\n|;]{0,120}? ([^\s/\"'\\*:][^\s\"']{3,100}) +/(?i:user):"),
        (("lftp ",), r"\blftp\b[^\n|;]{0,120}? -u +[\"']?[\w.@-]{1,60},([^\s\"',]{4,100})"),
        (
            ("http -a", "https -a"),
            r"\bhttps? +-a(?:uth)?[ =][\"']?[\w.-]{1,60}:([^\s\"':]{3,100})",
        ),
        (("getconnection(",), r"(?i:getconnection)\([^,\n]{1,200},\s*\"[^\"\n]{0,60}\",\s*\"([^\"\s]{3,100})\""),
        (
            ("| sudo ", "|sudo ", "--password-stdin", "chpasswd", "passwd --stdin"),
            r"\b(?:echo|printf)(?: +-[ne]{1,2})? +[\"']?(?:[\w.-]{1,40}:)?([^\s\"'|]{4,100})[\"']? *\| *"
            r"(?:sudo +(?:-\w+ +){0,3}-S|[^\n|]{0,200}?--password-stdin"
            r"|(?:sudo +)?chpasswd|(?:sudo +)?passwd +--stdin)",
        ),
        (("zip -p",), r"\b(?:un)?zip -P +[\"']?([^\s\"'-][^\s\"']{3,100})"),
        (("7z ", "7za ", "unrar "), r"\b(?:7za?|unrar) [^\n|;]{0,100}?-p[\"']?([^\s\"'-][^\s\"']{3,100})"),
        (
            ("useradd ", "usermod "),
            r"\buser(?:add|mod)\b[^\n|;]{0,200}? (?:-p|--password)[ =][\"']?([^\s\"'-][^\s\"']{3,100})",
        ),
        (
            ("gh secret set",),
            r"\bgh secret set +\w{0,40}(?:PASS|PW|SECRET|TOKEN|KEY|CRED)\w{0,40} [^\n|;]{0,80}?(?:-b|--body)[ =][\"']?"
            r"([^\s\"']{4,200})",
        ),
    )
)
"""Commands and addresses that give a password where their own syntax says; by words of which they hold one.

The rules `rp-look` of `rules.toml` hold the same words.
"""


def find_in_commands(text: str, lowered: str) -> Iterator[Finding]:
    """Passwords given to commands: `curl -u user:password`, `mysql -ppassword`, `docker login -p …`."""
    at = lowered.find("curl ")
    while at >= 0:
        line = _COMMAND_LINE.match(text, at, at + 4000)
        end = line.end() if line else at + 5
        for found in _CURL_USER.finditer(text, at, end):
            # A token may be the user of an empty password.
            group = "password" if found["password"] else "user"
            if is_url_password("", found[group]) and (found["password"] or looks_drawn(found["user"])):
                yield Finding(kind="password-in-command", start=found.start(group), end=found.end(group), rank=2)
        for found in _CURL_COOKIE.finditer(text, at, end):
            yield from find_sessions(text, *found.span(1))
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
    command = _WITH_SHORT_PASSWORD.search(text, start, at)
    if command is None or _PORTS.fullmatch(value):
        return False
    # After a space, MySQL's clients read the name of a database.
    may_be_easy = not (command.group().startswith(("mysql", "mariadb")) and option.group()[3] == " ")
    is_word = is_reference(value) and not is_random(value) and not (may_be_easy and is_easy(value))
    return is_url_password("", value) and not value.isdigit() and not is_word


def find_given(text: str, lowered: str) -> Iterator[Finding]:
    """Passwords where the syntax of a command or an address has them: `sqlplus user/password@db`."""
    for words, pattern in _GIVEN:
        for found in pattern.finditer(text) if any(word in lowered for word in words) else ():
            if is_plausible("password", "password", found[1], quoted=True, loose=False):
                yield Finding(kind="password-in-command", start=found.start(1), end=found.end(1), rank=3)
