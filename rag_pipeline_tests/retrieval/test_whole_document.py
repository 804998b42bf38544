"""A document put together from its chunks is the document that was cut."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.chunking.chunk import chunk_document
from rag_pipeline.embedding.tokens import count_word_pieces
from rag_pipeline.errors import SourceNotFound
from rag_pipeline.index.database import Connection
from rag_pipeline.model import Chunk, Document, document_id
from rag_pipeline.retrieval.reader import reading
from rag_pipeline.retrieval.whole_document import Piece, put_together, read_document
from rag_pipeline.serving.mcp_results import page_end
from rag_pipeline.settings import Chunking
from rag_pipeline_tests.knowledge import entry, thread_entry, write

MOMENT = datetime(2024, 5, 1, tzinfo=UTC)
CODE = "import os\n\n\ndef one():\n    return 1\n\n\nclass Two:\n    def three(self):\n\n        return os\n" * 12
PROSE = "# A guide\n\nFirst words. More of them.\n\n## Inside\n\n- one\n- two\n\n    indented\n\n\n\nThe end.\n" * 12


def document(text: str, **what: object) -> Document:
    return Document(
        tenant="acme", document_id=document_id(tenant="acme", source_type="docs", source_id="a"), source_type="docs",
        source_id="a", repository="r", day=date(2024, 5, 1), source_updated_at=MOMENT, observed_at=MOMENT, text=text,
        **what,  # type: ignore[arg-type]
    )  # fmt: skip


def pieces_of(chunks: list[Chunk]) -> list[Piece]:
    return [
        Piece(text=c.text, start_char=c.start_char, start_line=c.start_line, end_line=c.end_line)
        for c in sorted(chunks, key=lambda c: (c.start_char, c.position))
    ]


@pytest.mark.parametrize("overlap", [0, 12])
@pytest.mark.parametrize(
    ("text", "markup", "language"), [(CODE, "code", "python"), (PROSE, "markdown", None), (PROSE, "text", None)]
)
def test_real_chunks_give_their_text_back_line_by_line(text, markup, language, overlap):
    settings = Chunking(max_tokens=60, min_tokens=10, overlap_tokens=overlap)
    chunks = chunk_document(
        document(text, markup=markup, language=language), settings=settings, count_tokens=count_word_pieces
    )
    assert len(chunks) > 3
    whole = put_together(pieces_of(list(chunks)))
    assert whole.text == text.strip("\n")
    lines = text.splitlines()
    for number in range(1, len(lines) + 1):
        at = whole.offset_of(number)
        if lines[number - 1].strip():
            assert whole.text[at:].startswith(lines[number - 1])
            assert whole.line_at(at) == number


@given(
    words=st.lists(st.sampled_from(["word", "zwei\n", "\n", " ", "  x", "é", "\n\n"]), min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    overlap=st.integers(0, 5),
)
def test_overlapping_pieces_without_gaps_give_the_text_back(words, cuts, overlap):
    text = "".join(words)
    bounds = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = []
    for start, end in pairwise(bounds):
        begin = max(0, start - overlap)
        line = text.count("\n", 0, begin) + 1
        piece = text[begin:end]
        pieces.append(Piece(text=piece, start_char=begin, start_line=line, end_line=line + piece.count("\n")))
    whole = put_together(pieces)
    assert whole.text == text
    assert whole.offset_of(10**6) == len(text)
    for offset in range(len(text)):
        assert whole.line_at(offset) == text.count("\n", 0, offset) + 1


def test_nothing_is_a_text_too():
    whole = put_together([])
    assert (whole.text, whole.line_at(0), whole.offset_of(3)) == ("", 1, 0)


@given(st.text(alphabet="ab\n", max_size=80), st.integers(1, 20))
def test_pages_follow_each_other_without_a_gap(text, max_chars):
    pages, start = [], 0
    while start < len(text):
        end = page_end(text, start, max_chars=max_chars)
        assert start < end <= start + max_chars
        pages.append(text[start:end])
        start = end
    assert "".join(pages) == text


def test_a_document_has_many_names(connection: Connection):
    write(
        connection,
        entry("guide.md", "first", "second", title="A guide", repository="handbook"),
        entry("guide.md", "another", repository="wiki"),
        entry("only.md", "hidden", repository="secret", scope="user:ada"),
        thread_entry(7, "the thread"),
    )
    guide = entry("guide.md", repository="handbook").document

    def read(name: str, *scopes: str) -> str:
        with reading(connection, tenant="acme", scopes=scopes):
            return read_document(connection, name, tenant="acme").content.text

    for name in (str(guide.document_id), "handbook:guide.md", "handbook:guide.md:1-3"):
        assert read(name) == "first\n\nsecond"
    assert read("acme/app#7") == read("https://example.org/#7") == "the thread"
    for name in ("guide.md", "guide.md:1-9", "https://example.org/guide.md#L1-L3"):
        with pytest.raises(SourceNotFound, match="names several documents: give the document_id") as refused:
            read(name)
        assert str(guide.document_id) in str(refused.value)
    assert read("only.md", "user:ada") == "hidden"
    for name in ("only.md", "nothing", "'; DROP TABLE rag.documents; --", "%", "guide"):
        with pytest.raises(SourceNotFound, match="no document is named"):
            read(name)


def test_what_was_deleted_or_is_anothers_has_no_name(connection: Connection):
    theirs = entry("plan.md", "theirs", tenant="globex").document
    write(connection, entry("gone.md", "words"), entry("plan.md", "theirs", tenant="globex"))
    write(connection, entry("gone.md", deleted=True, at=2))
    for name in ("gone.md", "plan.md", "handbook:plan.md", str(theirs.document_id), "https://example.org/plan.md"):
        with reading(connection, tenant="acme"), pytest.raises(SourceNotFound, match="no document is named"):
            read_document(connection, name, tenant="acme")
