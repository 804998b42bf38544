"""What kind of text a source item holds, which decides how it is cleaned."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

from rag_pipeline.model import SourceItem

Kind = Literal["asciidoc", "code", "html", "markdown", "notebook", "org", "rst", "text", "thread"]

THREAD_TYPES = frozenset(["github_discussion", "github_issue", "github_pull_request", "github_release"])
"""Source types whose content is a conversation as JSON: see `thread_content`."""

_BY_LANGUAGE: dict[str, Kind] = {
    "asciidoc": "asciidoc",
    "html": "html",
    "markdown": "markdown",
    "mdx": "markdown",
    "notebook": "notebook",
    "org": "org",
    "restructuredtext": "rst",
    "text": "text",
}
_BY_SUFFIX: dict[str, Kind] = {
    ".adoc": "asciidoc",
    ".asc": "asciidoc",
    ".asciidoc": "asciidoc",
    ".htm": "html",
    ".html": "html",
    ".xhtml": "html",
    ".ipynb": "notebook",
    ".markdown": "markdown",
    ".md": "markdown",
    ".mdown": "markdown",
    ".mdx": "markdown",
    ".mkd": "markdown",
    ".org": "org",
    ".qmd": "markdown",
    ".rmd": "markdown",
    ".rst": "rst",
}
_BY_CONTENT_TYPE: dict[str, Kind] = {
    "application/x-ipynb+json": "notebook",
    "application/xhtml+xml": "html",
    "text/asciidoc": "asciidoc",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/org": "org",
    "text/x-org": "org",
    "text/prs.fallenstein.rst": "rst",
    "text/x-markdown": "markdown",
    "text/x-rst": "rst",
}


def kind_of(item: SourceItem) -> Kind:
    """The kind by the language of docs if it is one of markup, else by path, else by `metadata["content_type"]`.

    Plain text where none of them says anything.
    A file of source type `code` is code whatever its suffix, save notebooks, whose JSON nobody wants to read; what
    came from GitHub's issues, pull requests, discussions and releases is a thread.
    """
    if item.source_type in THREAD_TYPES:
        return "thread"
    if item.source_type == "docs" and item.language in _BY_LANGUAGE:
        return _BY_LANGUAGE[item.language]
    if item.path:
        kind = _BY_SUFFIX.get(PurePosixPath(item.path).suffix.lower(), "text")
        return "code" if item.source_type == "code" and kind != "notebook" else kind
    if item.source_type == "code":
        return "code"
    content_type = item.metadata.get("content_type")
    essence = content_type.partition(";")[0].strip().lower() if isinstance(content_type, str) else ""
    return _BY_CONTENT_TYPE.get(essence, "text")
