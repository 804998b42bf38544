"""Document to chunks: the one entry of this stage.

Blocks by structure, atoms that fit, pieces that fill a chunk, and then their identity and place in the source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from rag_pipeline.chunking.blocks import Block
from rag_pipeline.chunking.code_blocks import code_blocks
from rag_pipeline.chunking.headings import heading_words
from rag_pipeline.chunking.packing import gap_priorities, pack
from rag_pipeline.chunking.prose_blocks import ASCIIDOC, MARKDOWN, marked_up_blocks
from rag_pipeline.chunking.rst_blocks import rst_blocks
from rag_pipeline.chunking.splitting import Atom, atoms_of, halves
from rag_pipeline.chunking.tokens import TokenCounter
from rag_pipeline.model import Chunk, Document, chunk_id, text_hash
from rag_pipeline.settings import Chunking

CHUNKING_VERSION: str = "1"
"""Raised whenever the same document would give other chunks; documents are then chunked again."""


def chunk_document(document: Document, *, settings: Chunking, count_tokens: TokenCounter) -> list[Chunk]:
    """Chunks of at most `settings.max_tokens` tokens, in order; none for a tombstone or a text without words.

    Every character that is not white space lies in exactly one chunk. An edit changes the chunks that hold it and at
    most their neighbours. Chunks smaller than `settings.min_tokens` are left only where they fit no neighbour. The
    sections of a document are cut each for itself: what one says changes no chunk of another.
    """
    if document.deleted or not document.text.strip():
        return []
    return _chunks(
        document,
        [
            piece
            for part in _parts(document)
            for piece in _pieces(document, part, settings=settings, count_tokens=count_tokens)
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What is cut for itself: a section, or the whole document."""

    start: int
    text: str
    anchor: str | None = None
    path: tuple[str, ...] = ()
    """What all of it stands under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """What will be a chunk, with its place in the document."""

    start: int
    end: int
    tokens: int
    heading_path: tuple[str, ...]
    anchor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """What will be a chunk, without the white space around it; places are those in the part."""

    start: int
    end: int
    atoms: Sequence[Atom]
    tokens: int = 0


def _parts(document: Document) -> list[_Part]:
    if not document.sections:
        return [_Part(start=0, text=document.text)]
    starts = [section.start_char for section in document.sections]
    return [
        _Part(
            start=section.start_char,
            text=document.text[section.start_char : end].rstrip(),  # the last one has no blank line after it
            anchor=section.anchor,
            path=tuple(name for name in (document.title, section.name) if name),
        )
        for section, end in zip(document.sections, [*starts[1:], len(document.text)], strict=True)
    ]


def _pieces(document: Document, part: _Part, *, settings: Chunking, count_tokens: TokenCounter) -> list[_Piece]:
    text = part.text
    if not text.strip():
        return []
    blocks = _blocks(document, text)
    atoms = atoms_of(text, blocks, max_tokens=settings.max_tokens, count_tokens=count_tokens)
    priorities = gap_priorities(text, atoms)
    pieces = pack(atoms, priorities=priorities, max_tokens=settings.max_tokens, min_tokens=settings.min_tokens)
    spans = [span for start, end in pieces if (span := _span(text, atoms[start:end]))]
    return [
        _Piece(
            start=part.start + span.start,
            end=part.start + span.end,
            tokens=span.tokens,
            heading_path=_path(part, blocks[span.atoms[0].block : span.atoms[-1].block + 1]),
            anchor=part.anchor,
        )
        for span in _fitted(text, spans, max_tokens=settings.max_tokens, count_tokens=count_tokens)
    ]


def _blocks(document: Document, text: str) -> list[Block]:
    match document.markup:
        case "code":
            return code_blocks(text, python=document.language == "python")
        case "asciidoc":
            return marked_up_blocks(text, marks=ASCIIDOC)
        case "markdown":
            return marked_up_blocks(text, marks=MARKDOWN)
        case _:  # plain text is laid out like reStructuredText more often than not
            return rst_blocks(text)


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


def _chunks(document: Document, pieces: Sequence[_Piece]) -> list[Chunk]:
    line_ends = list(accumulate(len(line) + 1 for line in document.text.split("\n")))
    occurrences: Counter[str] = Counter()
    chunks = []
    for position, piece in enumerate(pieces):
        text = document.text[piece.start : piece.end]
        start_line = _source_line(document, bisect_right(line_ends, piece.start))
        end_line = _source_line(document, bisect_right(line_ends, piece.end - 1))
        chunks.append(
            Chunk(
                tenant=document.tenant,
                document_id=document.document_id,
                chunk_id=chunk_id(document.document_id, text, occurrences[text]),
                position=position,
                text=text,
                text_hash=text_hash(text),
                heading_path=piece.heading_path,
                start_char=piece.start,
                end_char=piece.end,
                start_line=start_line,
                end_line=max(start_line, end_line),
                tokens=piece.tokens,
                anchor=piece.anchor,
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


def _path(part: _Part, blocks: Sequence[Block]) -> tuple[str, ...]:
    """The part's path and the headings inside it; a document's title that stands in it as a heading counts once."""
    inside = _heading_path(blocks)
    if inside and inside[0] in {heading_words(name) for name in part.path[:1]}:
        inside = inside[1:]
    return (*part.path, *inside)


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
