"""Blocks to atoms: pieces that fit a chunk each. A block that is too long is cut at ever weaker gaps."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from rag_pipeline.chunking.blocks import CHARACTER, GLUE, GROUP, LINE, SENTENCE, WORD, Block, indentation
from rag_pipeline.chunking.tables import Table
from rag_pipeline.chunking.tokens import TokenCounter

CHARS_PER_TOKEN: Final = 16
"""So many characters count as one token at least: a tokenizer may make one token of a megabyte without spaces."""

FULL_STOPS: Final = "。！？；｡।॥။។៕؟۔።፧"
"""What ends a sentence in other scripts, with or without a space after it."""
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_NO_END = "".join(
    rf"(?<!\b{short}\.)"
    for short in ("e\\.g", "i\\.e", "cf", "vs", "Dr", "Mr", "Mrs", "Ms", "al", "Fig", "No", "approx")
)
"""After a full stop: it ends an abbreviation, not a sentence."""
# Between the mark and the next sentence may stand what closes the sentence; a small letter goes on with it. A number
# at the start of a line counts items. The last alternative is the next item of a list.
_SENTENCE_END = re.compile(
    rf"(?:[!?…]|\.{_NO_END}(?<!\n\d\.)(?<!\n\d\d\.))['\")\]*_`»”’]*\s+(?![a-z])"
    rf"|[{FULL_STOPS}]['\")\]»”’」』）》】]*\s*"
    r"|\n(?=[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t])"
)
_LINE_END = re.compile(r"\n(?=[ \t]*\S)")
_SPACES = re.compile(r"\s+")
_MAX_LEAD_IN_CHARS: Final = 200
_FENCE = re.compile(r"\s*[`~.=+-]{3}")
_WORD = re.compile(r"\w")
_MAX_FENCE_CHARS: Final = 40
_KEY_CHARS = 16
_NO_TABLES: Final[Mapping[int, Table]] = {}
_MAX_MARGIN_CHARS = 200


class Atom(NamedTuple):
    """`text[start:end]`, which fits a chunk; the atoms of a document tile it."""

    start: int
    end: int
    level: int
    """Of the gap before it."""
    tokens: int
    """As counted, and at least one for `CHARS_PER_TOKEN` characters."""
    block: int
    """Which block of the document it is or belongs to."""
    opens_section: bool
    counted: int | None = None
    """As counted; None when it was not."""


_new_atom = partial(tuple.__new__, Atom)
"""As `Atom._make`, without a call of Python for each of them."""

_Cuts = Callable[[str, Atom, Block], Iterator[tuple[int, int]]]
"""Where in an atom to cut: positions in the text, and the levels of the gaps."""


def atoms_of(
    text: str,
    blocks: Sequence[Block],
    *,
    max_tokens: int,
    count_tokens: TokenCounter,
    tables: Mapping[int, Table] = _NO_TABLES,
    is_code: bool = False,
) -> list[Atom]:
    """Atoms of at most `max_tokens` each, in order; where lines allow, an atom under a heading fits in its chunk.

    The blocks of code are cut along its syntax: no line of a statement is given up to keep others together.

    Blocks are counted in one batch, and the pieces of each round of cuts in one more.
    """
    counts = _counts(text, [(b.start, b.end) for b in blocks], max_tokens=max_tokens, count_tokens=count_tokens)
    starts, ends, levels, _, _, opens = zip(*blocks, strict=True)
    tokens, counted = zip(*counts, strict=True)
    atoms = list(map(_new_atom, zip(starts, ends, levels, tokens, range(len(blocks)), opens, counted, strict=True)))
    if 2 * max(tokens) <= max_tokens:  # with its headings, too, everything fits
        return atoms
    rows = (partial(_rows, tables),) if tables else ()
    for cuts in (*rows, _groups, _sentences, _lines, _some_words, _words):
        # Only whole rows, groups, sentences and, in prose, lines are given up to keep a heading with its text.
        too_long = (
            _too_long(atoms, max_tokens=max_tokens)
            if cuts in (_some_words, _words) or (is_code and cuts is _lines)
            else _too_long_glued(atoms, max_tokens=max_tokens, whole=() if cuts in rows else tables, is_code=is_code)
        )
        if not too_long:
            return atoms
        pieces = {i: _cut(atoms[i], cuts(text, atoms[i], blocks[atoms[i].block])) for i in too_long}
        atoms = _replaced(text, atoms, pieces, max_tokens=max_tokens, count_tokens=count_tokens)
    return _split_hard(text, atoms, max_tokens=max_tokens, count_tokens=count_tokens)


def halves(atom: Atom) -> list[Atom]:
    """The atom as two, each with half of its tokens; as itself when it is a single character."""
    middle = (atom.start + atom.end) // 2
    return [piece._replace(tokens=atom.tokens // 2) for piece in _cut(atom, iter([(middle, CHARACTER)]))]


def sentence_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Where sentences, list items or lines after the first begin in `text[start:end]`, in no particular order."""
    yield from (match.end() for match in _SENTENCE_END.finditer(text, start, end))
    yield from (match.end() for match in _LINE_END.finditer(text, start, end))


def _too_long(atoms: Sequence[Atom], *, max_tokens: int) -> list[int]:
    """Which atoms do not fit a chunk."""
    return [i for i, atom in enumerate(atoms) if atom.tokens > max_tokens]


def _too_long_glued(atoms: Sequence[Atom], *, max_tokens: int, whole: Container[int], is_code: bool) -> list[int]:
    """Which atoms do not fit a chunk together with what is glued to them: headings above, in prose also labels below.

    Those of the blocks in `whole` need not: no row of a table is cut for its header.
    """
    too_long = _too_long(atoms, max_tokens=max_tokens)
    for first, end, below in _long_runs(atoms, max_tokens=max_tokens):
        above = 0
        for i in range(first, end):
            tokens = atoms[i].tokens
            below -= tokens
            sizes = (above,) if is_code else (above, below)
            beside = max((size for size in sizes if 4 * size < 3 * max_tokens), default=0)
            if max_tokens >= tokens > max_tokens - beside and atoms[i].block not in whole:
                too_long.append(i)
            above += tokens
    return sorted(too_long)


def _long_runs(atoms: Sequence[Atom], *, max_tokens: int) -> Iterator[tuple[int, int, int]]:
    """Atoms that are glued together and too long: the number of the first, the one after the last, their tokens."""
    first = total = 0
    for i, atom in enumerate(atoms):
        if atom.level == GLUE:
            total += atom.tokens
        else:
            if total > max_tokens:
                yield first, i, total
            first, total = i, atom.tokens
    if total > max_tokens:
        yield first, len(atoms), total


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
    counts = iter(_counts(text, [a[:2] for a in cut], max_tokens=max_tokens, count_tokens=count_tokens))
    replaced: list[Atom] = []
    for i, atom in enumerate(atoms):
        if len(pieces.get(i, ())) > 1:
            replaced.extend(_counted(piece, *next(counts)) for piece in pieces[i])
        else:
            replaced.append(atom)
    return replaced


def _counts(
    text: str, spans: Sequence[tuple[int, int]], *, max_tokens: int, count_tokens: TokenCounter
) -> list[tuple[int, int | None]]:
    """`tokens` and `counted` of spans; those that are too long by their characters alone are not counted."""
    longest = max_tokens * CHARS_PER_TOKEN
    counts = iter(count_tokens([text[start:end] for start, end in spans if end - start <= longest]))
    found: list[tuple[int, int | None]] = []
    for start, end in spans:
        least = -(-(end - start) // CHARS_PER_TOKEN)
        if end - start > longest:
            found.append((least, None))
        else:
            counted = next(counts)
            found.append((counted if counted > least else least, counted))
    return found


def _counted(atom: Atom, tokens: int, counted: int | None) -> Atom:
    return Atom(atom.start, atom.end, atom.level, tokens, atom.block, atom.opens_section, counted)


def _cut(atom: Atom, cuts: Iterator[tuple[int, int]]) -> list[Atom]:
    """The atom's pieces, not counted yet; the first keeps the gap before the atom."""
    gaps = [(atom.start, atom.level)]
    gaps.extend((at, level) for at, level in cuts if atom.start < at < atom.end)
    ends = [at for at, _ in gaps[1:]]
    ends.append(atom.end)
    return [
        Atom(start, end, level, 0, atom.block, atom.opens_section and start == atom.start)
        for (start, level), end in zip(gaps, ends, strict=True)
    ]


def _rows(tables: Mapping[int, Table], _text: str, atom: Atom, _block: Block) -> Iterator[tuple[int, int]]:
    """Between the rows of a table; its header stays with the first one."""
    if table := tables.get(atom.block):
        yield table.start, LINE
        for number, start in enumerate(table.rows):
            yield start, LINE if number or start == table.start else GLUE


def _groups(text: str, atom: Atom, _block: Block) -> Iterator[tuple[int, int]]:
    for number, match in enumerate(_BLANK_LINES.finditer(text, atom.start, atom.end)):
        leads = not number and _leads(text[atom.start : match.start()])
        yield match.end(), GLUE if leads else GROUP + _indent_at(text, match.end(), atom.end)


def _leads(words: str) -> bool:
    """Whether the first lines of a block only lead to its body: a directive, or what ends with a colon."""
    return len(words) <= _MAX_LEAD_IN_CHARS and (words.lstrip().startswith(".. ") or words.rstrip().endswith(":"))


def _sentences(text: str, atom: Atom, block: Block) -> Iterator[tuple[int, int]]:
    if block.kind != "verbatim":
        for match in _SENTENCE_END.finditer(text, atom.start, atom.end):
            yield match.end(), SENTENCE


def _lines(text: str, atom: Atom, block: Block) -> Iterator[tuple[int, int]]:
    """Between lines; what opens and closes a fence stays with the line next to it."""
    opens = block.kind == "verbatim" and atom.start == block.start and _FENCE.match(text, atom.start) is not None
    for match in _LINE_END.finditer(text, atom.start, atom.end):
        at = match.end()
        closes = atom.end - at <= _MAX_FENCE_CHARS and block.kind == "verbatim" and not _WORD.search(text, at, atom.end)
        yield at, GLUE if opens or closes else LINE + _indent_at(text, at, atom.end)
        opens = False


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
    while too_long := _too_long(atoms, max_tokens=max_tokens):
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
