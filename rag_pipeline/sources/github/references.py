"""Which issues and pull requests a text speaks of, and which of them a pull request closes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAX_REFERENCES = 500
# Fenced code, code in a line, HTML comments. In one pass: whichever begins first hides what is in it.
_HIDDEN = re.compile(
    r"^[ \t>*+\-0-9.)]*(?P<fence>`{3,}+|~{3,}+)[^`\n]*\n.*?(?:^[ \t>]*(?P=fence)[`~]*[ \t\r]*$|\Z)"
    r"|(?<!`)(?P<ticks>`++)[^\n]{1,1000}?(?<!`)(?P=ticks)(?!`)"
    r"|<!--.*?(?:-->|\Z)",
    re.DOTALL | re.MULTILINE,
)
_REPOSITORY = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[\w.-]{1,100}"
_REFERENCE = (
    rf"(?:https?://(?P<host>[\w.:-]{{1,200}})/(?P<url_repository>{_REPOSITORY})/(?:issues|pull)/"
    r"(?P<url_number>[1-9]\d{0,8})\b"
    rf"|(?<![\w/&])(?P<repository>{_REPOSITORY})?#(?P<number>[1-9]\d{{0,8}})\b"
    r"|\bGH-(?P<gh_number>[1-9]\d{0,8})\b)"
)
_MENTION = re.compile(_REFERENCE)
# https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue
_CLOSING = re.compile(rf"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?[ \t]+{_REFERENCE}", re.IGNORECASE)


def mentions(texts: Iterable[str], *, repository: str, host: str) -> list[str]:
    """What the texts refer to, as `owner/name#number`, in order, each once; code and HTML comments do not count.

    `host` is that of GitHub's pages: an address of another one is no reference.
    """
    return _found(_MENTION, texts, repository, host)


def closes(text: str, *, repository: str, host: str) -> list[str]:
    """The issues that a pull request with this description closes, by GitHub's keywords."""
    return _found(_CLOSING, [text], repository, host)


def _found(pattern: re.Pattern[str], texts: Iterable[str], repository: str, host: str) -> list[str]:
    found: dict[str, None] = {}
    for text in texts:
        if "#" not in text and "/" not in text and "GH-" not in text.upper():
            continue
        for match in pattern.finditer(_HIDDEN.sub(" ", text)):
            if match["host"] and match["host"].lower() != host.lower():
                continue
            number = match["url_number"] or match["number"] or match["gh_number"]
            where = match["url_repository"] or match["repository"] or repository
            found[f"{repository if where.lower() == repository.lower() else where}#{int(number)}"] = None
            if len(found) >= _MAX_REFERENCES:
                return list(found)
    return list(found)
