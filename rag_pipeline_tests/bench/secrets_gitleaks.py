"""Labelled lines of gitleaks: the literal strings of its rules' `tps` and `fps`, read as text and never compiled.

Take a checkout of https://github.com/gitleaks/gitleaks. What its rules generate while they run is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rag_pipeline.errors import ConfigError
from rag_pipeline_tests.bench.secrets_made import Case
from rag_pipeline_tests.bench.secrets_public import PublicCases, fairly_labelled

_LIST: Final = re.compile(r"\b(?P<label>[tf]ps)(?: :?= \[\]string\{| = append\((?:tps|fps),)")
_TOKEN: Final = re.compile(r"//[^\n]*|`(?P<raw>[^`]*)`|\"(?P<quoted>(?:\\.|[^\"\\\n])*)\"|(?P<sign>[{}()\[\],])|\S")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


def gitleaks_cases(folder: Path) -> PublicCases:
    """Every literal line of the rules' tests, less those whose label says nothing of the line itself.

    Raises:
        ConfigError: the folder is no checkout of gitleaks.
    """
    files = sorted((folder / "cmd" / "generate" / "config" / "rules").glob("*.go"))
    cases = [case for path in files for case in _cases(path)]
    if not cases:
        msg = f"{folder} holds no rules of gitleaks: give --gitleaks-data a checkout of gitleaks/gitleaks"
        raise ConfigError(msg)
    return fairly_labelled(cases)


def _cases(path: Path) -> Iterator[Case]:
    source = path.read_text(encoding="utf-8")
    for found in _LIST.finditer(source):
        for text in _literals(source, found.end()):
            yield Case(path.stem, text, is_secret=found["label"] == "tps")


def _literals(source: str, start: int) -> Iterator[str]:
    """The entries of the list that begins there which are one literal each."""
    depth, entry = 0, list[str | None]()
    for token in _TOKEN.finditer(source, start):
        sign = token["sign"]
        if token.group().startswith("//"):
            continue
        if depth == 0 and sign in {",", "}", ")"}:
            if len(entry) == 1 and entry[0] is not None:
                yield entry[0]
            entry = []
            if sign != ",":
                return
            continue
        depth += (sign in {"{", "(", "["}) - (sign in {"}", ")", "]"}) if sign else 0
        quoted = token["quoted"]
        unescaped = None if quoted is None else _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), quoted)
        entry.append(token["raw"] if token["raw"] is not None else unescaped)
