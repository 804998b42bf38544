"""The pieces that structure gives: blocks, and the outline that collects them in reading order.

A block is never cut while it fits a chunk. Between two blocks lies a gap; its level says how readily it is cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, NamedTuple

BlockKind = Literal["heading", "prose", "verbatim"]

# Levels of gaps: the smaller, the sooner it is cut. Headings have levels 1 to 9; code has 0 to 199, by indentation.
PARAGRAPH: Final = 10
ITEM: Final = 20
"""List items and indented paragraphs, plus their indentation."""
EXPRESSION: Final = 100
"""Inside a statement of code, plus what its depth there adds: rows of a table, arguments of a call."""
GROUP: Final = 200
"""Groups of lines inside a block that was too long, plus their indentation."""
SENTENCE: Final = 300
LINE: Final = 310
"""Lines inside a block that was too long, plus their indentation."""
WORD: Final = 400
CHARACTER: Final = 410
GLUE: Final = 500
"""After a heading: it stays with what follows it."""

MAX_INDENT: Final = 60
"""Deeper indentation makes no weaker gap."""


class Block(NamedTuple):
    """`text[start:end]` of a document, with the gap before it; the blocks of a document tile it.

    A tuple, like `Atom`: there is one for every few words of a corpus, and a dataclass takes several times as long.
    """

    start: int
    end: int
    level: int
    kind: BlockKind
    path: tuple[str, ...] = ()
    """Headings or symbols that it stands under, outermost first; a heading stands under itself."""
    opens_section: bool = False
    """It begins a section or a definition, or ends one: chunks do not grow over such a gap without need."""


_new_block = partial(tuple.__new__, Block)
"""As `Block._make`, without a call of Python for each of them."""


@dataclass(slots=True, kw_only=True)
class Outline:
    """Blocks as a scanner opens them, and the headings or symbols that are open."""

    path: tuple[str, ...] = ()
    _open: list[tuple[int, str]] = field(default_factory=list)
    _blocks: list[tuple[int, int, BlockKind, tuple[str, ...], bool]] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """Depth of the innermost open heading or symbol; -1 when none is open."""
        return self._open[-1][0] if self._open else -1

    @property
    def is_empty(self) -> bool:
        """Whether no block has been opened yet."""
        return not self._blocks

    def enter(self, depth: int, name: str) -> None:
        """Open a heading or symbol; those as deep or deeper end."""
        self.leave(depth)
        self._open.append((depth, name))
        self.path = (*self.path, name)

    def leave(self, depth: int) -> bool:
        """End the headings or symbols that are as deep as this or deeper; whether there were any."""
        kept = len(self._open)
        while kept and self._open[kept - 1][0] >= depth:
            kept -= 1
        ended = kept < len(self._open)
        if ended:
            del self._open[kept:]
            self.path = self.path[:kept]
        return ended

    def open_block(self, start: int, *, level: int, kind: BlockKind = "prose", opens_section: bool = False) -> None:
        """Begin a block, in place of those that began here or later; the one before it ends here."""
        while self._blocks and self._blocks[-1][0] >= start:
            self._blocks.pop()
        if self._blocks and self._blocks[-1][2] == "heading":
            level, opens_section = GLUE, False
        self._blocks.append((start, level, kind, self.path, opens_section))

    def heading(self, start: int, *, depth: int, title: str) -> None:
        """Begin a block that is a heading, `depth` from 1."""
        self.enter(depth, title)
        self.open_block(start, level=min(depth, PARAGRAPH - 1), kind="heading", opens_section=True)

    def reopen_as_heading(self, *, depth: int, title: str) -> None:
        """Make the last block a heading, its underline having been seen."""
        self.heading(self._blocks[-1][0], depth=depth, title=title)

    def blocks(self, *, length: int) -> list[Block]:
        """All blocks; the first begins at 0, the last ends at `length`."""
        if not self._blocks:
            return []
        starts, *others = zip(*self._blocks, strict=True)
        return list(map(_new_block, zip((0, *starts[1:]), (*starts[1:], length), *others, strict=True)))


def indentation(line: str, stripped: str) -> int:
    """Columns before the text of a line, tabs as 4, at most `MAX_INDENT`; `stripped` is the line without them."""
    width = len(line) - len(stripped)
    if width and "\t" in line[:width]:
        width += 3 * line.count("\t", 0, width)
    return min(width, MAX_INDENT)
