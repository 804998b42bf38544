"""Source item to document: the one entry of this stage.

Pure: the same item gives the same document. Secrets are redacted last, from every string that leaves this stage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from rag_pipeline.documents.asciidoc import extract_asciidoc
from rag_pipeline.documents.code_text import extract_code
from rag_pipeline.documents.decoding import decode, plain_lines, plain_text
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.kinds import Kind, kind_of
from rag_pipeline.documents.markdown import extract_markdown
from rag_pipeline.documents.notebook import extract_notebook
from rag_pipeline.documents.org import extract_org
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

ENCODING: Final = "encoding"
"""The key of the metadata that names the encoding of a text that was not UTF-8."""
GUESSED: Final = "guessed"
"""Its value where little speaks for the encoding that was taken."""
DECLARED_ENCODING: Final = "declared_encoding"
"""The key of an item's metadata under which a source says in which encoding its content may be."""
_WHOLE: Final = re.compile(r"(\S+)")
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:+-]+)", re.IGNORECASE)


def _extract_html(text: str) -> Extract:
    from rag_pipeline.documents.html_text import extract_html  # its parser is slow to load, and many runs meet no page

    return extract_html(text)


_EXTRACTORS: dict[Kind, Callable[[str], Extract]] = {
    "asciidoc": extract_asciidoc,
    "html": _extract_html,
    "markdown": extract_markdown,
    "org": extract_org,
    "rst": extract_rst,
    "text": extract_text,
}


def clean(
    item: SourceItem, *, threads: Threads = DEFAULT_THREADS, redaction: Redaction = DEFAULT_REDACTION
) -> Document:
    """The item's text in NFC with `\\n` newlines, its title (1 to 200 characters) and metadata; tombstones stay empty.

    Metadata gains `encoding` (when it was not UTF-8; `guessed` when little speaks for it, and then `guessed_encoding`
    says which was taken), `replaced_characters` (when some were lost in decoding), `front_matter` or
    `broken_front_matter` (markdown), `dropped_comments` (threads: how many were left out, by authors that `threads`
    calls noisy) and `files` (pull requests: the paths they change, at most 300). Text without any words is returned as
    it is: it makes no chunks.

    No string of the document holds a secret; what was redacted is in `redactions` (at most 100 entries with `kind`,
    `count`, and `line` of the source or `place`) and `redactions_by_kind` (all of them, counted).

    Raises:
        ItemError: a notebook or a thread that cannot be read.
    """
    if item.deleted:
        return _document(item, Extract(text="", markup="text"), metadata=item.metadata)
    kind = kind_of(item)
    decoded = decode(item.content, declared=_declared_encodings(item), is_json=kind in ("notebook", "thread"))
    extract = _extract(item, kind, decoded.text, threads)
    extract = replace(extract, source_lines=_lines_of(extract.source_lines, decoded.source_lines))
    metadata = {**item.metadata, **extract.metadata}
    if decoded.is_guessed:
        metadata |= {ENCODING: GUESSED, "guessed_encoding": decoded.encoding}
    elif decoded.encoding != "utf-8":
        metadata[ENCODING] = decoded.encoding
    if decoded.replaced_characters:
        metadata["replaced_characters"] = decoded.replaced_characters
    return redact_document(_document(item, extract, metadata=metadata), settings=redaction)


def _declared_encodings(item: SourceItem) -> Iterator[str]:
    """The encodings that the source names: its own word for it, and that of a Content-Type."""
    for key, pattern in ((DECLARED_ENCODING, _WHOLE), ("content_type", _CHARSET)):
        value = item.metadata.get(key)
        if isinstance(value, str) and (found := pattern.search(value)):
            yield found[1]


def _lines_of(lines: Sequence[int] | None, source_lines: Sequence[int] | None) -> Sequence[int] | None:
    """Source lines of what has these `lines` of a text whose own lines are those `source_lines`."""
    if lines is None or source_lines is None:
        return source_lines if lines is None else lines
    last = len(source_lines)
    return [source_lines[min(line, last) - 1] for line in lines]


def _extract(item: SourceItem, kind: Kind, text: str, threads: Threads) -> Extract:
    if kind == "code":
        # Git's items name their commit; that source has judged by the same marks, and by `.gitattributes`.
        return extract_code(text, path=item.path, judged="commit" in item.metadata)
    if kind == "notebook":
        return extract_notebook(text, path=item.path or item.source_id)
    if kind == "thread":
        return extract_thread(text, source_id=item.source_id, threads=threads)
    return _EXTRACTORS[kind](text)


def _document(item: SourceItem, extract: Extract, *, metadata: Mapping[str, Json]) -> Document:
    text, source_lines = extract.text, extract.source_lines
    if not extract.sections:  # which know their places
        # Where markup is gone, an accent may have come to stand behind its letter, and entities become characters.
        text, lines = plain_lines(text)
        source_lines = _lines_of(lines, source_lines)
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
        text=text,
        markup=extract.markup,
        title=_title(item, extract),
        path=item.path,
        language=item.language,
        url=item.url,
        # A thread's lines are ours, not its page's; those of a notebook's cells are the file's.
        anchor=None if extract.sections and extract.source_lines is None else item.anchor,
        source_lines=source_lines,
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
