"""One broken word of Python moves no cut beyond its own line."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.chunking.code.grammars import grammar_of
from rag_pipeline.chunking.code.mending import mended_python
from rag_pipeline.chunking.code.syntax_blocks import syntax_blocks
from rag_pipeline.lake import store
from rag_pipeline.model import Document
from rag_pipeline.settings import Chunking

MakeDocument = Callable[..., Document]
CODE = '''\
import os


class Store:
    """Keeps what it is given.

    A note on use:
        store.put(1)
    """

    def get(self, name: str) -> int:
        try:
            with self.lock(name) as held:
                return held.value
        except KeyError as missing:
            raise LookupError(name) from missing
        finally:
            self.close()

    async def put(
        self,
        value: int,
    ) -> None:
        for key in self.keys:
            if key == value:
                break
            elif key > value:
                self.more()
            else:
                self.less()
        while self.is_open:
            self.keys[1:2] = {"a": 1}


def stub() -> int: ...
'''
# A name in place of `else` or `finally` is no error: the parser reads an annotation.
HEADERS = re.compile(r"^ *(?:async (?=def))?(class|def|try|with|except|for|if|elif|while)\b", re.MULTILINE)


@pytest.mark.parametrize(
    "header", [match.span(1) for match in HEADERS.finditer(CODE)], ids=lambda span: CODE[slice(*span)]
)
def test_a_broken_header_leaves_all_blocks_as_they_were(header: tuple[int, int]) -> None:
    def places(text: str) -> list[tuple[str, int, bool]]:
        blocks = syntax_blocks(text, language="python", min_chars=20)
        assert blocks
        return [(text[b.start : b.end].replace(new, old), b.level, b.opens_section) for b in blocks]

    start, end = header
    old, new = CODE[start:end], "another"
    assert places(CODE[:start] + new + CODE[end:]) == places(CODE)


@pytest.mark.parametrize(
    ("before", "line", "keyword"),
    [
        ("try:\n    go()\n", "another ValueError:", "except"),
        ("try:\n    go()\nexcept KeyError:\n    stay()\n", "another ValueError:", "except"),
        ("go()\n\n", "another Store:", "class"),
        ("if ready:\n    go()\n\n", "another collected:", "with"),
        ("if ready:\n    go()\n", "another steady:", "elif"),
    ],
)
def test_what_stands_before_a_broken_line_says_which_keyword_it_had(before: str, line: str, keyword: str) -> None:
    grammar = grammar_of("python")
    assert grammar
    mended = mended_python(f"{before}{line}\n    pass\n".encode(), grammar.parse)
    assert mended
    assert mended[0].decode().removeprefix(before).split()[0] == keyword


JOINED = """\
from os import path
import json as parser


def routes(every, *names):
    rules = [rule for rule in names if rule is every]
    ignored = set() if every else {"HEAD", "OPTIONS"}
    if every and names or len(names) in (1, 2):
        with open(path) as file:
            return file
    return rules if ignored else names
"""
JOINING = re.compile(r"(?<=[\w)\]}] )(import|as|for|in|is|else|and|or|if)(?= [\w({\[])")


@pytest.mark.parametrize(
    "keyword", [match.span(1) for match in JOINING.finditer(JOINED)], ids=lambda span: JOINED[slice(*span)]
)
def test_a_broken_keyword_between_two_terms_is_read_as_one(keyword: tuple[int, int]) -> None:
    grammar = grammar_of("python")
    assert grammar
    start, end = keyword
    broken = (JOINED[:start] + "another" + JOINED[end:]).encode()
    assert grammar.parse(broken).root_node.has_error
    mended = mended_python(broken, grammar.parse)
    assert mended
    assert not mended[1].root_node.has_error
    assert len(mended[0]) == len(broken)


STORE = Path(store.__file__).read_text(encoding="utf-8")


def pieces(document: Document) -> list[str]:
    """The texts of its chunks, which stand where they say they do."""
    chunks = list(chunk_document(document, settings=Chunking(), count_tokens=count_words))
    assert all(document.text[chunk.start_char : chunk.end_char] == chunk.text for chunk in chunks)
    return [chunk.text for chunk in chunks]


@pytest.mark.parametrize("keyword", ["class", "def", "for", "try", "with"])
def test_a_word_shorter_than_its_keyword_moves_no_cut_either(make_document: MakeDocument, keyword: str) -> None:
    before = Counter(pieces(make_document(STORE, path="store.py", source_type="code")))
    places = [match.span(1) for match in re.finditer(rf"(?m)^ *({keyword})\b[^\n]*:$", STORE)]
    assert places
    for start, end in places:
        edited = make_document(f"{STORE[:start]}zq{STORE[end:]}", path="store.py", source_type="code")
        assert (Counter(pieces(edited)) - before).total() <= 3


def test_what_stands_behind_a_longer_keyword_is_named_where_it_stood() -> None:
    text = CODE.replace("class Store", "zq Store", 1)
    found, whole = (syntax_blocks(source, language="python", min_chars=20) for source in (text, CODE))
    assert found and whole
    moved = len(CODE) - len(text)
    assert [(block.start, block.path) for block in found] == [
        (block.start - (moved if block.start > CODE.index("class Store") else 0), block.path) for block in whole
    ]


@given(st.text(alphabet="abc\n\t :\"'#()[]{}\\.é_", max_size=200).map(str.encode))
def test_what_is_mended_parses_and_says_how_much_longer_it_is(source: bytes) -> None:
    grammar = grammar_of("python")
    assert grammar
    if mended := mended_python(source, grammar.parse):
        at, by = mended.longer_at, mended.longer_by
        assert 0 <= by == len(mended.text) - len(source)
        assert (mended.text[:at], not by or mended.text[at + by :][-8:]) == (source[:at], not by or source[at:][-8:])
        assert not mended.tree.root_node.has_error


@pytest.mark.parametrize("text", [b"x:\n" * 100_000, b"'''" + b"\\" * 500_000, b"(" * 300_000 + b"a b:"])
def test_hopeless_text_is_given_up_soon(text: bytes) -> None:
    grammar = grammar_of("python")
    assert grammar
    start = time.process_time()
    mended_python(text, grammar.parse)
    assert time.process_time() - start < 5


def test_a_new_name_of_a_long_function_changes_few_chunks(make_document: MakeDocument) -> None:
    body = "".join(f"    total = total + {n} * factors[{n}] - offset_{n}\n" for n in range(60))

    def embedded(name: str) -> Counter[str]:
        document = make_document(f"def {name}(total):\n{body}", path="sums.py", source_type="code")
        settings = Chunking(max_tokens=40, min_tokens=8)
        chunks = chunk_document(document, settings=settings, count_tokens=count_words, context="symbols")
        assert len(chunks) > 5
        assert chunks[1].context == f"{name}\n\n"
        return Counter(chunk.context + chunk.text for chunk in chunks)

    assert (embedded("add_all") - embedded("add_up")).total() <= 3
