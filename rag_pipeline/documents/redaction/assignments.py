"""Values given to names that promise a secret: in code, configuration, environment files, tables and prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rag_pipeline.documents.redaction.blocks import value_before, values_in_block
from rag_pipeline.documents.redaction.literals import Value, default_at, pieces, value_at
from rag_pipeline.documents.redaction.names import Sensitivity, sensitivity
from rag_pipeline.documents.redaction.plausible import is_plausible
from rag_pipeline.documents.redaction.prose import find_pair, find_stated
from rag_pipeline.documents.redaction.spans import MARKER_START, Finding, places
from rag_pipeline.documents.redaction.values import is_random

# Few and long words: looking for each costs more than what is found.
_WORDS: Final = ("pass", "pwd", "secret", "token", "cred", "auth", "sig=", "_pat", "pw", "psk")
_STATED_WORDS: Final = frozenset({"pass", "pw"})
"""Words that sentences name a password by as well."""
_KEY_BEFORE: Final = (
    "api", "app", "auth", "access", "secret", "private", "encryption", "signing", "account", "master", "license",
    "admin",
    "service", "storage", "shared", "sharedaccess", "consumer", "client", "hmac", "jwt", "write", "ingest", "ingestion",
    "integration", "routing", "session", "security", "webhook", "deploy", "ssh", "application", "functions",
    "developer",
    "subscription", "crypto", "aes", "fernet", "registration", "unseal", "recovery", "datadog", "openai", "anthropic",
    "stripe", "sendgrid", "mailgun", "mailchimp", "twilio", "google", "gemini", "groq", "mistral", "cohere", "algolia",
    "newrelic", "heroku", "fastly", "cloudflare", "linode", "pagerduty", "okta", "zendesk", "intercom", "maps",
    "instrumentation", "relic", "cookie",
)  # fmt: skip
_NAME_BACKWARDS = re.compile(r"[\w.$-]{0,40}")
_SPACED: Final = (
    "mot de ", "api ", "access ", "secret ", "private ", "account ", "auth ", "app ", "client ", "encryption ",
    "signing ", "license ", "master ", "admin ", "db ", "database ", "root ", "user ",
)  # fmt: skip
_SEPARATED = re.compile(
    r"(?P<rest>[\w-]{0,24}(?:\.\d{1,3})?)"
    r"(?P<close>(?:\\?[\"'`]|[\])*_}]|</?(?:b|code|strong|td|th|dt|em)>){0,5})"
    # A type between the name and its value.
    r"(?:[ \t]*:[ \t]*(?:str|String|string|SecretStr|bytes|Final(?:\[str\])?|Optional\[str\]|str \| None"
    r"|&(?:'static )?str|any|char)(?:[ \t]*\|[ \t]*(?:undefined|null))?(?=[ \t]*=)"
    r"|[ \t]+(?:string|String|str)(?=[ \t]*=))?"
    r"(?:\[\d{0,5}\]|\?|!)?"
    # The name is itself a value: `{"name": "API_KEY", "value": "…"}`.
    r"(?P<sep>(?P<question>[ \t]*\n[ \t]*:[ \t]+)"
    r"|</(?:[\w-]{0,20}[nN]ame|key|string)>\s{0,80}<(?:[\w-]{0,20}[vV]alue|string)>(?:<!\[CDATA\[|\s{0,80})(?=[^\s<>])"
    r"|(?:[ \t]+[\w:.-]{1,40}=\"[^\"<>\n]{0,80}\"){0,3}[ \t]*>(?:<!\[CDATA\[|\s{0,80})"
    r"(?=[^\s<>]{1,300}\s{0,80}</|[^<>\s]+\]\]>)"
    r"|>\s{0,80}<(?:[\w-]{0,20}[vV]alue|string)>(?:<!\[CDATA\[|\s{0,80})(?=[^\s<>])"
    r"|\.(?:equals|equalsIgnoreCase|eq|assign|set)\((?=[\"'])"
    r"|[\"']?,?\s{0,40}[\"']?(?i:value|content|default|defaultValue|parametervalue)[\"']?[ \t]*[:=]>?[ \t]*"
    # On the next line it stands further in, or in quotes: what begins a line is the next name.
    r"|[ \t]*(?:\\\n[ \t]*)?(?:=>|:=|->|===?|!==?|\?=|\|\|=?|\?\?=?|=|:(?!:)|::(?=\s*\n)|,|\||<-|→|>(?=[^\s<>]))[ \t]*"
    r"(?:\n(?:[ \t]+(?:-[ \t]+)?|(?=[\"'`])))?"
    r"|\((?=[\"'])"
    r"|[ \t]+(?:is|was|set to|to|equals)[ \t]*:?[ \t]+"
    r"|(?P<space>[ \t]+))"
    # A type that wraps it.
    r"(?:(?:[\w.]{1,40}\.)?(?:SecretStr|SecretString|Secret|String::from|str::from|aws\.String|ptr\.To|\[\]byte|Buffer\.from"
    r"|String|Field)\((?:default=)?(?=[\"'])|ConvertTo-SecureString[ \t]+(?:-String[ \t]+)?(?=[\"'])"
    r"|[*_]{1,2}[ \t]*|\([ \t]*(?:\n[ \t]+(?=[\"']))?|\[[ \t]*|<code>|<td>|str\()?"
)
_LINE_BREAK = re.compile(r"\\?\n[ \t]*")
_LONG_WORD = re.compile(r"\S{200}")
_LOGIN = re.compile(r"\b(?:machine|login|account)[ \t]+\S+\s+$|\bidentified[ \t]+$", re.IGNORECASE)
_SETTING = re.compile(
    r"(?:^|[\n;&|(])[ \t]*(?:ENV|ARG|setx|setenv)[ \t]+$|\bconfig(?:ure)?[ \t]+set[ \t]+$", re.IGNORECASE
)
_SETTING_ENDS: Final = frozenset(["env", "arg", "etx", "set"])
"""What the commands of `_SETTING` end with: three letters."""
_LOGIN_WORDS: Final = ("machine", "login", "account", "identified")
"""One of them stands in whatever `_LOGIN` finds."""
_BEFORE_QUOTED = re.compile(
    r"\b(?:WITH|ENCRYPTED|LOGIN|(?:USER|ROLE)[ \t]+\S{1,100})[ \t]+$|#[ \t]*define[ \t]+$"
    r"|\((?:def|defvar|defconst|define|setq|setf)[ \t]+$|(?:^|\n)[ \t]*set[ \t]+$|(?:^|\n)[ \t]*[:(]?[ \t]*$",
    re.IGNORECASE,
)
"""What stands before a name whose value follows a space, in quotes: in SQL, C, Gradle, Clojure."""
_OPTIONS: Final = (
    "requirepass",
    "masterauth",
    "-storepass",
    "-keypass",
    "-deststorepass",
    "-srcstorepass",
    "-destkeypass",
    "-srckeypass",
)
"""Names that a value follows after a space."""
_NAME_REST = re.compile(r"[\w-]{0,24}")
_SETTINGS: Final = frozenset({"bindpw", "rootpw", "sudopw"})
"""Names that no sentence uses."""
_QUESTION_BEFORE = re.compile(r"(?:^|\n)[ \t]*(?:-[ \t]+)?\?[ \t]+[\"']?\Z")
_BEGINS_LINE = re.compile(r"(?:^|\n)[ \t]*\Z")
_ALONE = re.compile(r"[^\s\"'`]{1,300}[ \t]*(?=\n|\Z)")
"""All of a line after a name that begins it."""
_NEXT_LINE_NAME = re.compile(r"[\w.-]+[ \t]*[=:](?![=\w]*\Z)")
_QUOTED_ENTRY_BEFORE = re.compile(r"[\"'`][ \t]*,[ \t]*[rbuf]{0,2}[\"'`][^\"'`\n]{0,40}\Z")
_QUOTED_ENTRY_AFTER = re.compile(r"[\"'`][ \t]*,[ \t]*[rbuf]{0,2}[\"'`]")
_NAME_LIKE = re.compile(r"[A-Za-z_][\w.-]*")
_ASSIGNED_BEFORE = re.compile(r"[\"'][^\"'\n]{0,100}=[^\"'=\n]{0,40}\Z")
_NEGATED = re.compile(r"!+[A-Za-z_][\w.]*")
"""Of code, or a tag of YAML."""
_ENTRY_BEFORE = re.compile(r",[ \t]*\n[ \t]*[rbuf]{0,2}[\"'`][^\"'`\n]{0,40}\Z")
_PROSE: Final = frozenset({"is", "was", "set to", "to", "equals", "|", ""})


def find_assignments(text: str, lowered: str, *, code: bool) -> Iterator[Finding]:
    """Values whose name says that they are secret and that look it; `lowered` is the text in small letters."""
    for word in _WORDS:
        length = len(word.rstrip("="))
        for at in places(lowered, word):
            yield from _judged(text, at, at + length, code=code)
            if word in _STATED_WORDS:
                yield from find_stated(text, at, code=code)
            elif word == "cred":
                yield from find_pair(text, at)
    for at in places(lowered, "key"):
        if _is_key(text, lowered, at):
            yield from _judged(text, at, at + 3, code=code)


def _is_key(text: str, lowered: str, at: int) -> bool:
    """Whether the word is the end of a name like `api_key`: most keys are those of dictionaries."""
    before = lowered[max(0, at - 16) : at].rstrip(" _-.")
    return before.endswith(_KEY_BEFORE) or text.startswith("_KEY", at - 1) or lowered.startswith("data", at + 4)


def _judged(text: str, start: int, end: int, *, code: bool) -> Iterator[Finding]:
    separated = _SEPARATED.match(text, end)
    if separated is None:
        before = text[max(0, start - 60) : start]
        if "name" in before.lower() or "==" in before or "!=" in before:
            yield from _named_after_value(text, start, end, code=code)
        return
    name_start = _name_start(text, start)
    if text.startswith(MARKER_START, max(0, name_start - len(MARKER_START))):
        return  # the name of a kind, and what follows it is the next entry of a list
    if text[name_start - 1 : name_start] in {"=", ":"} and _LONG_WORD.match(text, max(0, name_start - 200)):
        # Deep inside one word, where looking at what follows each name would take the square of its length.
        return
    name = text[name_start : separated.end("rest")]
    promised = sensitivity(name)
    if promised is None:
        return
    yield from _declared(text, name_start, separated.end("close"), name, promised, code=code)
    after_space = separated.group("space") is not None
    is_set = after_space and _is_set(text, name_start, end)
    if not is_set and not _gives_a_value(text, name, name_start, separated):
        return
    separator = separated.group("sep").strip()
    value = default_at(text, separated.end("close")) if text.startswith("${", name_start - 2) else None
    value = value or value_at(text, separated.end())
    after_line_break = "\n" in separated["sep"]
    if value is None or (not value.quoted and (separator == "," or _is_no_value(text, value, after_line_break))):
        return
    is_given = is_set or text.startswith("--", name_start) or (after_space and _is_given(text, name, name_start))
    loose = not value.quoted and (code or separator in _PROSE) and not is_given
    whole = pieces(text, value)
    # What is put together may be no secret, and its first piece one: `"secret" + "&host=" + …`.
    for places_of_it in (whole, whole[:1]) if len(whole) > 1 else (whole,):
        plain = _LINE_BREAK.sub("", "".join(text[first:last] for first, last in places_of_it))
        if is_plausible(name, promised, plain, quoted=value.quoted, loose=loose):
            break
    else:
        return
    if separator.startswith(",") and _is_next_entry(text, name_start, separated["sep"], value):
        return
    for first, last in places_of_it:
        yield Finding(kind=_kind(name, promised), start=first, end=last, rank=5)


def _gives_a_value(text: str, name: str, name_start: int, separated: re.Match[str]) -> bool:
    """Whether what stands between the name and what follows it says that a value follows."""
    if text.startswith(":?", separated.end("close")) and text.startswith("${", name_start - 2):
        return False  # what a shell says where the variable is not set
    if separated["space"] is not None:
        return _may_follow_a_space(text, name_start, separated.end())
    if separated["question"]:
        # Else it is a list of definitions, whose terms YAML would mark.
        return _QUESTION_BEFORE.search(text, max(0, name_start - 40), name_start) is not None
    separator = separated["sep"].strip()
    if separator == "to":
        return name.lower() != "pass"
    return separator != "," or (bool(separated["close"]) and "`" not in separated["close"])


def _declared(
    text: str, name_start: int, name_end: int, name: str, promised: Sensitivity, *, code: bool
) -> Iterator[Finding]:
    """Values in the block that the name opens, or before the name."""
    before = value_before(text, name_start)
    for value in (*values_in_block(text, name_start, name_end), *((before,) if before else ())):
        plain = _LINE_BREAK.sub("", text[value.start : value.end])
        if is_plausible(name, promised, plain, quoted=value.quoted, loose=code and not value.quoted):
            yield Finding(kind=_kind(name, promised), start=value.start, end=value.end, rank=5)


def _named_after_value(text: str, start: int, end: int, *, code: bool) -> Iterator[Finding]:
    """The value before a name that ends its entry."""
    name_start, rest = _name_start(text, start), _NAME_REST.match(text, end)
    name = text[name_start : rest.end() if rest else end]
    if promised := sensitivity(name):
        yield from _declared(text, name_start, name_start + len(name), name, promised, code=code)


def _is_no_value(text: str, value: Value, after_line_break: bool) -> bool:
    """Whether what has no quotes is the next name, or what a program or YAML reads as something else."""
    if _NEGATED.match(text, value.start, value.end):
        return True
    if after_line_break and text.startswith("- ", value.start - 2) and not _ALONE.match(text, value.start):
        return True
    return after_line_break and _NEXT_LINE_NAME.match(text, value.start) is not None


def _is_next_entry(text: str, name_start: int, separator: str, value: Value) -> bool:
    """Whether name and value are entries of one list: names all of them, a line for each or in a row.

    A value that looks chosen by a machine is none of them, and nor is that of an option.
    """
    plain = text[value.start : value.end]
    if text.startswith("--", name_start) or is_random(plain):
        return False
    before = max(0, name_start - 120)
    if _ASSIGNED_BEFORE.search(text, before, name_start):
        return True
    if "\n" in separator:
        return _ENTRY_BEFORE.search(text, before, name_start) is not None
    if not _NAME_LIKE.fullmatch(plain):
        return False
    return bool(_QUOTED_ENTRY_BEFORE.search(text, before, name_start) or _QUOTED_ENTRY_AFTER.match(text, value.end))


def _kind(name: str, promised: Sensitivity) -> str:
    if promised == "password":
        return "password"
    if promised == "auth":
        return "basic-auth"
    lowered = name.lower()
    words = (("secret", "secret"), ("token", "token"), ("sig", "signature"), ("key", "api-key"))
    return next((kind for word, kind in words if word in lowered), "credential")


def _name_start(text: str, at: int) -> int:
    """Where the name begins that goes on at `at`: `DB_` of `DB_PASSWORD`, `api ` of `API key`."""
    before = text[max(0, at - 41) : at]
    named = _NAME_BACKWARDS.match(before[::-1])
    length = named.end() if named else 0
    if not length and before.endswith(" "):
        length = next((len(word) for word in _SPACED if before.lower().endswith(word)), 0)
    return at - length


def _is_set(text: str, name_start: int, name_end: int) -> bool:
    """Whether the name follows a command that sets it, `ENV` or `setx`, or is itself one that takes a value."""
    if text[name_start:name_end].lower().startswith(_OPTIONS):
        return True
    before = max(0, name_start - 120)
    command = text[before:name_start].rstrip(" \t")
    # Nearly always something else stands there, which is seen much sooner than the pattern sees it.
    return command[-3:].lower() in _SETTING_ENDS and _SETTING.search(text, before, name_start) is not None


def _is_given(text: str, name: str, name_start: int) -> bool:
    """Whether a value behind its name and a space is no word of a sentence: the name is a setting's, or a login's."""
    return not name.isalpha() or name.lower() in _SETTINGS or _follows_a_login(text, name_start)


def _follows_a_login(text: str, name_start: int) -> bool:
    before = max(0, name_start - 120)
    words = text[before:name_start].lower()
    return any(word in words for word in _LOGIN_WORDS) and _LOGIN.search(text, before, name_start) is not None


def _may_follow_a_space(text: str, name_start: int, value_start: int) -> bool:
    """Whether a value may follow its name after a space alone: options, netrc, `IDENTIFIED BY`, `#define`, SQL."""
    before = max(0, name_start - 120)
    if text.startswith("--", name_start):
        return True
    if _follows_a_login(text, name_start):
        return True
    if _BEGINS_LINE.search(text, max(0, name_start - 40), name_start) and _ALONE.match(text, value_start):
        return True
    is_quoted = text[value_start : value_start + 1] in {'"', "'"}
    return is_quoted and _BEFORE_QUOTED.search(text, before, name_start) is not None
