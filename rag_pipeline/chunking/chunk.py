"""Document to chunks: the one entry of this stage.

Blocks by structure, atoms that fit, pieces that fill a chunk, and then their identity and place in the source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from rag_pipeline.chunking.blocks import Block
from rag_pipeline.chunking.code import code_blocks
from rag_pipeline.chunking.headings import heading_words
from rag_pipeline.chunking.lead_ins import with_lead_ins
from rag_pipeline.chunking.packing import gap_priorities, pack
from rag_pipeline.chunking.prose_blocks import ASCIIDOC, MARKDOWN, marked_up_blocks
from rag_pipeline.chunking.rst_blocks import rst_blocks
from rag_pipeline.chunking.splitting import Atom, atoms_of, halves, sentence_starts
from rag_pipeline.chunking.tables import tables_of
from rag_pipeline.chunking.tokens import TokenCounter, adds_up
from rag_pipeline.model import Chunk, Document, Section, chunk_id, text_hash
from rag_pipeline.settings import Chunking, Context

CHUNKING_VERSION: str = "7"
"""Raised whenever the same document would give other chunks; documents are then chunked again."""

_MAX_ABOVE = 3
_MAX_NAMED, _NAMED_CHARS = 2, 600
"""So many chunks at most, so near the beginning of their symbol, get its name: a new name must not change them all.

Near by distance, as an edit that makes one chunk of two must not give the name to the next or take it away.
"""
_WHITE_SPACE = frozenset(" \t\n")


def chunk_document(
    document: Document, *, settings: Chunking, count_tokens: TokenCounter, context: Context = "none"
) -> list[Chunk]:
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
        context=context,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What is cut for itself: a section, or the whole document."""

    start: int
    text: str
    anchor: str | None = None
    path: tuple[str, ...] = ()
    """What all of it stands under."""


class _Span(NamedTuple):
    """What will be a chunk, without the white space around it; places are those in the part."""

    start: int
    end: int
    atoms: Sequence[Atom]
    tokens: int = 0


class _Piece(NamedTuple):
    """What will be a chunk, with its place in the document."""

    start: int
    end: int
    tokens: int
    heading_path: tuple[str, ...]
    anchor: str | None
    is_near_symbol: bool
    """It begins after the symbol that it stands under, and near its beginning."""
    columns: str
    """The header of the table in which it begins; empty where it holds that header itself."""


def _parts(document: Document) -> list[_Part]:
    if not document.sections or document.source_lines is not None:
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
    is_code = document.markup == "code"
    max_tokens = settings.max_tokens - settings.overlap_tokens
    blocks = _blocks(document, text, max_tokens=max_tokens)
    tables = {} if is_code else tables_of(text, blocks, markup=document.markup)
    atoms = atoms_of(text, blocks, max_tokens=max_tokens, count_tokens=count_tokens, tables=tables, is_code=is_code)
    packed = pack(text, atoms, max_tokens=max_tokens, min_tokens=settings.min_tokens, is_code=is_code)
    spans = [span for start, end in packed if (span := _span(text, atoms[start:end]))]
    spans = _fitted(text, spans, max_tokens=max_tokens, count_tokens=count_tokens)
    if settings.overlap_tokens:
        spans = _overlapping(text, spans, settings=settings, count_tokens=count_tokens)
    pieces = []
    for span in spans:
        inside = _heading_path(blocks[span.atoms[0].block : span.atoms[-1].block + 1])
        near = is_code and _is_near_symbol(blocks, span, inside)
        place = part.start + span.start, part.start + span.end
        table = tables.get(span.atoms[0].block)
        columns = table.header if table and span.start > table.start else ""
        pieces.append(_Piece(*place, span.tokens, _path(part, inside), part.anchor, near, columns))
    return pieces


def _is_near_symbol(blocks: Sequence[Block], span: _Span, path: tuple[str, ...]) -> bool:
    begin = first = span.atoms[0].block
    while begin and blocks[begin - 1].path[: len(path)] == path and span.start - blocks[begin].start < _NAMED_CHARS:
        begin -= 1
    begins_with_it = begin == first and span.atoms[0].start == blocks[first].start
    return not begins_with_it and span.start - blocks[begin].start < _NAMED_CHARS


def _blocks(document: Document, text: str, *, max_tokens: int) -> list[Block]:
    match document.markup:
        case "code":
            return code_blocks(text, language=document.language, max_tokens=max_tokens)
        case "asciidoc":
            blocks = marked_up_blocks(text, marks=ASCIIDOC)
        case "markdown":
            blocks = marked_up_blocks(text, marks=MARKDOWN)
        case _:  # plain text is laid out like reStructuredText more often than not
            blocks = rst_blocks(text)
    return with_lead_ins(text, blocks)


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
        counts = _tokens_of(text, spans, count_tokens=count_tokens)
        cut: list[_Span] = []
        for span, tokens in zip(spans, counts, strict=True):
            if tokens <= max_tokens or span.end - span.start <= 1:
                fitted.append(span._replace(tokens=tokens))
            else:
                cut.extend(_cut_in_two(text, span))
        spans = cut
    return sorted(fitted, key=lambda span: span.start)


def _tokens_of(text: str, spans: Sequence[_Span], *, count_tokens: TokenCounter) -> list[int]:
    """Tokens of each span: counted, unless the counts of its atoms must give the same."""
    sums = [_sum(text, span.atoms) for span in spans] if adds_up(count_tokens) else [None] * len(spans)
    counts = iter(
        count_tokens([text[span.start : span.end] for span, known in zip(spans, sums, strict=True) if known is None])
    )
    return [next(counts) if known is None else known for known in sums]


def _sum(text: str, atoms: Sequence[Atom]) -> int | None:
    """What the atoms have together; None when one was not counted, or was not cut off at white space."""
    total = 0
    first = atoms[0].start
    for atom in atoms:
        if atom.counted is None or (atom.start > first and text[atom.start - 1] not in _WHITE_SPACE):
            return None
        total += atom.counted
    return total


def _cut_in_two(text: str, span: _Span) -> list[_Span]:
    atoms = span.atoms if len(span.atoms) > 1 else halves(span.atoms[0])
    priorities = gap_priorities(text, atoms, is_code=False)
    gap = min(range(1, len(atoms)), key=priorities.__getitem__)
    return [half for part in (atoms[:gap], atoms[gap:]) if (half := _span(text, part))]


def _overlapping(text: str, spans: Sequence[_Span], *, settings: Chunking, count_tokens: TokenCounter) -> list[_Span]:
    """The spans, each begun earlier by as many whole sentences or lines as the overlap holds.

    They are the last ones of the span before it, never all of it.
    """
    widened = list(spans[:1])
    for before, span in pairwise(spans):
        found = sentence_starts(text, before.start, span.start)
        starts = sorted({at for at in found if before.start < at < span.start})
        fitting = span
        for start in reversed(starts[-settings.overlap_tokens :]):
            shared, whole = count_tokens([text[start : span.start], text[start : span.end]])
            if shared > settings.overlap_tokens or whole > settings.max_tokens:
                break
            fitting = span._replace(start=start, tokens=whole)
        widened.append(fitting)
    return widened


def _chunks(document: Document, pieces: Sequence[_Piece], *, context: Context) -> list[Chunk]:
    occurrences: Counter[str] = Counter()
    near_symbol: Counter[tuple[str, ...]] = Counter()
    is_code = document.markup == "code"
    lines = _LineNumbers(document)
    chunks = []
    for position, piece in enumerate(pieces):
        text = document.text[piece.start : piece.end]
        start_line, end_line = lines.of(piece.start, text)
        near_symbol[piece.heading_path] += piece.is_near_symbol
        is_named = piece.is_near_symbol and near_symbol[piece.heading_path] <= _MAX_NAMED
        above = _above(piece.heading_path, text, context, is_code=is_code) if is_named or not is_code else ""
        if piece.columns:  # whatever the setting says: rows mean nothing without them
            above += piece.columns + "\n\n"
        chunks.append(
            Chunk(
                tenant=document.tenant,
                document_id=document.document_id,
                chunk_id=chunk_id(document.document_id, text, occurrences[text]),
                position=position,
                text=text,
                text_hash=text_hash(above + text),
                heading_path=(*piece.heading_path, piece.columns) if piece.columns else piece.heading_path,
                start_char=piece.start,
                end_char=piece.end,
                start_line=start_line,
                end_line=end_line,
                tokens=piece.tokens,
                anchor=_place(document.sections, piece) if piece.anchor is None and document.sections else piece.anchor,
                context=above,
            )
        )
        occurrences[text] += 1
    return chunks


def _place(sections: Sequence[Section], piece: _Piece) -> str:
    """The names of the sections that the piece begins and ends in."""
    first, last = (
        bisect_right(sections, at, key=lambda section: section.start_char) - 1 for at in (piece.start, piece.end - 1)
    )
    names = dict.fromkeys(sections[max(0, number)].anchor for number in (first, last))
    return " to ".join(names)


def _above(path: Sequence[str], text: str, context: Context, *, is_code: bool) -> str:
    """What the text stands under and does not name itself: naming it twice makes it harder to find.

    Of code only the innermost symbol, so that the name of a class may change without its members.
    """
    if not path or context == "none" or (context == "symbols" and not is_code):
        return ""
    unnamed = [name for name in dict.fromkeys(path[-1:] if is_code else path[-_MAX_ABOVE:]) if name not in text]
    return " > ".join(unnamed) + "\n\n" if unnamed else ""


@dataclass(slots=True)
class _LineNumbers:
    """Lines of the source for places in the text, which are asked for in order."""

    document: Document
    counted: int = 0
    """So far into the text have newlines been counted."""
    newlines: int = 0

    def of(self, start: int, text: str) -> tuple[int, int]:
        """First and last line (1-based) of what stands at `start`."""
        self.newlines += self.document.text.count("\n", self.counted, start)
        self.counted = start
        first = self._source_line(self.newlines)
        return first, max(first, self._source_line(self.newlines + text.count("\n")))

    def _source_line(self, line: int) -> int:
        lines = self.document.source_lines
        if lines is None:
            return line + 1
        return lines[min(line, len(lines) - 1)] if lines else 1


def _path(part: _Part, inside: tuple[str, ...]) -> tuple[str, ...]:
    """The part's path and the headings inside it; a document's title that stands in it as a heading counts once."""
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
