"""Atoms to pieces that fill a chunk well, cut where the text itself says, so that an edit stays local.

Filling chunks one after the other would move every later boundary when a word is added. Instead, each gap has a
priority that depends only on its structure and on the words after it. A span that is too long is cut at its strongest
gap (a Cartesian tree over the gaps: a treap whose priorities are hashes), and pieces that are left small are joined
again over the weakest gaps first. Both decisions look no further than the neighbouring pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from zlib import crc32

from rag_pipeline.chunking.splitting import Atom

Piece = tuple[int, int]
"""Atoms from the first number up to the second, exclusive."""

_KEY_CHARS = 48
_MARGIN_CHARS = 64
_SPACED = bytes(code if code >= 128 or chr(code).isalnum() else ord(" ") for code in range(256))
"""What parts words, as spaces: `get_template_attribute` is three words, of which an edit changes one."""


def gap_priorities(text: str, atoms: Sequence[Atom]) -> list[int]:
    """Per atom, how strong the gap before it is: the smaller the stronger; by level, then by a hash of what follows.

    The hash is of one word, the longest of the first ones, so that an edit of another word moves no cut; where two are
    equal, of all of them.
    """
    priorities = []
    for atom in atoms:
        start = atom.start
        words = text[start : start + _KEY_CHARS]
        if words[:1].isspace():
            words = text[start : start + _MARGIN_CHARS + _KEY_CHARS].lstrip()[:_KEY_CHARS]
        encoded = words.encode("utf-8", "surrogatepass")
        longest = max(encoded.translate(_SPACED).split(), key=len, default=b"")
        priorities.append((atom.level << 64) | (crc32(longest) << 32) | crc32(encoded))
    return priorities


def pack(text: str, atoms: Sequence[Atom], *, max_tokens: int, min_tokens: int) -> list[Piece]:
    """Pieces of at most `max_tokens` each, in order, that together hold all atoms of the text.

    Pieces of fewer than `min_tokens` are joined to a neighbour where both fit.
    """
    before = [0, *accumulate(atom.tokens for atom in atoms)]
    if before[-1] <= max_tokens:
        return [(0, len(atoms))] if atoms else []
    priorities = gap_priorities(text, atoms)
    pieces = _cut_at_strongest(priorities, before, max_tokens=max_tokens)
    return _join_over_weakest(pieces, atoms, priorities, before, max_tokens=max_tokens, min_tokens=min_tokens)


def _cut_at_strongest(priorities: Sequence[int], before: Sequence[int], *, max_tokens: int) -> list[Piece]:
    """`before[i]` is the number of tokens before atom i. Linear; the stack replaces recursion, which may be deep."""
    left, right, root = _cartesian_tree(priorities)
    pieces: list[Piece] = []
    todo = [(0, len(priorities), root)]
    while todo:
        start, end, gap = todo.pop()
        if gap < 0 or before[end] - before[start] <= max_tokens:
            pieces.append((start, end))
        else:
            todo.append((gap, end, right[gap]))
            todo.append((start, gap, left[gap]))
    return pieces


def _cartesian_tree(priorities: Sequence[int]) -> tuple[list[int], list[int], int]:
    """Left and right children of each gap and the root, -1 for none; gap i is before atom i, gap 0 is no gap."""
    left = [-1] * len(priorities)
    right = [-1] * len(priorities)
    spine: list[int] = []
    for gap in range(1, len(priorities)):
        below = -1
        while spine and priorities[spine[-1]] > priorities[gap]:
            below = spine.pop()
        left[gap] = below
        if spine:
            right[spine[-1]] = gap
        spine.append(gap)
    return left, right, spine[0] if spine else -1


def _join_over_weakest(
    pieces: Sequence[Piece],
    atoms: Sequence[Atom],
    priorities: Sequence[int],
    before: Sequence[int],
    *,
    max_tokens: int,
    min_tokens: int,
) -> list[Piece]:
    """Join neighbours that fit together; over the beginning of a section only when one of them is too small."""
    end_of = dict(pieces)
    start_of = {end: start for start, end in pieces}
    for gap in sorted((start for start, _ in pieces[1:]), key=priorities.__getitem__, reverse=True):
        start, end = start_of[gap], end_of[gap]
        if before[end] - before[start] > max_tokens:
            continue
        smaller = min(before[gap] - before[start], before[end] - before[gap])
        if smaller < min_tokens or not atoms[gap].opens_section:
            del start_of[gap], end_of[gap]
            end_of[start], start_of[end] = end, start
    return sorted(end_of.items())
