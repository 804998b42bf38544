"""Source item to document: the one entry of this stage.

Pure: the same item gives the same document. Secrets are redacted last, from every string that leaves this stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Final

from rag_pipeline.documents.asciidoc import extract_asciidoc
from rag_pipeline.documents.code_text import extract_code
from rag_pipeline.documents.decoding import decode, plain_text
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.kinds import Kind, kind_of
from rag_pipeline.documents.markdown import extract_markdown
from rag_pipeline.documents.notebook import extract_notebook
from rag_pipeline.documents.plain import extract_text
from rag_pipeline.documents.redaction.document import redact_document
from rag_pipeline.documents.rst import extract_rst
from rag_pipeline.documents.thread import extract_thread
from rag_pipeline.documents.titles import tidy_title
from rag_pipeline.model import Document, Json, SourceItem, document_id
from rag_pipeline.settings import Redaction, Threads

CLEANING_VERSION: str = "8"
"""Raised whenever the same item would give another text, title, metadata or lines; documents are then cleaned again."""

DEFAULT_THREADS: Final = Threads()
"""Other defaults clean threads in another way: they are another version."""

DEFAULT_REDACTION: Final = Redaction()
"""Other defaults redact other values: they are another version."""


def _extract_html(text: str) -> Extract:
    from rag_pipeline.documents.html_text import extract_html  # its parser is slow to load, and many runs meet no page

    return extract_html(text)


_EXTRACTORS: dict[Kind, Callable[[str], Extract]] = {
    "asciidoc": extract_asciidoc,
    "html": _extract_html,
    "markdown": extract_markdown,
    "rst": extract_rst,
    "text": extract_text,
}


def clean(
    item: SourceItem, *, threads: Threads = DEFAULT_THREADS, redaction: Redaction = DEFAULT_REDACTION
) -> Document:
    """The item's text in NFC with `\\n` newlines, its title (1 to 200 characters) and metadata; tombstones stay empty.

    Metadata gains `encoding` (when it was not UTF-8), `replaced_characters` (when some were lost in decoding),
    `front_matter` (markdown), `dropped_comments` (threads: how many were left out, by authors that `threads` calls
    noisy) and `files` (pull requests: the paths they change, at most 300). Text without any words is returned as it is:
    it makes no chunks.

    No string of the document holds a secret; what was redacted is in `redactions` (at most 100 entries with `kind`,
    `count`, and `line` of the source or `place`) and `redactions_by_kind` (all of them, counted).

    Raises:
        ItemError: a notebook or a thread that cannot be read.
    """
    if item.deleted:
        return _document(item, Extract(text="", markup="text"), metadata=item.metadata)
    decoded = decode(item.content)
    extract = _extract(item, decoded.text, threads)
    metadata = {**item.metadata, **extract.metadata}
    if decoded.encoding != "utf-8":
        metadata["encoding"] = decoded.encoding
    if decoded.replaced_characters:
        metadata["replaced_characters"] = decoded.replaced_characters
    return redact_document(_document(item, extract, metadata=metadata), settings=redaction)


def _extract(item: SourceItem, text: str, threads: Threads) -> Extract:
    kind = kind_of(item)
    if kind == "code":
        # Git's items name their commit; that source has judged by the same marks, and by `.gitattributes`.
        return extract_code(text, path=item.path, judged="commit" in item.metadata)
    if kind == "notebook":
        return extract_notebook(text, path=item.path or item.source_id)
    if kind == "thread":
        return extract_thread(text, source_id=item.source_id, threads=threads)
    return _EXTRACTORS[kind](text)


def _document(item: SourceItem, extract: Extract, *, metadata: Mapping[str, Json]) -> Document:
    return Document(
        tenant=item.tenant,
        document_id=document_id(tenant=item.tenant, source_type=item.source_type, source_id=item.source_id),
        source_type=item.source_type,
        source_id=item.source_id,
        repository=item.repository,
        day=item.day,
        source_updated_at=item.source_updated_at,
        observed_at=item.observed_at,
        as_of=item.as_of,
        scope=item.scope,
        deleted=item.deleted,
        # Where markup is gone, an accent may have come to stand behind its letter. Sections know their places.
        text=extract.text if extract.sections else plain_text(extract.text),
        markup=extract.markup,
        title=_title(item, extract),
        path=item.path,
        language=item.language,
        url=item.url,
        # A thread's lines are ours, not its page's.
        anchor=None if extract.sections else item.anchor,
        source_lines=extract.source_lines,
        sections=extract.sections,
        metadata=metadata,
    )


def _title(item: SourceItem, extract: Extract) -> str:
    """What the source calls it, else what the text calls itself, else the file's name."""
    stem = PurePosixPath(item.path or "").stem
    for candidate in (item.title, extract.title, stem, item.path, item.source_id):
        if title := tidy_title(plain_text(candidate or "")):
            return title
    return "untitled"
