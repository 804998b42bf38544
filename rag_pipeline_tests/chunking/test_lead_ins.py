"""What says nothing alone stays with what it leads to."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.documents.asciidoc import extract_asciidoc
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.html_text import extract_html
from rag_pipeline.documents.markdown import extract_markdown
from rag_pipeline.documents.rst import extract_rst
from rag_pipeline.model import Document
from rag_pipeline.settings import Chunking

MakeDocument = Callable[..., Document]
LIMITS = Chunking(max_tokens=60, min_tokens=8)


def prose(rng: random.Random, words: int) -> str:
    """Sentences of so many words."""
    some = ["adapter", "binding", "channel", "decoder", "element", "fixture", "gateway", "handler", "journal"]
    return " ".join(f"{' '.join(rng.choices(some, k=7)).capitalize()} it is." for _ in range(max(1, words // 9)))


def code(rng: random.Random, words: int) -> str:
    return "\n".join(f"{rng.choice('abcdef')}{n} = {rng.choice('xyz')}" for n in range(max(1, words // 3)))


LEAD_INS: dict[str, tuple[Callable[[str], Extract], str]] = {
    "heading": (extract_markdown, "\n\n## LEAD\n\n{prose}"),
    "heading above code": (extract_markdown, "\n\n## LEAD\n\n```python\n{code}\n```"),
    "colon above code": (extract_markdown, "\n\nAs in this LEAD:\n\n```python\n{code}\n```"),
    "label": (extract_markdown, "\n\n**LEAD**\n\n{prose}"),
    "item above its code": (extract_markdown, "\n\n- The LEAD:\n\n  ```python\n  {code}\n  ```"),
    "rule": (extract_markdown, "\n\n## LEAD\n\n---\n\n{prose}"),
    "object with its type": (
        extract_rst,
        "\n\n.. confval:: LEAD\n   :type: ``str``\n   :default: ``'.'``\n\n   {prose}",
    ),
    "versionadded": (extract_rst, "\n\n.. versionadded:: 1.2\n\n   {prose}"),
    "deprecated": (extract_rst, "\n\n.. deprecated:: LEAD\n\n   {prose}"),
    "admonition": (extract_rst, "\n\n.. note::\n\n   {prose}"),
    "parameters": (extract_rst, "\n\nLEAD\n\n    {prose}"),
    "signature": (extract_rst, "\n\n.. py:function:: LEAD(x, y)\n\n   {prose}"),
    "literal": (extract_rst, "\n\nThis LEAD::\n\n    {code}"),
    "AsciiDoc title": (extract_asciidoc, "\n\n.LEAD\n----\n{code}\n----"),
    "AsciiDoc admonition": (extract_asciidoc, "\n\n[NOTE]\n====\n{prose}\n===="),
    "HTML heading": (extract_html, "<h3>LEAD</h3><p>{prose}</p>"),
    "HTML summary": (extract_html, "<details><summary>LEAD</summary><p>{prose}</p></details>"),
    "HTML term": (extract_html, "<dl><dt>LEAD:</dt><dd><pre>{code}</pre></dd></dl>"),
}


@pytest.mark.parametrize("kind", LEAD_INS)
def test_no_chunk_is_a_lead_in_alone(make_document: MakeDocument, kind: str) -> None:
    extract, lead_in = LEAD_INS[kind]
    rng = random.Random(kind)
    wrapped = ("<p>{}</p>" if extract is extract_html else "\n\n{}").format
    for size in range(18, 58, 3):
        text = wrapped(prose(rng, 50))
        for _ in range(3):
            text += lead_in.format(prose=prose(rng, size), code=code(rng, size).replace("\n", "\n    "))
            text += wrapped(prose(rng, rng.choice([9, 45])))
        made = extract(text)
        document = make_document(made.text, markup=made.markup)
        for chunk in chunk_document(document, settings=LIMITS, count_tokens=count_words):
            assert " it is." in chunk.text or " = " in chunk.text, (chunk.text, size)


@pytest.mark.parametrize("label", ["## Empty", "Returns:", "New in version 1.2:", "## One\n\n## Two"])
def test_a_lead_in_at_the_end_stays_with_what_stands_above(make_document: MakeDocument, label: str) -> None:
    document = make_document(f"{prose(random.Random(1), 54)}\n\n{label}\n")
    chunks = chunk_document(document, settings=Chunking(max_tokens=56, min_tokens=8), count_tokens=count_words)
    assert len(chunks) == 2
    assert chunks[-1].text.endswith(label)
    assert chunks[-1].tokens > 10


def test_items_and_sentences_are_no_lead_ins(make_document: MakeDocument) -> None:
    items = "\n".join(f"- item {number}:" for number in range(40))
    chunks = chunk_document(make_document(f"{items}\n"), settings=LIMITS, count_tokens=count_words)
    assert all(chunk.text.startswith("- item") for chunk in chunks)
