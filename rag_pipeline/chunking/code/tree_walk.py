"""From a syntax tree to the gaps where its text may be cut: what begins there, and how readily it is cut.

A gap lies where something begins on a line of its own. Its level grows with its indentation, and with the depth in the
tree where indentation says nothing, so that a text is cut at its outermost places first. Indentation comes first
because it outlives syntax errors: a word that breaks a definition moves everything in it up the tree, but not to the
left. What is short is not looked into, which makes the walk cheap; whether it is short depends on its own text alone,
so that equal text gives equal gaps wherever it stands.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tree_sitter import Node

from rag_pipeline.chunking.blocks import EXPRESSION, GLUE
from rag_pipeline.chunking.code.grammars import Role
from rag_pipeline.chunking.code.names import Namer

_MAX_DEPTH: Final = 32
"""Deeper nesting makes no weaker gap."""
_SECTION, _AFTER_BLANK_LINE, _PLAIN = 0, 1, 2
_LONG_LINE: Final = 2
"""Times the bound: so far from both ends of its line, code is cut inside the line."""
_LONG_ITEM_BYTES: Final = 32
_KEY_BYTES: Final = 16
_DEFINING_WORDS: Final = frozenset(["def", "class", "func", "fun", "fn", "function", "struct", "interface", "module"])
_MAX_WRAPPERS: Final = 8
_MAX_PATH: Final = 12
"""Names in a path: data may be nested a hundred thousand deep."""


class Gap(NamedTuple):
    """The gap before something; a tuple because there are many. See `blocks.Block` for what the fields mean."""

    level: int
    path: tuple[str, ...]
    opens_section: bool


class _Place(NamedTuple):
    """Where something begins, with its indentation."""

    at: int
    indent: int
    follows_blank: bool


class _Visit(NamedTuple):
    """A node to look into."""

    node: Node
    role: Role
    depth: int
    """The least depth of what is in it."""
    expression: int
    """The depth at which the outermost expression around it began; -1 outside of expressions."""
    path: tuple[str, ...]
    first: bool
    """What comes first in it stays with what precedes it."""
    leads: list[_Place]
    """Comments above it that may belong to the first thing in it."""


@dataclass(slots=True, kw_only=True)
class _Items:
    """What is known while going over the children of a node."""

    path: tuple[str, ...]
    first: bool
    leads: list[_Place]
    """Where comments begin that may belong to the next child."""
    is_broken_definition: bool = False
    """A word that begins definitions stands alone before the next child, because of a syntax error."""
    after_section: bool = False
    after_docstring: bool = False
    """A definition that does not fit is cut here first: what it says of itself is what people ask for."""


@dataclass(slots=True, kw_only=True)
class TreeWalk:
    """Goes over the nodes that are long enough to need a cut, and collects the gaps by their places in the text."""

    source: bytes
    roles: Mapping[int, Role]
    namers: Mapping[int, Namer]
    bound: int
    """What has no more bytes than this is never cut."""
    has_long_lines: bool
    parts_above: int = 0
    """How many parts of a file are above this one, which begins after a blank line; all but the first define things."""
    gaps: dict[int, Gap] = field(default_factory=dict)
    error_bytes: int = 0
    """How much the grammar made no sense of, as far as it was looked at."""
    _todo: list[_Visit] = field(default_factory=list)

    def run(self, root: Node) -> None:
        """Visit the tree, outer nodes before inner ones: what they say about a gap stands."""
        if root.kind_id not in self.roles:
            self._count_error(root)
        self._todo.append(_Visit(root, Role.BODY, 0, -1, (), False, []))
        while self._todo:
            self._visit(self._todo.pop())

    def _visit(self, visit: _Visit) -> None:
        source, roles, bound = self.source, self.roles, self.bound
        items = _Items(path=visit.path, first=visit.first, leads=visit.leads)
        if self.parts_above > 1 and visit.role is Role.BODY and not visit.depth:
            items.after_section = True
        before = self._before_first(visit)
        children = visit.node.children
        children.reverse()
        while children:
            child = children.pop()
            start, end, role = child.start_byte, child.end_byte, roles.get(child.kind_id)
            if role is None or role is Role.SPLICE:
                # An error begins with the line break before what is wrong: its parts say where lines begin.
                if role is None or end - start > bound:
                    children.extend(reversed(self._spliced(child)))
                    continue
                role = Role.OTHER
            if start == end:
                continue  # what the parser put in
            if source.find(b"\n", before, start) >= 0 or start == 0:
                self._take_line_start(visit, child, role, items)
            elif role < Role.LEAD:
                if self.has_long_lines and role is not Role.BODY and self._may_cut_line(start, end):
                    self._take_item(visit, child, role, items, _Place(start, 0, False))
                elif end - start > bound:
                    self._take_inside_line(visit, child, role, items)
            before = end - 1  # some nodes end with the line break
        if items.leads:
            self._take_last_leads(visit, items, before + 1)

    def _take_last_leads(self, visit: _Visit, items: _Items, end: int) -> None:
        """Comments that end a node stand for themselves, but for those directly above what follows the node."""
        *above, last = items.leads
        for lead in above:
            self._open(visit, items, lead, items.path)
        following = self.source.find(b"\n", end - 1) + 1
        is_next = following > 0 and not self.source[end:following].strip()
        if is_next and following in self.gaps and self._margin(following) == self._margin(last.at):
            self.gaps.setdefault(last.at, self.gaps.pop(following))
        else:
            self._open(visit, items, last, items.path)

    def _margin(self, at: int) -> bytes:
        line = self.source[at : at + 4 * _MAX_DEPTH]
        return line[: len(line) - len(line.lstrip())]

    def _before_first(self, visit: _Visit) -> int:
        """Where to look for a line break before the first child: what a body begins with may begin a line."""
        start = visit.node.start_byte
        line = self.source.rfind(b"\n", 0, start)
        if visit.role is Role.BODY and line >= 0 and not self.source[line:start].strip():
            return line
        return start

    def _spliced(self, node: Node) -> list[Node]:
        if node.kind_id not in self.roles:
            self._count_error(node)
        return node.children

    def _count_error(self, error: Node) -> None:
        """What lies in an error, but for the statements in it and the long parts, which were understood."""
        size = error.end_byte - error.start_byte
        for child in error.children:
            length = child.end_byte - child.start_byte
            if length > self.bound or self.roles.get(child.kind_id, Role.OTHER) < Role.OTHER:
                size -= length
        self.error_bytes += size

    def _may_cut_line(self, start: int, end: int) -> bool:
        """Whether a line is so long here that it is cut before this: one short thing in eight, chosen by its text."""
        source, reach = self.source, _LONG_LINE * self.bound
        if source.rfind(b"\n", max(start - reach, 0), start) >= 0 or source.find(b"\n", start, start + reach) >= 0:
            return False
        return end - start >= _LONG_ITEM_BYTES or zlib.crc32(source[start : start + _KEY_BYTES]) % 8 == 0

    def _take_line_start(self, visit: _Visit, child: Node, role: Role, items: _Items) -> None:
        """What begins a line: something to cut before, or a comment, or a part of what precedes it."""
        if role is Role.TOKEN:
            for lead in items.leads:
                self._open(visit, items, lead, items.path)
            items.leads = []
            return
        if role is Role.BODY:
            self._push(visit, child, role, visit.depth, items.path, items)
            return
        source, start = self.source, child.start_byte
        at = source.rfind(b"\n", 0, start) + 1
        indent = start - at
        if indent and source.find(b"\t", at, start) >= 0:
            indent += 3 * source.count(b"\t", at, start)
        blank = not source[source.rfind(b"\n", 0, at - 1) + 1 : at].strip() if at else self.parts_above > 0
        place = _Place(at, indent, blank)
        if role is not Role.LEAD:
            self._take_item(visit, child, role, items, place)
            return
        if blank or not items.leads:
            items.leads.append(place)
        items.is_broken_definition = not child.is_named and child.type in _DEFINING_WORDS

    def _take_item(self, visit: _Visit, child: Node, role: Role, items: _Items, place: _Place) -> None:
        """What may be cut off, with the comments above it."""
        child, role, name = self._named(child, role)
        is_long = child.end_byte - child.start_byte > self.bound
        path = _joined(items.path, name)
        is_named = bool(name) and Role.DEFINITION <= role <= Role.ENTRY
        is_section = items.is_broken_definition or (is_named and (role is Role.DEFINITION or is_long))
        items.is_broken_definition = False
        if items.leads:
            place = self._with_leads(visit, items, place, is_section=is_section)
        is_docstring = items.first and visit.role is Role.BODY and _is_docstring(child, visit.node)
        depth = self._open(visit, items, place, path, is_section=is_section, is_named=is_named, is_long=is_long)
        items.after_docstring = is_docstring
        if role is Role.SCOPE and name:
            items.path = _joined(visit.path, name)
        if is_long:
            self._push(visit, child, role, depth + 1, path, items)

    def _with_leads(self, visit: _Visit, items: _Items, place: _Place, *, is_section: bool) -> _Place:
        """Where the comments begin that belong to the item at this place; those above them stand for themselves.

        A blank line parts a comment from a statement. It does not part a short title from the definition below it,
        but at the top of a file the comment is about the file.
        """
        end = place.at
        leads, items.leads = items.leads, []
        if not place.follows_blank:
            place = leads.pop()
        while is_section and leads and (leads[-1].at or self.parts_above) and end - leads[-1].at <= self.bound:
            place = leads.pop()
        for lead in leads:
            self._open(visit, items, lead, items.path)
        return place

    def _take_inside_line(self, visit: _Visit, child: Node, role: Role, items: _Items) -> None:
        """Something long begins in the midst of a line, as the value of a variable does."""
        child, role, name = self._named(child, role)
        # `typedef struct name {…} name;` is one thing
        is_inner = Role.DEFINITION <= visit.role <= Role.ENTRY or role > Role.ENTRY
        self._push(visit, child, role, visit.depth, items.path if is_inner else _joined(items.path, name), items)

    def _named(self, node: Node, role: Role) -> tuple[Node, Role, tuple[str, ...]]:
        """The definition, without what wraps it, with its name; without a name it is but a statement."""
        for _ in range(_MAX_WRAPPERS):
            if role is not Role.WRAPPER:
                break
            inner = ((child, self.roles.get(child.kind_id, Role.OTHER)) for child in node.named_children)
            wrapped = (found for found in inner if Role.DEFINITION <= found[1] <= Role.WRAPPER)
            node, role = next(wrapped, (node, Role.CLAUSE))
        namer = self.namers.get(node.kind_id)
        name = namer(node, self.source) if namer else ()
        return node, Role.CLAUSE if not name and Role.DEFINITION <= role <= Role.ENTRY else role, name

    def _open(
        self,
        visit: _Visit,
        items: _Items,
        place: _Place,
        path: tuple[str, ...],
        *,
        is_section: bool = False,
        is_named: bool = False,
        is_long: bool = True,
    ) -> int:
        """A gap before what begins at this place, and its depth; the gap of what else begins there stands."""
        first, items.first = items.first, False
        ended, items.after_section = items.after_section, is_section
        opens_body, items.after_docstring = items.after_docstring, False
        depth = max(
            visit.depth, place.indent if place.indent < _MAX_DEPTH // 2 else place.indent // 2 + _MAX_DEPTH // 4
        )
        if place.at in self.gaps:
            return depth
        if first and not is_section:
            if is_long:
                self.gaps[place.at] = Gap(GLUE, path, False)
            return depth
        expression = visit.expression
        if expression < 0 and not is_named and visit.role > Role.CLAUSE:
            expression = visit.depth
        blank = place.follows_blank or ended
        kind = _SECTION if is_section or opens_body else _AFTER_BLANK_LINE if blank else _PLAIN
        base = 3 * min(depth, _MAX_DEPTH) if expression < 0 else EXPRESSION + 3 * min(depth - expression, _MAX_DEPTH)
        self.gaps[place.at] = Gap(base + kind, path, is_section or ended)
        return depth

    def _push(self, visit: _Visit, child: Node, role: Role, depth: int, path: tuple[str, ...], items: _Items) -> None:
        """Look into it later, when it is long enough."""
        is_nested_body = role is Role.BODY and visit.role is Role.BODY
        if role >= Role.LEAD or (child.end_byte - child.start_byte <= self.bound and not is_nested_body):
            return
        expression = visit.expression
        if expression < 0 and role is Role.OTHER:
            expression = visit.depth
        if role is Role.BODY:
            first = items.first or not is_nested_body
            leads, items.leads, items.first = items.leads, [], False
        else:
            first, leads = role is Role.OTHER, []
        self._todo.append(_Visit(child, role, depth, expression, path, first, leads))


def _joined(path: tuple[str, ...], name: tuple[str, ...]) -> tuple[str, ...]:
    return path + name if len(path) < _MAX_PATH else path


def _is_docstring(node: Node, body: Node) -> bool:
    """Whether a statement is nothing but a string, in the body of a function; that of a class goes with its fields."""
    if node.type != "expression_statement" or body.parent is None or body.parent.type != "function_definition":
        return False
    inner = node.named_children
    return len(inner) == 1 and inner[0].type == "string"
