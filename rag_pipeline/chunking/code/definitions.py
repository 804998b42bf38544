"""Lines of code that begin a definition, and its name.

Regular expressions over single lines: enough to name what a chunk stands in, whatever the language.
"""

from __future__ import annotations

import re
from collections.abc import Callable

DefinitionFinder = Callable[[str, str], str | None]
"""A line without its indentation and the line after it, to the name that the line defines; None: no definition."""

_MAX_LINE_CHARS = 300  # a definition that begins later on its line is minified code

_PYTHON = re.compile(r"(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|abstract|final|async|pub(?:\([^()]{0,40}\))?"
    r"|unsafe|const|inline|extern|override|virtual|sealed|partial|data|open|local|declare|typedef|readonly|suspend"
    r"|case)[ \t]+)*"
)
_KEYWORDS = (
    r"(?:class|struct|enum|interface|trait|impl|function|func|fun|fn|def|defp|defmodule|module|namespace|type|object"
    r"|record|protocol|extension|union|mod|contract|sub|macro_rules!)"
)
_NAME = r"(?:<[^<>]*>[ \t]*)?(?:\([^()]*\)[ \t]*)?(\w[\w.:$]*(?:[ \t]+for[ \t]+\w+)?)"
_KEYWORD = re.compile(rf"{_MODIFIERS}{_KEYWORDS}(?:[ \t]+|\*[ \t]*|(?=<)){_NAME}")
_FUNCTION_VALUE = re.compile(
    r"(?:export[ \t]+)?(?:const|let|var)[ \t]+(\w+)[^=]{0,100}=[ \t]*(?:async[ \t]*)?(?:function\b|\(|\w+[ \t]*=>)"
)
_SQL = re.compile(
    r"create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:temp(?:orary)?[ \t]+|unique[ \t]+|materialized[ \t]+)?"
    r"(?:table|view|function|procedure|trigger|index|type|policy)[ \t]+(?:if[ \t]+not[ \t]+exists[ \t]+)?([\w.\"]+)",
    re.IGNORECASE,
)
_CALLABLE_NAME = re.compile(r"[*&~]*([\w$:~]+)$")
_NOT_CALLABLE = re.compile(
    r"(?:await|catch|do|elif|else|for|foreach|func|function|fn|guard|if|lock|match|new|return|select|switch|synchronized"
    r"|throw|try|unless|using|when|while|with)\b"
)


def python_definition(line: str, _following: str) -> str | None:
    """The function or class that a line of Python defines."""
    match = _PYTHON.match(line) if line[0] in "dca" else None
    return match[1] if match else None


def other_definition(line: str, following: str) -> str | None:
    """The function, type, module or table that a line of another language defines."""
    line = line[:_MAX_LINE_CHARS]
    if match := _KEYWORD.match(line):
        return match[1]
    if line[0] in "celv" and (match := _FUNCTION_VALUE.match(line)) and line.rstrip().endswith(("{", "(", "=>")):
        return match[1]
    if line[0] in "cC" and (match := _SQL.match(line)):
        return match[1].strip('"')
    return _callable(line.rstrip(), following)


def _callable(line: str, following: str) -> str | None:
    """`name` of `… name(…) {`, the brace on this line or the next."""
    if not (line.endswith("{") or (line.endswith(")") and following.strip() == "{")):
        return None
    head, bracket, _ = line.partition("(")
    words = head.split()
    if not bracket or not words or "=" in head or "=>" in line or _NOT_CALLABLE.match(words[0]):
        return None
    name = _CALLABLE_NAME.match(words[-1])
    return name[1] if name and not _NOT_CALLABLE.fullmatch(name[1]) else None
