"""Kinds whose text is kept as it is: markdown, reStructuredText, AsciiDoc, plain text."""

from __future__ import annotations

from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.titles import asciidoc_title, markdown_title, rst_title, text_title
from rag_pipeline.front_matter import read_front_matter


def extract_markdown(text: str) -> Extract:
    """Markdown without its front matter, which goes to `metadata["front_matter"]`."""
    front = read_front_matter(text, clean=plain_text)
    if front is None:
        return Extract(text=text, markup="markdown", title=markdown_title(text))
    body = text[front.end_char :]
    title = front.values.get("title")
    return Extract(
        text=body,
        markup="markdown",
        title=(title if isinstance(title, str) and title.strip() else None) or markdown_title(body),
        source_lines=range(front.lines + 1, front.lines + 2 + body.count("\n")),
        metadata={"front_matter": front.values},
    )


def extract_rst(text: str) -> Extract:
    """reStructuredText as it is."""
    return Extract(text=text, markup="rst", title=rst_title(text))


def extract_asciidoc(text: str) -> Extract:
    """AsciiDoc as it is."""
    return Extract(text=text, markup="asciidoc", title=asciidoc_title(text))


def extract_text(text: str) -> Extract:
    """Plain text as it is."""
    return Extract(text=text, markup="text", title=text_title(text))
