"""Blocks to atoms: pieces that fit a chunk each. A block that is too long is cut at ever weaker gaps."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rag_pipeline.chunking.blocks import CHARACTER, GLUE, GROUP, LINE, SENTENCE, WORD, Block, indentation
from rag_pipeline.chunking.tokens import TokenCounter

CHARS_PER_TOKEN: Final = 16
"""So many characters count as one token at least: a tokenizer may make one token of a megabyte without spaces."""

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_SENTENCE_END = re.compile(r"[.!?…]['\")\]*_`»”’]*\s+|[。！？]\s*|\n(?=[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t])")
_LINE_END = re.compile(r"\n(?=[ \t]*\S)")
_SPACES = re.compile(r"\s+")
_KEY_CHARS = 16
_MAX_MARGIN_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """`text[start:end]`, which fits a chunk; the atoms of a document tile it."""

    start: int
    end: int
    level: int
    """Of the gap before it."""
    tokens: int
    """As counted, and at least one for `CHARS_PER_TOKEN` characters."""
    block: int
    """Which block of the document it is or belongs to."""
    opens_section: bool = False


_Cuts = Callable[[str, Atom, Block], Iterator[tuple[int, int]]]
"""Where in an atom to cut: positions in the text, and the levels of the gaps."""


def atoms_of(text: str, blocks: Sequence[Block], *, max_tokens: int, count_tokens: TokenCounter) -> list[Atom]:
    """Atoms of at most `max_tokens` each, in order; where sentences allow, an atom under a heading fits beside it.

    Blocks are counted in one batch, and the pieces of each round of cuts in one more.
    """
    whole = [
        Atom(start=b.start, end=b.end, level=b.level, tokens=0, block=i, opens_section=b.opens_section)
        for i, b in enumerate(blocks)
    ]
    atoms = _counted(text, whole, max_tokens=max_tokens, count_tokens=count_tokens)
    for cuts in (_groups, _sentences, _lines, _some_words, _words):
        # Only whole sentences or lines are given up to keep a heading with its text.
        glue = cuts in (_groups, _sentences, _lines)
        too_long = _too_long(atoms, max_tokens=max_tokens, glue=glue)
        if too_long:
            pieces = {i: _cut(atoms[i], cuts(text, atoms[i], blocks[atoms[i].block])) for i in too_long}
            atoms = _replaced(text, atoms, pieces, max_tokens=max_tokens, count_tokens=count_tokens)
    return _split_hard(text, atoms, max_tokens=max_tokens, count_tokens=count_tokens)


def halves(atom: Atom) -> list[Atom]:
    """The atom as two, each with half of its tokens; as itself when it is a single character."""
    middle = (atom.start + atom.end) // 2
    return _cut(atom, iter([(middle, CHARACTER)]), tokens=atom.tokens // 2)


def _too_long(atoms: Sequence[Atom], *, max_tokens: int, glue: bool) -> list[int]:
    """Which atoms do not fit a chunk, with `glue` together with the headings directly above them."""
    too_long = []
    above = before = 0
    for i, atom in enumerate(atoms):
        above = above + before if atom.level == GLUE else 0
        before = atom.tokens
        room = max_tokens - above if glue and above * 2 < max_tokens else max_tokens
        if atom.tokens > room:
            too_long.append(i)
    return too_long


def _replaced(
    text: str,
    atoms: Sequence[Atom],
    pieces: dict[int, list[Atom]],
    *,
    max_tokens: int,
    count_tokens: TokenCounter,
) -> list[Atom]:
    """The atoms with some of them replaced by their pieces, which are counted first."""
    cut = [piece for i in pieces if len(pieces[i]) > 1 for piece in pieces[i]]
    counted = iter(_counted(text, cut, max_tokens=max_tokens, count_tokens=count_tokens))
    replaced: list[Atom] = []
    for i, atom in enumerate(atoms):
        if len(pieces.get(i, ())) > 1:
            replaced.extend(next(counted) for _ in pieces[i])
        else:
            replaced.append(atom)
    return replaced


def _counted(text: str, atoms: Sequence[Atom], *, max_tokens: int, count_tokens: TokenCounter) -> list[Atom]:
    """The atoms with their tokens; those that are too long by their characters alone are not counted."""
    least = [-(-(atom.end - atom.start) // CHARS_PER_TOKEN) for atom in atoms]
    counts = iter(count_tokens([text[a.start : a.end] for a, n in zip(atoms, least, strict=True) if n <= max_tokens]))
    return [
        Atom(
            start=atom.start,
            end=atom.end,
            level=atom.level,
            tokens=n if n > max_tokens else max(n, next(counts)),
            block=atom.block,
            opens_section=atom.opens_section,
        )
        for atom, n in zip(atoms, least, strict=True)
    ]


def _cut(atom: Atom, cuts: Iterator[tuple[int, int]], *, tokens: int = 0) -> list[Atom]:
    """The atom's pieces; the first keeps the gap before the atom."""
    gaps = [(atom.start, atom.level)]
    gaps.extend((at, level) for at, level in cuts if atom.start < at < atom.end)
    ends = [at for at, _ in gaps[1:]]
    ends.append(atom.end)
    return [
        Atom(
            start=start,
            end=end,
            level=level,
            tokens=tokens,
            block=atom.block,
            opens_section=atom.opens_section and start == atom.start,
        )
        for (start, level), end in zip(gaps, ends, strict=True)
    ]


def _groups(text: str, atom: Atom, _block: Block) -> Iterator[tuple[int, int]]:
    for match in _BLANK_LINES.finditer(text, atom.start, atom.end):
        yield match.end(), GROUP + _indent_at(text, match.end(), atom.end)


def _sentences(text: str, atom: Atom, block: Block) -> Iterator[tuple[int, int]]:
    if block.kind != "verbatim":
        for match in _SENTENCE_END.finditer(text, atom.start, atom.end):
            yield match.end(), SENTENCE


def _lines(text: str, atom: Atom, _block: Block) -> Iterator[tuple[int, int]]:
    for match in _LINE_END.finditer(text, atom.start, atom.end):
        yield match.end(), LINE + _indent_at(text, match.end(), atom.end)


def _some_words(text: str, atom: Atom, block: Block) -> Iterator[tuple[int, int]]:
    """One gap in eight, chosen by what follows it: an edit moves no other cut, and megabytes stay few atoms."""
    for at, level in _words(text, atom, block):
        if zlib.crc32(text[at : at + _KEY_CHARS].encode("utf-8", "surrogatepass")) % 8 == 0:
            yield at, level


def _words(text: str, atom: Atom, _block: Block) -> Iterator[tuple[int, int]]:
    for match in _SPACES.finditer(text, atom.start, atom.end):
        yield match.end(), WORD


def _split_hard(text: str, atoms: list[Atom], *, max_tokens: int, count_tokens: TokenCounter) -> list[Atom]:
    """Cut what is too long without regard to words, until everything fits."""
    window = 4 * max_tokens  # characters; about one chunk
    while too_long := _too_long(atoms, max_tokens=max_tokens, glue=False):
        pieces = {
            i: _cut(atoms[i], ((at, CHARACTER) for at in range(atoms[i].start + window, atoms[i].end, window)))
            for i in too_long
            if atoms[i].end - atoms[i].start > 1
        }
        if not pieces:
            break
        atoms = _replaced(text, atoms, pieces, max_tokens=max_tokens, count_tokens=count_tokens)
        window = max(1, window // 2)
    return atoms


def _indent_at(text: str, at: int, end: int) -> int:
    margin = text[at : min(end, at + _MAX_MARGIN_CHARS)]
    return indentation(margin, margin.lstrip())
