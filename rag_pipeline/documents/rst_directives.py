"""The directives of reStructuredText and Sphinx: what of each a reader sees."""

from __future__ import annotations

import re
from typing import Final, Literal

Body = Literal["kept", "verbatim", "dropped"]
"""What is under a directive: text like any other, a block that stays as it is, or nothing for a reader."""

DIRECTIVE: Final = re.compile(
    r"(?P<indent>[ \t]*)\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?(?P<name>[A-Za-z][\w+.-]*(?::[A-Za-z][\w+.-]*)*)"
    r"[ ]?::(?:[ \t]+(?P<argument>\S.*?))?[ \t]*$"
)
_ADMONITIONS: Final = {
    "admonition": "",
    "attention": "Attention:",
    "caution": "Caution:",
    "danger": "Danger:",
    "error": "Error:",
    "hint": "Hint:",
    "important": "Important:",
    "note": "Note:",
    "seealso": "See also:",
    "tip": "Tip:",
    "todo": "Todo:",
    "warning": "Warning:",
    "deprecated": "Deprecated since version",
    "deprecated-removed": "Deprecated since version, removed in version",
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
}
_VERBATIM_WORDS = (
    "code code-block sourcecode parsed-literal math prompt doctest testcode testoutput list-table csv-table"
    " productionlist graphviz digraph graph mermaid uml plantuml plot ipython jupyter-execute console terminal"
    " autosummary flat-table"
)
_VERBATIM: Final = frozenset(_VERBATIM_WORDS.split())
"""The chunker keeps a directive with what is under it, so their first line stays as it is."""
_DROPPED_WORDS = (
    "toctree contents index raw include literalinclude highlight highlightlang meta currentmodule py:currentmodule"
    " sectionauthor moduleauthor codeauthor sectnum role default-role default-domain testsetup testcleanup"
    " tabularcolumns program target-notes header footer date unicode"
)
_DROPPED: Final = frozenset(_DROPPED_WORDS.split())
_TRANSPARENT_WORDS = (
    "only container class rst-class cssclass table topic sidebar rubric epigraph pull-quote highlights compound"
    " glossary"
    " hlist tab-set tabs tab tab-item group-tab code-tab dropdown grid grid-item grid-item-card card centered figure"
    " image thumbnail panels details collapse list-item"
)
_TRANSPARENT: Final = frozenset(_TRANSPARENT_WORDS.split())
_TITLELESS_WORDS = "only container class rst-class cssclass figure image thumbnail grid hlist tab-set glossary"
_TITLELESS: Final = frozenset(_TITLELESS_WORDS.split())
"""Their arguments are conditions, classes and paths."""
_CODE_TABS: Final = frozenset(["code-tab"])
_DOMAINS = re.compile(r"^(?:py|c|cpp|js|rst|std|http|rust|go|php|rb|java|dotnet|ts):")
_OBJECT_KINDS: Final = {
    "autoattribute": "attribute", "autoclass": "class", "autodata": "data", "autodecorator": "decorator",
    "autoenum": "enum", "autoexception": "exception", "autofunction": "function", "automethod": "method",
    "automodule": "module", "autoproperty": "property", "automodulesumm": "module", "autopydantic_model": "class",
    "doxygenclass": "class", "doxygenfunction": "function", "doxygenstruct": "struct",
    "classmethod": "class method", "staticmethod": "static method",
}  # fmt: skip
_KNOWN: Final = _VERBATIM | _DROPPED | _TRANSPARENT | _ADMONITIONS.keys() | _OBJECT_KINDS.keys()
_OF_WORD: Final = {
    "block": "code-block", "code": "code-block", "prompt": "prompt", "console": "console", "terminal": "terminal",
    "graph": "graph", "table": "flat-table", "tab": "tab", "tabs": "tabs", "group": "tab", "card": "card",
    "dropdown": "dropdown",
}  # fmt: skip
"""By a word in the name of a directive that nobody knows."""
_NAMES_ALONE: Final = frozenset(["option", "cmdoption", "envvar", "describe", "object", "confval", "term"])
"""What they describe is said by its own form: `--verbose`, `HOME`."""


def read_as(name: str) -> str:
    """The directive that one of an unknown name is read as: `prism-code-block` as `code-block`, `md-tab` as `tab`.

    Extensions name theirs after those that everybody knows. Only such are taken of which every word stays.
    """
    words = name.split("-")
    if len(words) < 2 or name in _KNOWN:
        return name
    return next((_OF_WORD[word] for word in reversed(words) if word in _OF_WORD), name)


def body_of(name: str) -> Body:
    """What is to be done with the lines under a directive."""
    if name in _DROPPED:
        return "dropped"
    return "verbatim" if name in _VERBATIM or name in _CODE_TABS else "kept"


def is_verbatim(name: str) -> bool:
    """Whether the directive stays as it is, its own line included."""
    return name in _VERBATIM


def is_admonition(name: str) -> bool:
    """Whether what is under the directive continues its first line."""
    return name in _ADMONITIONS


def first_line(name: str, argument: str) -> str:
    """The words that stand for the line of a directive that is not kept verbatim; empty when there are none."""
    if name in _ADMONITIONS:
        return _admonition(name, argument)
    if name in _TRANSPARENT:
        return "" if name in _TITLELESS else argument
    if name in _DROPPED or not argument:
        return ""
    plain = _DOMAINS.sub("", name)
    if plain in _NAMES_ALONE:
        return argument
    return f"{_OBJECT_KINDS.get(plain, plain)} {argument}"


def _admonition(name: str, argument: str) -> str:
    label = _ADMONITIONS[name]
    if not name.startswith(("version", "deprecated")):
        return f"{label} {argument}".strip()
    version, _, words = argument.partition(" ")
    if name == "deprecated-removed":
        removed, _, words = words.partition(" ")
        version = f"{version}, removed in version {removed}"
        label = "Deprecated since version"
    return f"{label} {version}: {words}".strip() if version else label
