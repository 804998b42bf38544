"""Input that wants to hurt, from bytes to chunks: nothing crashes, and no character of a document is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.documents import clean
from rag_pipeline.errors import ItemError
from rag_pipeline.settings import Chunking
from rag_pipeline_tests.bench.splitters import item_of

HOSTILE = Path(__file__).resolve().parents[3] / "shared" / "data" / "hostile"
LIMITS = Chunking(max_tokens=32, min_tokens=6)
PATHS = ("notes.md", "notes.rst", "notes.adoc", "notes.txt", "page.html", "data.json", "app.py", "app.ts", "x.yaml")
# As JSON parsers are tested: what must be refused, what may be, and what only looks wrong.
JSON_TEXTS: tuple[bytes, ...] = (
    b"", b" ", b"\xef\xbb\xbf{}", b"\xff\xfe[\x00]\x00", b"\xed\xa0\x80", b"\x00", b"[\x00]", b'["\\u0000"]',
    b'["\\ud800"]', b"[1,]", b"[,1]", b"{,}", b'{"a":}', b'{"a" "b"}',
    b"[NaN]", b"[-Infinity]", b"[1e999]", b"[-0]", b"[0123]", b"[1.]",
    b'["\xe9"]', b'["\x1f"]', b'["\\x"]', b"['a']", b"[1]x", b"[[[[", b"]]]]", b'{"a":{"a":{"a"', b"nul", b"\\u0041",
    b'{"a":1,"a":2}', b"[" * 5_000 + b"]" * 5_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b'"' + b"\\" * 9_999,
    b"[" + b"1," * 9_999 + b"1]", b'["' + b"a" * 99_999 + b'"]', b"/* c */ {}", b"{'a': 1}", b"\xf4\x90\x80\x80",
    b"\xc0\xaf",
)  # fmt: skip


def assert_covered(path: str, content: bytes) -> None:
    """Every character that is not white space is in exactly one chunk, in order."""
    try:
        document = clean(item_of(path, content))
    except ItemError:  # refused with words, and quarantined
        return
    chunks = chunk_document(document, settings=LIMITS, count_tokens=count_words)
    assert all(chunk.text == document.text[chunk.start_char : chunk.end_char] for chunk in chunks)
    kept = "".join("".join(chunk.text.split()) for chunk in chunks)
    assert kept == "".join(document.text.split())


@pytest.mark.parametrize("path", ["data.json", "note.ipynb", "notes.md", "app.py"])
def test_hostile_json(path: str) -> None:
    for content in JSON_TEXTS:
        assert_covered(path, content)


@pytest.mark.skipif(not HOSTILE.is_dir(), reason="the hostile texts are not here")
@pytest.mark.parametrize("path", PATHS)
def test_naughty_strings_and_commonmark_examples(path: str) -> None:
    for text in _texts():
        assert_covered(path, text.encode("utf-8", "surrogatepass"))
    assert_covered(path, "\n\n".join(_texts()).encode("utf-8", "surrogatepass"))


def _texts() -> Iterator[str]:
    yield from json.loads((HOSTILE / "blns" / "blns.json").read_text(encoding="utf-8"))
    for example in json.loads((HOSTILE / "commonmark-spec" / "spec_tests.json").read_text(encoding="utf-8")):
        yield example["markdown"]
