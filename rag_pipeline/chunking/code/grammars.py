"""Grammars and their parsers: loaded when first asked for, and kept for the life of the process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import import_module
from threading import Lock

from tree_sitter import Language, Parser, Tree

from rag_pipeline.chunking.code.languages import LANGUAGES, Syntax
from rag_pipeline.chunking.code.mending import Mender
from rag_pipeline.chunking.code.names import Namer

_BUDGET_STEPS = 10_000
_BYTES_PER_STEP = 16
"""A sane text takes a step (100 operations of the parser, or a read) for 50 to 400 bytes, a hopeless one ever more.

Steps and not seconds are counted, so that the same text always gives the same tree.
"""
_READ_BYTES = 4096
"""A lexer that looks for the end of a string again and again reads again and again."""

_OPENERS = frozenset(["(", "[", "{", ":", "do", "then", "begin", "BEGIN"])
_CLOSERS = frozenset([")", "]", "}", ";", "};", "end", "END", "fi", "done", "esac", "#endif"])
_CLAUSE_ENDINGS = ("_statement", "_clause", "_case", "_arm", "_section", "_label", "_entry", "_alternative", "_rule")
_ATOMS = ("string", "comment", "heredoc", "regex", "template_literal", "scalar")
_NO_ATOMS = ("concatenated_string", "chained_string", "string_array", "heredoc_redirect")


class Role(IntEnum):
    """What a node is to the cuts; in such an order that comparing tells apart what is often asked for."""

    BODY = 0
    """Holds statements, members or entries, which may each begin a chunk."""
    CLAUSE = 1
    """A statement, or a part of one, that may hold bodies and further clauses."""
    DEFINITION = 2
    """Names what it holds, and begins a section."""
    ENTRY = 3
    """Names what it holds, and begins a section when it is long."""
    WRAPPER = 4
    """Adds decorators or modifiers to the one definition in it."""
    SCOPE = 5
    """Names what follows it, to the end of the body that it stands in."""
    OTHER = 6
    """An expression, or a part of one."""
    SPLICE = 7
    """Holds what might as well stand in its place, as conditional compilation and syntax errors do."""
    LEAD = 8
    """A comment, decorator, attribute or word that belongs to what follows it."""
    ATOM = 9
    """Text that is never looked into."""
    TOKEN = 10
    """A bracket or the like: it stays with what precedes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """A language's parser, and what its nodes are."""

    parser: Parser
    roles: Mapping[int, Role]
    """By kind of node; what is missing is a syntax error."""
    namers: Mapping[int, Namer]
    """By kind of node, for those that name what they hold."""
    lock: Lock
    """A parser does one thing at a time."""
    is_data: bool
    """Whether lines may be as long as they like."""
    too_deep: re.Pattern[bytes] | None
    """What the parser cannot be given."""
    restarts: re.Pattern[bytes] | None
    """Where a definition begins whatever is broken above it; None where the parser finds its way by itself."""
    mended: Mender | None
    """Finds what a broken text may have meant."""

    def parse(self, source: bytes) -> Tree | None:
        """The syntax tree of UTF-8 text; None when the parser gets lost in it, which depends on the text alone."""
        if self.too_deep is not None and self.too_deep.search(source):
            return None
        budget = _BUDGET_STEPS + len(source) // _BYTES_PER_STEP
        steps = 0

        def read(offset: int, _point: object) -> bytes:
            nonlocal steps
            steps += 1
            return b"" if steps > budget else source[offset : offset + _READ_BYTES]

        def is_lost(_offset: int, _has_error: bool) -> bool:
            nonlocal steps
            steps += 1
            return steps > budget

        with self.lock:
            try:
                tree = self.parser.parse(read, progress_callback=is_lost)
            except ValueError:
                self.parser.reset()  # or the next parse would go on with this one
                return None
        return None if steps > budget else tree


@cache
def grammar_of(language: str) -> Grammar | None:
    """The grammar for a language as cleaning names it; None where there is none."""
    syntax = LANGUAGES.get(language)
    if syntax is None:
        return None
    loaded = Language(getattr(import_module(syntax.module), syntax.factory)())
    kinds = {kind: loaded.node_kind_for_id(kind) or "" for kind in range(loaded.node_kind_count)}
    roles = {kind: _role(name, syntax, is_named=loaded.node_kind_is_named(kind)) for kind, name in kinds.items()}
    namers = {**syntax.definitions, **syntax.entries, **syntax.scopes}
    return Grammar(
        parser=Parser(loaded),
        roles=roles,
        namers={kind: namers[name] for kind, name in kinds.items() if name in namers and roles[kind] != Role.LEAD},
        lock=Lock(),
        is_data=syntax.is_data,
        too_deep=syntax.too_deep,
        restarts=syntax.restarts,
        mended=syntax.mended,
    )


def _role(name: str, syntax: Syntax, *, is_named: bool) -> Role:
    if not is_named:
        return Role.TOKEN if name in _OPENERS or name in _CLOSERS else Role.LEAD
    listed = {
        Role.BODY: syntax.bodies, Role.CLAUSE: syntax.clauses, Role.DEFINITION: syntax.definitions,
        Role.ENTRY: syntax.entries, Role.WRAPPER: syntax.wrappers, Role.SCOPE: syntax.scopes,
        Role.SPLICE: syntax.splices, Role.LEAD: syntax.leads, Role.TOKEN: syntax.tokens,
    }  # fmt: skip
    for role, names in listed.items():
        if name in names:
            return role
    if "comment" in name:
        return Role.LEAD
    if name not in _NO_ATOMS and any(part in name for part in _ATOMS):
        return Role.ATOM
    return Role.CLAUSE if name.endswith(_CLAUSE_ENDINGS) else Role.OTHER
