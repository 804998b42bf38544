"""Lines of MDX that belong to its components: `import … from "…"` and `export …`, outside any sentence."""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = ("import ", "export ")
_BEGINS = re.compile(r"^(?:import|export)[ \t]", re.MULTILINE)
_IMPORT = re.compile(
    r"import[ \t]+(?:[\w$*{][\w$*, \t\n{}]{0,300}?[ \t\n}]from[ \t]+)?"
    r"(?P<quote>['\"])[^'\"\n]{1,300}(?P=quote);?[ \t]*(?=\n|\Z)"
)
_EXPORT = re.compile(r"export[ \t]+(?:default|const|let|var|function|async|class)\b")
_MAX_CHARS = 4000


def module_spans(text: str) -> list[tuple[int, int]]:
    """Where imports and exports stand; an export goes to the next blank line, and looks like code there."""
    if not (text.startswith(_WORDS) or any(f"\n{word}" in text for word in _WORDS)):
        return []
    spans: list[tuple[int, int]] = []
    for begins in _BEGINS.finditer(text):
        start = begins.start()
        if spans and start < spans[-1][1]:
            continue
        if found := _IMPORT.match(text, start):
            spans.append(found.span())
        elif _EXPORT.match(text, start):
            end = text.find("\n\n", start, start + _MAX_CHARS)
            end = min(len(text), start + _MAX_CHARS) if end < 0 else end
            if text[start:end].rstrip().endswith((";", "}", ")", "]")):
                spans.append((start, end))
    return spans
