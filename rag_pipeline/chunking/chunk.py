"""Document to chunks: the one entry of this stage.

Blocks by structure, atoms that fit, pieces that fill a chunk, and then their identity and place in the source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePosixPath

from rag_pipeline.chunking.blocks import Block
from rag_pipeline.chunking.code_blocks import code_blocks
from rag_pipeline.chunking.packing import gap_priorities, pack
from rag_pipeline.chunking.prose_blocks import ASCIIDOC, MARKDOWN, marked_up_blocks
from rag_pipeline.chunking.rst_blocks import rst_blocks
from rag_pipeline.chunking.splitting import Atom, atoms_of, halves
from rag_pipeline.chunking.tokens import TokenCounter
from rag_pipeline.model import Chunk, Document, chunk_id, text_hash
from rag_pipeline.settings import Chunking

CHUNKING_VERSION: str = "1"
"""Raised whenever the same document would give other chunks; documents are then chunked again."""

_RST_SUFFIXES = frozenset(["", ".rst", ".text", ".txt"])  # plain text is laid out like it more often than not
_ASCIIDOC_SUFFIXES = frozenset([".adoc", ".asciidoc"])
_PYTHON_SUFFIXES = frozenset([".py", ".pyi", ".pyw", ".pyx"])


def chunk_document(document: Document, *, settings: Chunking, count_tokens: TokenCounter) -> list[Chunk]:
    """Chunks of at most `settings.max_tokens` tokens, in order; none for a tombstone or a text without words.

    Every character that is not white space lies in exactly one chunk. An edit changes the chunks that hold it and at
    most their neighbours. Chunks smaller than `settings.min_tokens` are left only where they fit no neighbour.
    """
    text = document.text
    if document.deleted or not text.strip():
        return []
    blocks = _blocks(document)
    atoms = atoms_of(text, blocks, max_tokens=settings.max_tokens, count_tokens=count_tokens)
    priorities = gap_priorities(text, atoms)
    pieces = pack(atoms, priorities=priorities, max_tokens=settings.max_tokens, min_tokens=settings.min_tokens)
    spans = [span for start, end in pieces if (span := _span(text, atoms[start:end]))]
    spans = _fitted(text, spans, max_tokens=settings.max_tokens, count_tokens=count_tokens)
    return _chunks(document, spans, blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """What will be a chunk, without the white space around it."""

    start: int
    end: int
    atoms: Sequence[Atom]
    tokens: int = 0


def _blocks(document: Document) -> list[Block]:
    suffix = PurePosixPath(document.path or "").suffix.lower()
    if document.source_type == "code" and suffix != ".ipynb":  # notebooks were made markdown
        return code_blocks(document.text, python=suffix in _PYTHON_SUFFIXES or document.language == "python")
    content_type = document.metadata.get("content_type")
    if suffix in _ASCIIDOC_SUFFIXES or content_type == "text/asciidoc":
        return marked_up_blocks(document.text, marks=ASCIIDOC)
    if (document.path and suffix in _RST_SUFFIXES) or content_type == "text/x-rst":
        return rst_blocks(document.text)
    return marked_up_blocks(document.text, marks=MARKDOWN)


def _span(text: str, atoms: Sequence[Atom]) -> _Span | None:
    """The atoms without blank lines before and white space after them; None when nothing is left."""
    start, end = atoms[0].start, atoms[-1].end
    whole = text[start:end]
    kept = whole.rstrip()
    if not kept:
        return None
    margin = len(kept) - len(kept.lstrip())
    return _Span(start=start + kept.rfind("\n", 0, margin) + 1, end=start + len(kept), atoms=atoms)


def _fitted(text: str, spans: list[_Span], *, max_tokens: int, count_tokens: TokenCounter) -> list[_Span]:
    """The spans with their tokens; what is longer than the sum of its atoms promised is cut again."""
    fitted: list[_Span] = []
    while spans:
        counts = count_tokens([text[span.start : span.end] for span in spans])
        counted = [
            _Span(start=span.start, end=span.end, atoms=span.atoms, tokens=tokens)
            for span, tokens in zip(spans, counts, strict=True)
        ]
        spans = []
        for span in counted:
            if span.tokens <= max_tokens or span.end - span.start <= 1:
                fitted.append(span)
            else:
                spans.extend(_cut_in_two(text, span))
    return sorted(fitted, key=lambda span: span.start)


def _cut_in_two(text: str, span: _Span) -> list[_Span]:
    atoms = span.atoms if len(span.atoms) > 1 else halves(span.atoms[0])
    priorities = gap_priorities(text, atoms)
    gap = min(range(1, len(atoms)), key=priorities.__getitem__)
    return [half for part in (atoms[:gap], atoms[gap:]) if (half := _span(text, part))]


def _chunks(document: Document, spans: Sequence[_Span], blocks: Sequence[Block]) -> list[Chunk]:
    line_ends = list(accumulate(len(line) + 1 for line in document.text.split("\n")))
    occurrences: Counter[str] = Counter()
    chunks = []
    for position, span in enumerate(spans):
        text = document.text[span.start : span.end]
        start_line = _source_line(document, bisect_right(line_ends, span.start))
        end_line = _source_line(document, bisect_right(line_ends, span.end - 1))
        chunks.append(
            Chunk(
                tenant=document.tenant,
                document_id=document.document_id,
                chunk_id=chunk_id(document.document_id, text, occurrences[text]),
                position=position,
                text=text,
                text_hash=text_hash(text),
                heading_path=_heading_path(blocks[span.atoms[0].block : span.atoms[-1].block + 1]),
                start_char=span.start,
                end_char=span.end,
                start_line=start_line,
                end_line=max(start_line, end_line),
                tokens=span.tokens,
            )
        )
        occurrences[text] += 1
    return chunks


def _source_line(document: Document, line: int) -> int:
    """The 1-based source line of a 0-based line of the text."""
    lines = document.source_lines
    if lines is None:
        return line + 1
    return lines[min(line, len(lines) - 1)] if lines else 1


def _heading_path(blocks: Sequence[Block]) -> tuple[str, ...]:
    """What all text of a chunk stands under; headings directly above other headings do not count as text."""
    paths = [block.path for block in blocks if block.kind != "heading"] or [block.path for block in blocks]
    first, last = min(paths), max(paths)
    common = 0
    for one, other in zip(first, last, strict=False):
        if one != other:
            break
        common += 1
    return first[:common]
