"""Blocks of code by its syntax tree: definitions, members, statements, and only then what is inside an expression."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from tree_sitter import Tree

from rag_pipeline.chunking.blocks import Block
from rag_pipeline.chunking.code.grammars import Grammar, grammar_of
from rag_pipeline.chunking.code.tree_walk import Gap, TreeWalk

_ENDLESS_LINE_BYTES: Final = 5_000


class _Part(NamedTuple):
    """A part of a source that is parsed by itself; mended, it may be longer than it was."""

    start: int
    """Where it begins in the source."""
    text: bytes
    tree: Tree
    longer: Sequence[tuple[int, int]] = ()
    """From which byte of its text on, by how many."""

    def place(self, at: int) -> int:
        """Where a byte of its text stands in the source."""
        return self.start + at - sum(by for since, by in self.longer if since < at)


def syntax_blocks(text: str, *, language: str | None, min_chars: int) -> list[Block] | None:
    """Blocks that tile the text; None without a grammar for the language, or when it makes no sense of the text.

    What has no more than `min_chars` characters is not looked into: it is one block, or a part of one.
    """
    grammar = grammar_of(language) if language else None
    if grammar is None or not text:
        return None
    # A lone surrogate has no UTF-8: any character of one byte will do in its place.
    source = text.encode("utf-8", "replace")
    if not grammar.is_data and _is_minified(source):
        return None
    gaps = _gaps(source, grammar, bound=min_chars)
    return None if gaps is None else _tiled(gaps, source, length=len(text))


def _is_minified(source: bytes) -> bool:
    """Whether most of it is on endless lines: some parsers take the square of their length to recover from an error."""
    long_lines = (len(line) for line in source.split(b"\n") if len(line) > _ENDLESS_LINE_BYTES)
    return sum(long_lines) * 2 > len(source)


def _gaps(source: bytes, grammar: Grammar, *, bound: int) -> dict[int, Gap] | None:
    """Where to cut, by places in the source; None when the grammar makes no sense of half of it or more."""
    tree = grammar.parse(source)
    if tree is None:
        return None
    parts = [_Part(0, source, tree)]
    if tree.root_node.has_error and grammar.restarts is not None:
        parts = _parts(source, grammar, grammar.restarts)
    gaps: dict[int, Gap] = {}
    error_bytes = 0
    has_long_lines = max(map(len, source.split(b"\n"))) > 4 * bound
    for above, part in enumerate(parts):
        walk = TreeWalk(
            source=part.text,
            roles=grammar.roles,
            namers=grammar.namers,
            bound=bound,
            has_long_lines=has_long_lines,
            parts_above=above,
        )
        walk.run(part.tree.root_node)
        gaps.update((part.place(at), gap) for at, gap in walk.gaps.items())
        error_bytes += walk.error_bytes
    return gaps if error_bytes * 2 <= len(source) else None


def _parts(source: bytes, grammar: Grammar, restarts: re.Pattern[bytes]) -> list[_Part]:
    """A broken text in parts, as one broken word must not change how everything after it is read; or mended as one."""
    starts = [0, *(match.start() for match in restarts.finditer(source) if match.start()), len(source)]
    parts = [_part(start, source[start:end], grammar) for start, end in pairwise(starts)]
    parsed = [part for part in parts if part is not None]
    if len(parsed) == len(parts) and not any(part.tree.root_node.has_error for part in parsed):
        text = b"".join(part.text for part in parsed)
        if whole := grammar.parse(text):
            before = accumulate((len(part.text) for part in parsed), initial=0)
            longer = [(at + since, by) for at, part in zip(before, parsed, strict=False) for since, by in part.longer]
            return [_Part(0, text, whole, longer)]
    return parsed


def _part(start: int, text: bytes, grammar: Grammar) -> _Part | None:
    tree = grammar.parse(text)
    if grammar.mended and tree and tree.root_node.has_error and (mended := grammar.mended(text, grammar.parse)):
        return _Part(start, mended.text, mended.tree, [(mended.longer_at, mended.longer_by)])
    return _Part(start, text, tree) if tree else None


def _tiled(gaps: Mapping[int, Gap], source: bytes, *, length: int) -> list[Block]:
    """Blocks between the gaps, in characters; the first begins at 0, so that no block is white space alone."""
    starts = sorted(gaps)
    first = Gap(0, (), False)
    if starts and not source[: starts[0]].strip():
        first = gaps[starts.pop(0)]
    places = [0, *_in_characters(starts, source, length=length), length]
    return [
        Block(start=start, end=end, level=gap.level, kind="verbatim", path=gap.path, opens_section=gap.opens_section)
        for start, end, gap in zip(places, places[1:], [first, *map(gaps.__getitem__, starts)], strict=False)
    ]


def _in_characters(starts: list[int], source: bytes, *, length: int) -> list[int]:
    """Places in the UTF-8 bytes as places in their text, which has this length."""
    if len(source) == length:
        return starts
    places, place, before = [], 0, 0
    for start in starts:
        place += len(source[before:start].decode("utf-8", "replace"))
        places.append(place)
        before = start
    return places
