"""Plain text, which is kept as it is: nobody can tell noise from words in it."""

from __future__ import annotations

from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.titles import text_title


def extract_text(text: str) -> Extract:
    """The text; its title is the first line, when that is short enough to be one."""
    return Extract(text=text, markup="text", title=text_title(text))
