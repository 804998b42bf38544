"""Labelled lines of detect-secrets: the tables of its plugins' tests, read as syntax trees and never run.

Take a checkout of https://github.com/Yelp/detect-secrets.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from rag_pipeline.errors import ConfigError
from rag_pipeline_tests.bench.secrets_made import Case

_IN_ORDER: Final = "abcdefghijklmnopqrstuvwxyz 01234567890"
_COUNTED: Final = 8
_REPEATED: Final = re.compile(r"([A-Za-z])\1{5,}")
_EXAMPLE: Final = re.compile(r"EXAMPLEKEY|eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwi")
"""AWS's key of the documentation, and jwt.io's token."""
_VALUE: Final = re.compile(r"[\w.-]{16,}", re.ASCII)
_HEADERS: Final = frozenset(
    ["payload,should_flag", "line,should_flag", "file_extension,line,expected_secret", "payload", "line"]
)
_NO_SECRETS: Final = frozenset({"ip_public_test.py"})
"""Public addresses, which nothing redacts here."""


class PublicCases(NamedTuple):
    """What is judged, and how many lines each rule leaves out."""

    cases: list[Case]
    left_out: dict[str, int]


def detect_secrets_cases(folder: Path) -> PublicCases:
    """Every line of the tables, less those whose label says nothing of the line itself.

    Raises:
        ConfigError: the folder is no checkout of detect-secrets.
    """
    files = sorted((folder / "tests" / "plugins").glob("*_test.py"))
    cases = [case for path in files if path.name not in _NO_SECRETS for case in _cases(path)]
    if not cases:
        msg = (
            f"{folder} holds no tests/plugins of detect-secrets: give --secrets-data a checkout of Yelp/detect-secrets"
        )
        raise ConfigError(msg)
    return fairly_labelled(cases)


def fairly_labelled(given: Iterable[Case]) -> PublicCases:
    """The lines without repetitions, and without those that two rules leave out.

    The rules read lines and labels only, never what `redact` does:

    - A secret that is filler (six equal letters in a row, or the alphabet or numbers in order), or a vendor's
      documented example, is no secret.
    - A line that holds the value of a secret of the same set, but is labelled harmless, is so for one rule of its
      scanner alone: another vendor's token, a language in which the rule asks for quotes, a token and more letters.
    """
    cases = list(dict.fromkeys(given))
    values = {value for case in cases if case.is_secret for value in (case.value, *_VALUE.findall(case.text)) if value}
    left_out: dict[str, int] = {}
    kept = []
    for case in cases:
        if rule := _rule_against(case, values):
            left_out[rule] = left_out.get(rule, 0) + 1
        else:
            kept.append(case)
    return PublicCases(kept, left_out)


def _rule_against(case: Case, values: set[str]) -> str | None:
    if not case.is_secret:
        holds_one = any(value in case.text for value in values)
        return "labelled harmless, with a value that is labelled secret elsewhere" if holds_one else None
    if _is_filler(case.text):
        return "labelled secret, but filler"
    return "labelled secret, but a documented example" if _EXAMPLE.search(case.text) else None


def _is_filler(text: str) -> bool:
    """Whether one letter stands six times in a row, or eight characters as they are counted or as in the alphabet."""
    lowered = text.lower()
    counted = any(lowered[at : at + _COUNTED] in _IN_ORDER for at in range(len(lowered) - _COUNTED + 1))
    return counted or _REPEATED.search(text) is not None


def _cases(path: Path) -> Iterator[Case]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = _value(node.value, names)
    tables = [names[name] for name in names if name.endswith("TEST_CASES")]
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "parametrize":
            header = _value(call.args[0], names)
            if isinstance(header, str) and header.replace(" ", "") in _HEADERS:
                tables.append(_value(call.args[1], names))
    for table in tables:
        for row in table if isinstance(table, list | tuple) else ():
            # A row without a label is a secret.
            text, label = row if isinstance(row, list | tuple) and len(row) == 2 else (row, True)
            if isinstance(text, str):
                value = label if isinstance(label, str) else None
                yield Case(path.name.removesuffix("_test.py"), text, is_secret=bool(label), value=value)


def _value(node: ast.expr, names: Mapping[str, object]) -> object:
    """What an expression of constants is; None for anything else."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names.get(node.id)
        case ast.List() | ast.Tuple():
            return [_value(entry, names) for entry in node.elts]
        case ast.BinOp(op=ast.Add()):
            left, right = _value(node.left, names), _value(node.right, names)
            return left + right if isinstance(left, str) and isinstance(right, str) else None
        case ast.BinOp(op=ast.Mult()):
            left, right = _value(node.left, names), _value(node.right, names)
            return left * right if isinstance(left, str) and isinstance(right, int) else None
        case ast.Call(func=ast.Attribute(value=pattern, attr="format")):
            given = [_value(argument, names) for argument in node.args]
            named = {word.arg: _value(word.value, names) for word in node.keywords if word.arg}
            text = _value(pattern, names)
            known = isinstance(text, str) and None not in (*given, *named.values())
            return text.format(*given, **named) if known and isinstance(text, str) else None
        case ast.Subscript(slice=ast.Slice(lower=low, upper=high, step=None)):
            text = _value(node.value, names)
            return text[_index(low) : _index(high)] if isinstance(text, str) else None
        case ast.JoinedStr():
            parts = [_value(p.value if isinstance(p, ast.FormattedValue) else p, names) for p in node.values]
            return "".join(map(str, parts)) if None not in parts else None
    return None


def _index(node: ast.expr | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
