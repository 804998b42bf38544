"""Placeholders in a value, whole and well-formed: `{{ name }}`, `${NAME}`, `#{name}`, `%(name)s`, `<name>`.

A brace or a dollar alone makes no template of a value: passwords hold them too.
"""

from __future__ import annotations

import re
from typing import Final

_PLACEHOLDER = re.compile(
    r"\$?\{\{(?P<double>[^{}]*)\}\}|\$\{(?P<dollar>(?:[^{}]|\{[^{}]*\})*)\}|#\{(?P<hash>[^{}]*)\}"
    r"|\$\((?P<shell>(?:[^()]|\([^()]*\))*)\)|<(?P<angle>[A-Za-z_/][^<>]{0,80})>|%\([\w.]+\)[sdr]?"
    r"|(?<!\{)\{(?!noop\}|bcrypt\})[a-z_][\w.]*\}(?!\})"
)
_BRACKETED = re.compile(r"<.*>|\[.*\]|\(.*\)|\{.*\}", re.DOTALL)
_NAMED = re.compile(r"%\w+%|%[sdr]|@{1,2}\w+@{1,2}|\$\w+|__\w+__")
_BEGINS = re.compile(r"\.{2,}|\}\}|&[a-z]\w*|#\{|.*…", re.DOTALL)
_ENDS_WITHIN = re.compile(r"(?:\$\{[\w.]*|\$?\{\{[-~#]?[\w.$(|]*|\$\([\w./]*)\Z")
"""The placeholder goes on behind a space, where a value without quotes ends."""
_CLOSING: Final = {")": "(", "]": "[", "}": "{"}


def outside_placeholders(value: str) -> list[str] | None:
    """What stands around the placeholders; None where it holds none."""
    if _BEGINS.match(value) or _NAMED.fullmatch(value):
        return []
    if _BRACKETED.fullmatch(value) and is_balanced(value):
        return [value[1:-1]]
    within = _ENDS_WITHIN.search(value)
    rest = _cut(value[: within.start()] if within else value)
    return rest if within or len(rest) > 1 else None


def _cut(value: str) -> list[str]:
    """The value without its placeholders, each of which holds an expression whose brackets close."""
    rest, at = [], 0
    for found in _PLACEHOLDER.finditer(value):
        inside = next((group for group in found.groups() if group is not None), "")
        if is_balanced(inside):
            rest.append(value[at : found.start()])
            at = found.end()
    return [*rest, value[at:]]


def is_balanced(text: str) -> bool:
    """Whether each bracket is closed by its own kind, in order."""
    opened: list[str] = []
    for character in text:
        if character in "([{":
            opened.append(character)
        elif character in _CLOSING and (not opened or opened.pop() != _CLOSING[character]):
            return False
    return not opened
