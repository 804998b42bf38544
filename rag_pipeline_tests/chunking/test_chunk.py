"""What holds for the chunks of every document, whatever its text."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.chunking import TokenCounter, chunk_document, count_words
from rag_pipeline.model import Chunk, Document, chunk_id, text_hash
from rag_pipeline.settings import Chunking

MakeDocument = Callable[..., Document]

SMALL = Chunking(max_tokens=16, min_tokens=4)
KINDS = [
    ("a.md", "docs"), ("a.rst", "docs"), ("a.adoc", "docs"), ("a.txt", "docs"), ("a.html", "docs"), (None, "drop"),
    ("a.ipynb", "code"), ("a.py", "code"), ("a.go", "code"), ("a.yaml", "code"),
]  # fmt: skip
PIECES = st.sampled_from(
    [
        "# Head\n", "## Sub `x`\n", "===\n", "----\n", "\n", "\n\n", "- item\n", "1. one\n", "```\n", "    ", "\t",
        "| a | b |\n", ".. note::\n", "Example::\n\n", "= Doc\n", "def f(x):\n", "class A:\n", "}\n", "// c\n",
        "@deco\n", "func (r *T) F() {\n", '"""', "A sentence. ", "Another one! ", "漢字。", "word ", "x" * 90,
        "\u2028", "\xa0", "e\u0301", "[](", "\n   \n",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=200)


def count_bytes(texts: Sequence[str]) -> list[int]:
    """A tokenizer with more than one token per character."""
    return [len(text.encode()) for text in texts]


def count_more_together(texts: Sequence[str]) -> list[int]:
    """A tokenizer for which the whole is more than its parts."""
    return [n + len(text) // 20 for n, text in zip(count_words(texts), texts, strict=True)]


def assert_sound(document: Document, chunks: Sequence[Chunk], *, limits: Chunking, count_tokens: TokenCounter) -> None:
    """Slices, order, coverage, sizes and identities."""
    text = document.text
    covered = 0
    for position, chunk in enumerate(chunks):
        assert chunk.position == position
        assert chunk.text == text[chunk.start_char : chunk.end_char]
        assert chunk.text.strip()
        assert chunk.text == chunk.text.rstrip()
        assert chunk.text.split("\n", 1)[0].strip()
        assert not text[covered : chunk.start_char].strip(), "a character lies in no chunk"
        assert chunk.start_char >= covered, "a character lies in two chunks"
        covered = chunk.end_char
        assert chunk.tokens == count_tokens([chunk.text])[0]
        assert chunk.tokens <= limits.max_tokens or len(chunk.text) == 1
        assert chunk.start_line == text.count("\n", 0, chunk.start_char) + 1
        assert chunk.end_line == text.count("\n", 0, chunk.end_char - 1) + 1
        assert chunk.text_hash == text_hash(chunk.text)
        assert (chunk.tenant, chunk.document_id) == (document.tenant, document.document_id)
    assert not text[covered:].strip(), "the end lies in no chunk"
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=TEXTS, kind=st.sampled_from(KINDS), counter=st.sampled_from([count_words, count_bytes, count_more_together])
)
def test_any_text_is_covered_by_chunks_that_fit(
    make_document: MakeDocument, text: str, kind: tuple[str, str], counter: TokenCounter
) -> None:
    document = make_document(text, path=kind[0], source_type=kind[1])
    chunks = chunk_document(document, settings=SMALL, count_tokens=counter)
    assert_sound(document, chunks, limits=SMALL, count_tokens=counter)
    assert chunks == chunk_document(document, settings=SMALL, count_tokens=counter)


@pytest.mark.parametrize("limits", [SMALL, Chunking(), Chunking(max_tokens=64, min_tokens=0)])
def test_this_repository_is_covered(make_document: MakeDocument, limits: Chunking) -> None:
    folder = Path(__file__).parents[1]
    paths = sorted(folder.glob("chunking/*.py")) + sorted(folder.parent.glob("*.toml"))
    assert paths
    for path in paths:
        document = make_document(path.read_text(encoding="utf-8"), path=path.name, source_type="code")
        chunks = chunk_document(document, settings=limits, count_tokens=count_words)
        assert_sound(document, chunks, limits=limits, count_tokens=count_words)


@pytest.mark.parametrize("text", ["", " ", "\n\n\t \n", "\u2028\xa0"])
def test_no_words_no_chunks(make_document: MakeDocument, text: str) -> None:
    assert chunk_document(make_document(text), settings=SMALL, count_tokens=count_words) == []


def test_a_tombstone_has_no_chunks(make_document: MakeDocument) -> None:
    assert chunk_document(make_document("", deleted=True), settings=SMALL, count_tokens=count_words) == []


def test_equal_texts_are_told_apart_by_occurrence(make_document: MakeDocument) -> None:
    paragraph = "one two three four five six seven eight nine ten eleven twelve\n\n"
    document = make_document(paragraph * 3)
    chunks = chunk_document(document, settings=SMALL, count_tokens=count_words)
    assert [chunk.chunk_id for chunk in chunks] == [
        chunk_id(document.document_id, paragraph.strip(), occurrence) for occurrence in range(3)
    ]


def test_lines_are_the_sources(make_document: MakeDocument) -> None:
    document = make_document("first\n\nsecond\nthird", source_lines=[7, 8, 9, 12])
    (chunk,) = chunk_document(document, settings=SMALL, count_tokens=count_words)
    assert (chunk.start_line, chunk.end_line) == (7, 12)
    notebook = make_document("first\n\nsecond\nthird", source_lines=[1] * 4)
    (chunk,) = chunk_document(notebook, settings=SMALL, count_tokens=count_words)
    assert (chunk.start_line, chunk.end_line) == (1, 1)


def test_small_chunks_are_the_exception(make_document: MakeDocument) -> None:
    sections = [
        f"## Part {n}\n\nShort text number {n}.\n\n" + f"Some more words on {n}. " * (n % 9) for n in range(200)
    ]
    limits = Chunking(max_tokens=100, min_tokens=24)
    chunks = chunk_document(make_document("\n\n".join(sections)), settings=limits, count_tokens=count_words)
    sizes = Counter(chunk.tokens < limits.min_tokens for chunk in chunks)
    assert sizes[True] <= len(chunks) // 20
    assert sum(chunk.tokens for chunk in chunks) / len(chunks) > limits.max_tokens / 2


@pytest.mark.parametrize("path", ["a.md", "a.rst", "a.py", "a.js"])
@pytest.mark.parametrize(
    "text",
    [
        "word " * 100_000,
        pytest.param("word " * 400_000, marks=pytest.mark.slow),
        "x" * 2_000_000,
        "a" + " " * 2_000_000 + "b",
        "a" + "\n" * 1_000_000 + "b",
        "[" * 100_000 + "]" * 100_000,
        "\n".join(" " * min(n, 300) + f"class A{n}:" for n in range(3000)),
        "- x\n" * 50_000,
        "# a\n" * 50_000,
        "漢字仮名" * 100_000,
        "`" * 300_000 + "\n" + "```\n" * 10_000,
        "[a](" * 50_000 + "\n" + "# " + "*_" * 50_000,
    ],
    ids=[
        "words",
        "many words",
        "one word",
        "spaces",
        "newlines",
        "brackets",
        "nested",
        "items",
        "headings",
        "cjk",
        "fences",
        "links",
    ],
)
def test_hostile_texts_take_seconds(make_document: MakeDocument, path: str, text: str) -> None:
    document = make_document(text, path=path, source_type="docs" if path in ("a.md", "a.rst") else "code")
    started = time.process_time()
    chunks = chunk_document(document, settings=Chunking(), count_tokens=count_words)
    assert time.process_time() - started < 20
    assert max(chunk.tokens for chunk in chunks) <= 200
    assert max(len(chunk.text) for chunk in chunks) <= 200 * 16
    kept = "".join("".join(chunk.text.split()) for chunk in chunks)
    assert kept == "".join(text.split())
