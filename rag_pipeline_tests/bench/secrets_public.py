"""Labelled lines of detect-secrets: the tables of its plugins' tests, read as syntax trees and never run.

Take a checkout of https://github.com/Yelp/detect-secrets.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from rag_pipeline.errors import ConfigError
from rag_pipeline_tests.bench.secrets_made import Case

_STANDS_FOR: Final = re.compile(
    r"x{6,}|Z{6,}|EXAMPLE|username:password|\{\{|value with quotes and spaces"
    r"|[\"'`=: ][A-Za-z,.:¨@*¿?!-]{6,}[\"'`;,)]*$"
    r"|eyJ[\w-]+\.[\w-]+$|SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
)
_NO_SECRETS: Final = frozenset({"ip_public_test.py"})
"""Public addresses, which nothing redacts here."""


def detect_secrets_cases(folder: Path) -> list[Case]:
    """Every line of the tables, with whether detect-secrets flags it.

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
    return list(dict.fromkeys(cases))


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
            if isinstance(header, str) and header.replace(" ", "") in {"payload,should_flag", "line,should_flag"}:
                tables.append(_value(call.args[1], names))
    for table in tables:
        for row in table if isinstance(table, list | tuple) else ():
            if isinstance(row, list | tuple) and len(row) == 2 and isinstance(row[0], str):
                yield Case(name=path.name.removesuffix("_test.py"), text=row[0], is_secret=bool(row[1]))


def stands_for_a_secret(case: Case) -> bool:
    """Whether the line holds what the product leaves on purpose: filler, templates, documented examples, phrases.

    An unsigned JWT is no secret either. These are criteria of the line, not of what `redact` does with it.
    """
    return _STANDS_FOR.search(case.text) is not None


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
        case ast.Call(func=ast.Attribute(value=pattern, attr="format"), keywords=[]):
            given = [_value(argument, names) for argument in node.args]
            text = _value(pattern, names)
            return text.format(*given) if isinstance(text, str) and None not in given else None
        case ast.Subscript(slice=ast.Slice(lower=low, upper=high, step=None)):
            text = _value(node.value, names)
            return text[_index(low) : _index(high)] if isinstance(text, str) else None
        case ast.JoinedStr():
            parts = [_value(p.value if isinstance(p, ast.FormattedValue) else p, names) for p in node.values]
            return "".join(map(str, parts)) if None not in parts else None
    return None


def _index(node: ast.expr | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
