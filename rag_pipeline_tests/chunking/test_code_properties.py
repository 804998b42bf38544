"""What holds for code whatever happens to it: coverage, locality, and time."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.chunking.code import code_blocks
from rag_pipeline.chunking.code.grammars import grammar_of
from rag_pipeline.chunking.code.languages import LANGUAGES
from rag_pipeline.model import Document
from rag_pipeline.settings import Chunking
from rag_pipeline_tests.chunking.conftest import layout
from rag_pipeline_tests.chunking.test_chunk import assert_sound
from rag_pipeline_tests.chunking.test_code import SAMPLES

MakeDocument = Callable[..., Document]

SMALL = Chunking(max_tokens=40, min_tokens=6)
HOSTILE = st.sampled_from(
    [
        "", "{", "}", "((", "'", '"""', "`", "/*", "#", "<<EOF\n", "\n", "\n\n", "    ", "\t", "\0", "\r\n", "é",
        "漢字",
        "\u2028", "\ud800", "😀", "def ", "class X {", "end\n", "- a: b\n", "\ufeff", ";;", "@x\n", "x" * 300, "\\",
    ]
)  # fmt: skip


@st.composite
def damaged_code(draw: st.DrawFn) -> tuple[str, str]:
    """A sample's name, and its text after some cuts and insertions."""
    name = draw(st.sampled_from(sorted(SAMPLES)))
    text = SAMPLES[name].read_text(encoding="utf-8")
    for _ in range(draw(st.integers(0, 4))):
        at, gone = draw(st.integers(0, len(text))), draw(st.integers(0, 60))
        text = text[:at] + draw(HOSTILE) + text[at + gone :]
    return name, text


def test_comments_above_a_definition_begin_its_block_whatever_ended_among_them() -> None:
    text = "class A {\n    int f() {\n    }\n    // about g\n@Mark\nclass B {\n    int g;\n}\n"
    blocks = code_blocks(text, language=None, max_tokens=4)
    assert "".join(text[block.start : block.end] for block in blocks) == text


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(code=damaged_code())
def test_damaged_code_is_covered_by_chunks_that_fit(make_document: MakeDocument, code: tuple[str, str]) -> None:
    name, text = code
    blocks = code_blocks(text, language=layout(name, "code")[1], max_tokens=SMALL.max_tokens)
    assert "".join(text[block.start : block.end] for block in blocks) == text
    assert all(0 <= block.level <= 500 for block in blocks)
    document = make_document(text, path=name, source_type="code")
    chunks = chunk_document(document, settings=SMALL, count_tokens=count_words)
    assert_sound(document, chunks, limits=SMALL, count_tokens=count_words)


def changed(before: Document, text: str) -> int:
    """How many chunk texts would have to be embedded anew."""
    old, new = (
        Counter(c.text for c in chunk_document(document, settings=Chunking(), count_tokens=count_words))
        for document in (before, replace(before, text=text))
    )
    return sum((new - old).values())


def has_error(text: str, language: str) -> bool:
    grammar = grammar_of(language)
    tree = grammar.parse(text.encode()) if grammar else None
    return tree is None or tree.root_node.has_error


@pytest.mark.parametrize("name", SAMPLES)
def test_one_word_edits_stay_local(make_document: MakeDocument, name: str) -> None:
    rng = random.Random(name)
    text = SAMPLES[name].read_text(encoding="utf-8")
    document = make_document(text, path=name, source_type="code")
    words = list(re.finditer(r"[A-Za-z]{3,}", text))
    counts = []
    for _ in range(60):
        word = rng.choice(words)
        new = rng.choice(["", "zebra", "configuration flag", "x"])
        edited = text[: word.start()] + new + text[word.end() :]
        if not has_error(edited, document.language or ""):
            counts.append(changed(document, edited))
    assert max(counts) <= 4, "a word may be a keyword, and what is left be another program"
    assert sum(counts) / len(counts) <= 1.5


def functions(count: int) -> list[str]:
    """Functions of Python of various lengths."""
    rng = random.Random(count)
    return [
        f"def step_{n}(value):\n    " + "\n    ".join(f"value = change_{n}_{i}(value, {i})" for i in range(size))
        for n, size in enumerate(rng.choices(range(2, 40), k=count))
    ]


@pytest.mark.parametrize("at", [0, 7, 20, 39])
def test_a_function_put_in_or_taken_out_changes_few_chunks(make_document: MakeDocument, at: int) -> None:
    parts = functions(40)
    document = make_document("\n\n\n".join(parts), path="steps.py", source_type="code")
    new = 'def new(value):\n    """Say something about it."""\n    return print(value)'
    assert changed(document, "\n\n\n".join([*parts[:at], new, *parts[at:]])) <= 3
    assert changed(document, "\n\n\n".join([*parts[:at], *parts[at + 1 :]])) <= 3


@pytest.mark.parametrize("word", ["def", "class", "try", "return"])
def test_a_syntax_error_does_not_reach_far(make_document: MakeDocument, word: str) -> None:
    parts = [
        f"class Step{n}:\n    def run(self, value):\n        try:\n            value = change_{n}(value, {n})\n"
        f"        finally:\n            self.value = value\n        return {list(range(n, n + 40))}\n\n"
        f"    def stop(self):\n        return value_{n}"
        for n in range(30)
    ]
    document = make_document("\n\n\n".join(parts), path="steps.py", source_type="code")
    broken = parts[12].replace(word, "zebra", 1)
    assert changed(document, "\n\n\n".join([*parts[:12], broken, *parts[13:]])) <= 4


@pytest.mark.parametrize("language", sorted(LANGUAGES))
@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000 + "]" * 50_000,
        '{"a":' * 30_000,
        "- " * 2_000 + "a",
        "\n".join(" " * n + "a:" for n in range(600)),
        "a = b + c * f(d, 'e'); " * 20_000,
        "def f():\n\0 return 1\n" * 500,
        'x = """abc\n' + "def f(): pass\n" * 5_000,
        "if (a) " * 10_000,
        "\\" * 50_000,
    ],
    ids=["brackets", "objects", "items", "indented", "one line", "nulls", "string", "ifs", "escapes"],
)
def test_hostile_code_takes_seconds(language: str, text: str) -> None:
    started = time.process_time()
    blocks = code_blocks(text, language=language, max_tokens=200)
    assert time.process_time() - started < 10
    assert "".join(text[block.start : block.end] for block in blocks) == text
