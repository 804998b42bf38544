"""Pages in which the tag that opens a script or a style sheet is broken: what nobody sees is no text for that.

A browser would show `<scirpt>` and all that follows as text. For an index that is never what the author meant, and one
broken word would bring a page of code into it. The end tag that is left tells that something was opened.
"""

from __future__ import annotations

import re
from typing import Final

from rag_pipeline.documents.html_tags import is_known

_UNSEEN: Final = frozenset(["script", "style"])
_END: Final = re.compile(r"</(?:script|style)[\s>]", re.IGNORECASE)
_TAG: Final = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)(?=[\s/>])|<!--.*?-->", re.DOTALL)


def with_scripts_opened(html: str) -> str:
    """The page with the first tag of an unknown name before an end tag of a script or style as its start tag.

    A tag of an unknown name that is closed itself is an element of somebody's own.
    """
    if not _END.search(html):
        return html
    edits: list[tuple[int, int, str]] = []
    inside = ""
    unknown: re.Match[str] | None = None
    for tag in _TAG.finditer(html):
        closes, name = tag[1], (tag[2] or "").lower()
        if not name or (inside and not (closes and name == inside)):
            continue  # a comment, or what a script says about tags
        if name in _UNSEEN:
            if closes and not inside and unknown is not None:
                edits.append((*unknown.span(2), name))
            inside, unknown = "" if closes else name, None
        elif unknown is not None and closes and name == unknown[2].lower():
            unknown = None
        elif unknown is None and not closes and not is_known(name):
            unknown = tag
    parts, kept = [], 0
    for start, end, name in edits:
        parts += [html[kept:start], name]
        kept = end
    return "".join([*parts, html[kept:]])
