"""Which issues and pull requests a text speaks of, and which of them a pull request closes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAX_REFERENCES = 500
_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{1,1000}`", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_REPOSITORY = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[\w.-]{1,100}"
_REFERENCE = (
    rf"(?:(?:https?://[\w.:-]{{1,200}}/)(?P<url_repository>{_REPOSITORY})/(?:issues|pull)/(?P<url_number>\d{{1,9}})\b"
    rf"|(?<![\w/&])(?P<repository>{_REPOSITORY})?#(?P<number>\d{{1,9}})\b"
    r"|\bGH-(?P<gh_number>\d{1,9})\b)"
)
_MENTION = re.compile(_REFERENCE)
# https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue
_CLOSING = re.compile(rf"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?[ \t]+{_REFERENCE}", re.IGNORECASE)


def mentions(texts: Iterable[str], *, repository: str) -> list[str]:
    """What the texts refer to, as `owner/name#number`, in order, each once; code and HTML comments do not count."""
    return _found(_MENTION, texts, repository)


def closes(text: str, *, repository: str) -> list[str]:
    """The issues that a pull request with this description closes, by GitHub's keywords."""
    return _found(_CLOSING, [text], repository)


def _found(pattern: re.Pattern[str], texts: Iterable[str], repository: str) -> list[str]:
    found: dict[str, None] = {}
    for text in texts:
        if "#" not in text and "/" not in text and "GH-" not in text:
            continue
        for match in pattern.finditer(_COMMENT.sub(" ", _CODE.sub(" ", text))):
            number = match["url_number"] or match["number"] or match["gh_number"]
            where = match["url_repository"] or match["repository"] or repository
            found[f"{where}#{int(number)}"] = None
            if len(found) >= _MAX_REFERENCES:
                return list(found)
    return list(found)
