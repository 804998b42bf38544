"""On which line of a TOML file a key stands, from its syntax tree: tomllib keeps no lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rag_pipeline.settings.complaints import Place

if TYPE_CHECKING:
    from tree_sitter import Node

_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")


def lines_of(text: str) -> dict[Place, int]:
    """The line (from 1) of every table, block and key of a TOML document; blocks of an array are counted from 0."""
    # Loaded when it is needed: every command reads settings, few ask for lines.
    import tree_sitter
    import tree_sitter_toml

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))
    found: dict[Place, int] = {}
    blocks: dict[Place, int] = {}
    for node in parser.parse(text.encode()).root_node.named_children:
        if node.type == "pair":
            _note(node, (), found)
        elif node.type in ("table", "table_array_element") and node.named_children:
            name, *pairs = node.named_children
            above = _table_of(_parts(name), blocks, is_block=node.type == "table_array_element")
            found.setdefault(above, node.start_point[0] + 1)
            if above and isinstance(above[-1], int):
                found.setdefault(above[:-1], node.start_point[0] + 1)
            for pair in pairs:
                _note(pair, above, found)
    return found


def line_of(place: Place, lines: Mapping[Place, int]) -> int | None:
    """The line of a key, or of the nearest thing around it that is written down."""
    for length in range(len(place), 0, -1):
        if place[:length] in lines:
            return lines[place[:length]]
    return None


def line_of_syntax_error(message: str) -> int | None:
    """The line that tomllib names in its complaint."""
    match = _AT_LINE.search(message)
    return int(match[1]) if match else None


def _table_of(parts: Place, blocks: dict[Place, int], *, is_block: bool) -> Place:
    """A table's place, with the number of the block in each array that it stands in."""
    above: Place = ()
    for depth, part in enumerate(parts, start=1):
        above = (*above, part)
        if is_block and depth == len(parts):
            blocks[above] = blocks.get(above, -1) + 1
        if above in blocks:
            above = (*above, blocks[above])
    return above


def _note(pair: Node, above: Place, found: dict[Place, int]) -> None:
    if pair.type != "pair" or len(pair.named_children) < 2:
        return
    name, value = pair.named_children[:2]
    place = (*above, *_parts(name))
    found.setdefault(place, pair.start_point[0] + 1)
    _note_value(value, place, found)


def _note_value(value: Node, place: Place, found: dict[Place, int]) -> None:
    found.setdefault(place, value.start_point[0] + 1)
    if value.type == "inline_table":
        for pair in value.named_children:
            _note(pair, place, found)
    elif value.type == "array":
        inside = [node for node in value.named_children if node.type != "comment"]
        for number, node in enumerate(inside):
            _note_value(node, (*place, number), found)


def _parts(name: Node) -> Place:
    if name.type == "dotted_key":
        return tuple(part for child in name.named_children for part in _parts(child))
    text = (name.text or b"").decode(errors="replace")
    if name.type != "quoted_key":
        return (text,)
    if text.startswith("'"):
        return (text[1:-1],)
    try:
        return (str(json.loads(text)),)
    except ValueError:
        return (text[1:-1],)
