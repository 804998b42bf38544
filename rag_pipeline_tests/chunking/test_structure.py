"""Where texts are cut, and what the chunks say they stand under."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.chunking.code.definitions import other_definition, python_definition
from rag_pipeline.chunking.headings import heading_words
from rag_pipeline.model import Chunk, Document
from rag_pipeline.settings import Chunking

MakeDocument = Callable[..., Document]
LIMITS = Chunking(max_tokens=40, min_tokens=8)
FILLER = "Some twenty words or so that say nothing much but fill the room that a chunk has for its text. "


def chunked(document: Document, limits: Chunking = LIMITS) -> list[Chunk]:
    return chunk_document(document, settings=limits, count_tokens=count_words)


def outline(chunks: list[Chunk]) -> list[tuple[str, tuple[str, ...]]]:
    """First line and heading path of each chunk."""
    return [(chunk.text.split("\n")[0].strip(), tuple(chunk.heading_path)) for chunk in chunks]


def test_markdown_is_cut_at_headings(make_document: MakeDocument) -> None:
    text = f"# Guide\n\n{FILLER}\n\n## Install\n{FILLER}\n\n### On *Linux*\n\n{FILLER}\n\nUse\n---\n\n{FILLER}\n"
    assert outline(chunked(make_document(text))) == [
        ("# Guide", ("Guide",)),
        ("## Install", ("Guide", "Install")),
        ("### On *Linux*", ("Guide", "Install", "On Linux")),
        ("Use", ("Guide", "Use")),
    ]


def test_a_chunk_over_several_sections_has_their_common_path(make_document: MakeDocument) -> None:
    (chunk,) = chunked(make_document("# Guide\n\n## One\n\nshort\n\n## Two\n\nshort\n"))
    assert chunk.heading_path == ("Guide",)
    (chunk,) = chunked(make_document("# Guide\n\n## One\n\nshort\n"))
    assert chunk.heading_path == ("Guide", "One")


def test_headings_in_fenced_code_are_code(make_document: MakeDocument) -> None:
    text = f"# A\n\n~~~sh\n# comment\n```\n# more\n~~~\n\n## B\n\n{FILLER}{FILLER}"
    assert chunked(make_document(text))[0].heading_path == ("A",)
    assert chunked(make_document(text))[-1].heading_path == ("A", "B")


def test_a_heading_goes_with_the_text_under_it(make_document: MakeDocument) -> None:
    text = f"{FILLER}\n\n# Chapter\n\n## Section\n\n{FILLER}{FILLER}{FILLER}"
    chunks = chunked(make_document(text))
    assert chunks[1].text.startswith("# Chapter\n\n## Section\n\nSome twenty words")


def test_rst_titles_by_order_of_their_styles(make_document: MakeDocument) -> None:
    text = f"""
====
Book
====

{FILLER}

Part
====

{FILLER}

Chapter :doc:`x`
----------------

.. note::

   {FILLER}

   Second paragraph of the note.

Next
====

Like this::

    {FILLER}

"""
    chunks = chunked(make_document(text, path="a.rst"), Chunking(max_tokens=80, min_tokens=8))
    assert outline(chunks) == [
        ("====", ("Book",)),
        ("Part", ("Book", "Part")),
        ("Chapter :doc:`x`", ("Book", "Part", "Chapter x")),
        ("Next", ("Book", "Next")),
    ]
    assert "Second paragraph" in chunks[2].text


def test_asciidoc(make_document: MakeDocument) -> None:
    text = f"= Manual\n\n{FILLER}\n\n== Part\n\n----\n== not a title\n----\n\n{FILLER}\n"
    chunks = chunked(make_document(text, path="a.adoc"))
    assert outline(chunks) == [("= Manual", ("Manual",)), ("== Part", ("Manual", "Part"))]


def test_long_paragraphs_are_cut_between_sentences(make_document: MakeDocument) -> None:
    chunks = chunked(make_document(FILLER * 8))
    assert len(chunks) > 3
    assert all(chunk.text.endswith("its text.") for chunk in chunks)


def test_list_items_and_table_rows_stay_whole(make_document: MakeDocument) -> None:
    items = [f"- item {n} of a list that is too long for one chunk\n  and goes on" for n in range(12)]
    rows = [f"| row {n} | with some cells | in it |" for n in range(12)]
    chunks = chunked(make_document("\n".join(items) + "\n\n" + "\n".join(rows)))
    assert all(chunk.text.startswith(("- item", "| row")) for chunk in chunks)
    assert all(chunk.text.endswith(("goes on", "|")) for chunk in chunks)


PYTHON = '''"""Module."""

import os


class Store:
    """Keeps things.

class NotThis:
    """

    limit = 3

    # How many there are.
    @property
    def size(self) -> int:
        total = 0
        for item in self.items:
            total += item.weight

        return total

    async def load(
        self,
        path: str,
    ) -> None:
        text = await read(path)
        self.items = [parse(line) for line in text]


def main() -> None:
    Store().load(os.environ["STORE"])
    print("a line that makes this longer", 1, 2, 3, 4, 5)
'''


def test_python_is_cut_at_definitions(make_document: MakeDocument) -> None:
    chunks = chunked(make_document(PYTHON, path="store.py", source_type="code"), Chunking(max_tokens=48, min_tokens=8))
    assert outline(chunks)[-3:] == [
        ("# How many there are.", ("Store", "size")),
        ("async def load(", ("Store", "load")),
        ("def main() -> None:", ("main",)),
    ]
    assert not any("NotThis" in chunk.heading_path for chunk in chunks)


GO = """package store

// Load reads a store.
func Load(path string) (*Store, error) {
\tif path == "" {
\t\treturn nil, errors.New("no path was given to load the store from")
\t}

\treturn read(path)
}

// Size counts.
func (s *Store) Size() int {
\tfor _, item := range s.items {
\t\ttotal += item.weight
\t}
\treturn total
}
"""


def test_other_languages_are_cut_at_definitions(make_document: MakeDocument) -> None:
    chunks = chunked(make_document(GO, path="store.go", source_type="code"))
    assert outline(chunks)[-1] == ("// Size counts.", ("Store", "Size"))
    assert chunks[-1].text.endswith("}")
    assert all(not chunk.text.startswith("}") for chunk in chunks)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("export default class Foo extends Bar {", "Foo"),
        ("export const load = async (path) => {", "load"),
        ("const x = (a + b);", None),
        ("pub(crate) async fn run<T>(x: T) {", "run"),
        ("impl<T> Display for Foo<T> {", "Display for Foo"),
        ("public static void main(String[] args) {", "main"),
        ("func (s *Store) Size() int {", "Size"),
        ("type Store struct {", "Store"),
        ("interface Props {", "Props"),
        ("CREATE TABLE IF NOT EXISTS rag.chunks (", "rag.chunks"),
        ("create or replace function f() returns int", "f"),
        ("def self.build(x)", "self.build"),
        ("if (ready(x)) {", None),
        ("} else if (x) {", None),
        ("for (const a of b) {", None),
        ("return call(function () {", None),
        ("it('works', async () => {", None),
        ("defer func() {", None),
        ("type = 5", None),
        ("object.method(x)", None),
        ("x = foo(1) {", None),
    ],
)
def test_definitions_of_other_languages(line: str, name: str | None) -> None:
    assert other_definition(line, "") == name


def test_definitions_with_the_brace_on_the_next_line() -> None:
    assert other_definition("int main(int argc, char **argv)", "{") == "main"
    assert other_definition("call(argument)", "") is None


def test_definitions_of_python() -> None:
    assert python_definition("async  def f(x):", "") == "f"
    assert python_definition("definitely(x)", "") is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("The **bold** [link](x) and `code` {#anchor}", "The bold link and code"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("Use :ref:`this <target>`", "Use this"),
        (r"A \* star", "A * star"),
        ("", ""),
    ],
)
def test_heading_words(line: str, words: str) -> None:
    assert heading_words(line) == words


@pytest.mark.parametrize(
    "sentence",
    [
        "第一句说明了安装的步骤。", "这里还有一个分句；", "他说：“真的可以这样做吗？”",
        "यह एक छोटा वाक्य है। ", "ဒါက စာကြောင်း တစ်ကြောင်း ဖြစ်သည်။ ",
        "នេះ​ជា​ប្រយោគ​មួយ។ ", "هل هذا سؤال قصير؟ ", "یہ ایک چھوٹا جملہ ہے۔ ", "ይህ አጭር ዓረፍተ ነገር ነው። ",
    ],
)  # fmt: skip
def test_long_paragraphs_are_cut_between_sentences_of_any_script(make_document: MakeDocument, sentence: str) -> None:
    def count(texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    document = make_document(sentence * 30)
    chunks = chunk_document(document, settings=Chunking(max_tokens=70, min_tokens=8), count_tokens=count)
    assert len(chunks) > 3
    assert all(chunk.text.strip().endswith(sentence.strip()) and len(chunk.text) <= 70 for chunk in chunks)
