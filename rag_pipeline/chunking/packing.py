"""Atoms to pieces that fill a chunk well, cut where the text itself says, so that an edit stays local.

Filling chunks one after the other would move every later boundary when a word is added. Instead, each gap has a
priority that depends only on its structure and on what follows it. A span that is too long is cut at its strongest
gap (a Cartesian tree over the gaps: a treap whose priorities are hashes), and pieces that are left small are joined
again over the weakest gaps first. Both decisions look no further than the neighbouring pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from zlib import crc32

from rag_pipeline.chunking.blocks import EXPRESSION, GROUP, ITEM, MAX_INDENT, PARAGRAPH
from rag_pipeline.chunking.splitting import Atom

Piece = tuple[int, int]
"""Atoms from the first number up to the second, exclusive."""
_Priorities = Callable[[Sequence[Atom]], list[int]]
"""Of the gaps before atoms; worked out for those alone that are compared."""
_LeastTokens = Callable[[int, int, int], int]
"""With how many tokens a piece stands alone beside one that it would fit: by the gap between them, and where the two
begin and end."""

_KEY_CHARS = 48
_MARGIN_CHARS = 64
_SPACED = bytes(code if code >= 128 or chr(code).isalnum() else ord(" ") for code in range(256))
"""What parts words, as spaces: `get_template_attribute` is three words, of which an edit changes one."""
_CODE_CHARS = 400
_CODE_MARKS = 48
_PROSE_CHARS = (200, 800)
"""So far is looked for them; most are near."""
_PROSE_MARKS = 14
"""Enough to look past a heading to what makes its section unlike the next one."""
_WORDY = bytes(code for code in range(256) if code >= 128 or chr(code).isalnum() or chr(code) == "_")
_WORDY_OR_SPACE = _WORDY + b" \t"


def gap_priorities(text: str, atoms: Sequence[Atom], *, is_code: bool) -> list[int]:
    """Per atom, how strong the gap before it is: the smaller the stronger; by level, then by a hash of what follows.

    In code, and before headings and list items, by the punctuation and line breaks that follow first, whatever the
    words are called: no edit of a word moves a cut, but between things that are built alike. There, and between
    paragraphs and sentences, the hash is of one word, the longest of the first ones, so that an edit of another word
    moves no cut; where two are equal, of all of them.
    """
    return _Gaps(text=text, is_code=is_code).priorities(atoms)


@dataclass(slots=True, kw_only=True)
class _Gaps:
    """The gaps of a text; what follows one is read once, however often it is compared."""

    text: str
    is_code: bool
    built: dict[int, int] = field(default_factory=dict)
    worded: dict[int, int] = field(default_factory=dict)

    def priorities(self, atoms: Sequence[Atom]) -> list[int]:
        """As `gap_priorities`."""
        text, known = self.text, self.built
        built = []
        for atom in atoms:
            build = known.get(atom.start)
            if build is None:
                build = known[atom.start] = _build(text, atom, is_code=self.is_code)
            built.append((atom.level << 32) | build)
        alike = Counter(built)
        words = self.worded
        found = []
        for first, atom in zip(built, atoms, strict=True):
            word = 0
            if alike[first] > 1:
                if atom.start not in words:
                    words[atom.start] = _worded(text, atom.start)
                word = words[atom.start]
            found.append((first << 64) | word)
        return found


def _worded(text: str, start: int) -> int:
    """A hash of the longest word of those that begin here, and one of them all."""
    words = text[start : start + _KEY_CHARS]
    if words[:1].isspace():
        words = text[start : start + _MARGIN_CHARS + _KEY_CHARS].lstrip()[:_KEY_CHARS]
    encoded = words.encode("utf-8", "surrogatepass")
    longest = max(encoded.translate(_SPACED).split(), key=len, default=b"")
    return (crc32(longest) << 32) | crc32(encoded)


def _build(text: str, atom: Atom, *, is_code: bool) -> int:
    """A hash of the punctuation and line breaks that follow, where these decide; otherwise 0."""
    if is_code:
        marks = text[atom.start : atom.start + _CODE_CHARS].encode("utf-8", "surrogatepass").translate(None, _WORDY)
        return crc32(marks[:_CODE_MARKS])
    if atom.level < PARAGRAPH or ITEM <= atom.level <= ITEM + MAX_INDENT:
        # Without spaces, which would count the words: one put in or taken out moves no cut either. Each run as one
        # mark, or the rule below a heading would be all that is seen of what follows it.
        marks = b""
        for chars in _PROSE_CHARS:
            near = text[atom.start : atom.start + chars].encode("utf-8", "surrogatepass")
            marks = _first_marks(near.translate(None, _WORDY_OR_SPACE))
            if len(marks) == _PROSE_MARKS:
                break
        return crc32(marks)
    return 0


def _first_marks(marks: bytes) -> bytes:
    """The first ones, each run of one mark as a single one."""
    found: list[int] = []
    last = -1
    for mark in marks:  # few are looked at: a pattern over all of them takes three times as long
        if mark != last:
            found.append(mark)
            last = mark
            if len(found) == _PROSE_MARKS:
                break
    return bytes(found)


def pack(text: str, atoms: Sequence[Atom], *, max_tokens: int, min_tokens: int, is_code: bool = False) -> list[Piece]:
    """Pieces of at most `max_tokens` each, in order, that together hold all atoms of the text.

    Pieces of fewer than `min_tokens` are joined to a neighbour where both fit.
    """
    before = [0, *accumulate(atom.tokens for atom in atoms)]
    if before[-1] <= max_tokens:
        return [(0, len(atoms))] if atoms else []
    priorities = _Gaps(text=text, is_code=is_code).priorities
    pieces = _cut_at_strongest(atoms, before, priorities, max_tokens=max_tokens)
    least_tokens = _least_tokens(atoms, max_tokens=max_tokens, min_tokens=min_tokens, is_code=is_code)
    gaps = priorities([atoms[start] for start, _ in pieces[1:]])
    return _join_over_weakest(pieces, before, gaps, least_tokens, max_tokens=max_tokens)


def _cut_at_strongest(
    atoms: Sequence[Atom], before: Sequence[int], priorities_of: _Priorities, *, max_tokens: int
) -> list[Piece]:
    """`before[i]` is the number of tokens before atom i. Level by level: most gaps lie in what fits without a cut, and
    are never compared, so that their words are not read."""
    levels = [atom.level for atom in atoms]
    pieces: list[Piece] = []
    todo = [(0, len(atoms))]
    while todo:
        start, end = todo.pop()
        if before[end] - before[start] <= max_tokens or end - start == 1:
            pieces.append((start, end))
            continue
        strongest = min(levels[start + 1 : end])
        gaps = [gap for gap in range(start + 1, end) if levels[gap] == strongest]
        todo.extend(_cut_at(gaps, (start, end), atoms, before, priorities_of, max_tokens=max_tokens))
    return sorted(pieces)


def _cut_at(
    gaps: Sequence[int],
    span: Piece,
    atoms: Sequence[Atom],
    before: Sequence[int],
    priorities_of: _Priorities,
    *,
    max_tokens: int,
) -> list[Piece]:
    """A span cut at gaps of one level until everything fits, or no such gap is left. The stack replaces recursion."""
    if len(gaps) == 1:
        return [(span[0], gaps[0]), (gaps[0], span[1])]
    left, right, root = _cartesian_tree(priorities_of([atoms[gap] for gap in gaps]))
    pieces: list[Piece] = []
    todo = [(*span, root)]
    while todo:
        start, end, at = todo.pop()
        if at < 0 or before[end] - before[start] <= max_tokens:
            pieces.append((start, end))
        else:
            todo.append((gaps[at], end, right[at]))
            todo.append((start, gaps[at], left[at]))
    return pieces


def _cartesian_tree(priorities: Sequence[int]) -> tuple[list[int], list[int], int]:
    """Left and right children of each gap and the root, by their numbers; -1 for none. Linear."""
    left = [-1] * len(priorities)
    right = [-1] * len(priorities)
    spine: list[int] = []
    for gap in range(len(priorities)):
        below = -1
        while spine and priorities[spine[-1]] > priorities[gap]:
            below = spine.pop()
        left[gap] = below
        if spine:
            right[spine[-1]] = gap
        spine.append(gap)
    return left, right, spine[0]


def _least_tokens(atoms: Sequence[Atom], *, max_tokens: int, min_tokens: int, is_code: bool) -> _LeastTokens:
    """Sections and definitions stand alone with `min_tokens`, anything else never, if it fits a neighbour.

    In code what is left of a long statement that was cut does, too, so that a word in it moves no boundary beyond it.
    Otherwise the last rows of a long table would be joined to the statement after it or not, as the rows before them
    have a token more or less.
    """
    opens = [atom.opens_section for atom in atoms]
    within = (is_code and EXPRESSION <= atom.level < GROUP and not atom.opens_section for atom in atoms[1:])
    is_inside = [False, *within, False]

    def least(gap: int, start: int, end: int) -> int:
        is_rest = not is_inside[gap] and (is_inside[start] or is_inside[end])
        return min_tokens if opens[gap] or is_rest else max_tokens

    return least


def _join_over_weakest(
    pieces: Sequence[Piece],
    before: Sequence[int],
    priorities: Sequence[int],
    least_tokens: _LeastTokens,
    *,
    max_tokens: int,
) -> list[Piece]:
    """Join neighbours that fit together, unless both have tokens enough to stand alone.

    `priorities` are those of the gaps before all pieces but the first.
    """
    end_of = dict(pieces)
    start_of = {end: start for start, end in pieces}
    gaps = [start for start, _ in pieces[1:]]
    for _, gap in sorted(zip(priorities, gaps, strict=True), key=itemgetter(0), reverse=True):
        start, end = start_of[gap], end_of[gap]
        if before[end] - before[start] > max_tokens:
            continue
        smaller = min(before[gap] - before[start], before[end] - before[gap])
        if smaller < least_tokens(gap, start, end):
            del start_of[gap], end_of[gap]
            end_of[start], start_of[end] = end, start
    return sorted(end_of.items())
