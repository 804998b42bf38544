"""Heading lines to the words that stand in a heading path."""

from __future__ import annotations

import re

from rag_pipeline.inline_markup import ATTRIBUTES, EMPHASIS, ESCAPE, LINK, ROLE, TAG, TARGET

_MAX_HEADING_CHARS = 200
_MARKUP = re.compile(r"[\[<`*_~\\{:]")


def heading_words(line: str) -> str:
    """The heading without links, roles, emphasis, code marks, tags and attributes, at most 200 characters."""
    if not _MARKUP.search(line):  # most headings are plain words
        return " ".join(line[: 2 * _MAX_HEADING_CHARS].split())[:_MAX_HEADING_CHARS].strip()
    words = ATTRIBUTES.sub("", line[: 2 * _MAX_HEADING_CHARS])
    words = TARGET.sub(r"\1", ROLE.sub("", LINK.sub(r"\1", words)))
    words = EMPHASIS.sub(r"\2", TAG.sub("", words)).replace("`", "")
    return ESCAPE.sub(r"\1", " ".join(words.split()))[:_MAX_HEADING_CHARS].strip()
