"""Whether the target of a link tells a reader anything that the link's own words do not.

`[guide](docs/configuration.md)` does: somebody may search for it. Anchors, hosts, numbers, hashes and what only repeats
the words do not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_HOST = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^/?#]*")
_FORGE = r"https?://(?:[\w-]+\.)*(?:github|gitlab|bitbucket|codeberg)\.[\w.]+/[^/\s]+/[^/\s]+/(?:-/)?"
_FORGE_NUMBER = re.compile(
    _FORGE + r"(?:issues|pulls?|commits?|compare|releases?|discussions|actions|milestones?|merge_requests"
    r"|tags?|labels|stargazers|network|graphs|pull-requests)(?:/|$)"
)
_FORGE_FILE = re.compile(_FORGE + r"(?:blob|tree|raw|edit|src)/[^/]+")
_IDS = re.compile(r"(?=[A-Za-z]*\d)[0-9A-Fa-f]{7,}|(?=[A-Za-z]*\d[A-Za-z\d]*[A-Z])[A-Za-z0-9]{16,}")
_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])")
_NOT_LETTERS = re.compile(r"[\W\d_]+")
_SAY_NOTHING_WORDS = (
    "adoc and asciidoc asp aspx assets blob com default doc docs edit for from gif htm html http https"
    " images img index"
    " jpeg jpg latest main master mdx net org page pages php png raw readme ref rst"
    " rtfd src stable static svg the tree txt wiki with www"
)
_SAY_NOTHING: Final = frozenset(_SAY_NOTHING_WORDS.split())
"""What paths are full of, and nobody searches for."""
_MAX_CHARS = 500
_BADGE = re.compile(
    r"shields\.io|badgen\.net|badge\.fury\.io|badges?\.svg|://[^\s]*\bbadges?\b|travis-ci\.(?:org|com)|coveralls\.io"
    r"|codecov\.io|circleci\.com|appveyor\.com|david-dm\.org|snyk\.io|pepy\.tech|gitpod\.io/button|/button\.svg"
    r"|herokucdn\.com|isitmaintained\.com|nodei\.co|discordapp\.com/api/guilds|star-history\.com|sonarcloud\.io/api"
    r"|goreportcard\.com|app\.netlify\.com|visitor-?badge|\.svg\?branch=|/workflows/[^\s]*\.svg",
    re.IGNORECASE,
)
_ALT_SAYS_NOTHING = re.compile(
    r"\W*(?:(?:alt(?:ernative)?[ _-]?text|image|img|picture|photo|logo|icon|screen[ _-]?shot|drawing|avatar|banner|gif"
    r"|untitled|figure|pasted)\W*\d*\W*)*(?:\.\w{2,4})?\W*",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def carries_words(target: str, *, text: str) -> bool:
    """Whether the target holds a word of its path that is not among the words of the link.

    A page links to the same places again and again, and so do its neighbours.
    """
    if target.startswith(("#", "data:")) or _FORGE_NUMBER.match(target):
        return False
    path = target[:_MAX_CHARS].partition("#")[0].partition("?")[0]
    if host := (_FORGE_FILE.match(path) or _HOST.match(path)):
        path = path[host.end() :]
    path = path.replace("%20", " ").removeprefix("mailto:").partition("@")[0]
    if _DIGIT.search(path):
        path = _IDS.sub("/", path)
    words = {word.lower() for word in _WORD.findall(path) if len(word) > 2} - _SAY_NOTHING
    said = text.lower()
    unsaid = [word for word in words if word not in said]
    if not unsaid:
        return False
    squeezed = _NOT_LETTERS.sub("", said)
    return not all(word.rstrip("s") in squeezed for word in unsaid)


def is_badge(source: str) -> bool:
    """Whether an image is one of those that show a state: a build's, a coverage's, a version's."""
    return _BADGE.search(source[:_MAX_CHARS]) is not None


def image_words(alt: str) -> str:
    """The words that stand for an image; empty when they only say that there is one."""
    alt = alt[:_MAX_CHARS].strip()
    return "" if _ALT_SAYS_NOTHING.fullmatch(alt) else alt
