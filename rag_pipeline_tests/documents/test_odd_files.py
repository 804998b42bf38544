"""One odd file stops nothing: what is empty on purpose says so, and every text leaves cleaning in NFC."""

from __future__ import annotations

from unicodedata import is_normalized

import pytest

from rag_pipeline.documents import clean
from rag_pipeline.lake.schemas import dump_metadata
from rag_pipeline.settings import GitLimits
from rag_pipeline.sources.git.file_kinds import kind_of, skip_by_content
from rag_pipeline_tests.bench.splitters import item_of

LICENCE = (
    "# Licensed to the Apache Software Foundation (ASF) under one or more contributor license agreements.\n"
    "# Licensed under the Apache License, Version 2.0 (the \"License\"); you may not use this file except in\n"
    "# compliance with the License.\n"
)  # fmt: skip
PICTURE = b"![logo](data:image/png;base64," + b"iVBORw0KGgo" * 15_000 + b")\n"


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("pkg/__init__.py", LICENCE, "licence only"),
        ("docs/_index.md", "---\ntitle: Guides\n---\n", "front matter only"),
    ],
)
def test_what_is_empty_on_purpose_says_so(path: str, text: str, why: str) -> None:
    document = clean(item_of(path, text.encode()))
    assert not document.text.strip()
    assert document.metadata["skipped"] == why


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", "e<b></b>\u0301 and [e](http://x.y)\u0301 and e<!-- x -->\u0301"),
        ("a.rst", ":ref:`e`\u0301 and :sub:`=`\u0338"),
        ("a.adoc", "= A\n\nlink:u[e]\u0301"),
    ],
)
def test_an_accent_finds_its_letter_when_markup_is_gone(path: str, text: str) -> None:
    assert is_normalized("NFC", clean(item_of(path, text.encode())).text)


def test_a_number_that_python_cannot_write_stays_as_text() -> None:
    document = clean(item_of("a.md", f"---\nhash: 0x{'f' * 4000}\n---\nwords\n".encode()))
    assert dump_metadata(document.metadata)
    assert document.text.strip() == "words"


@pytest.mark.parametrize("value", ["!!bool maybe", "!!float ''", "!!int ''", "!!timestamp x", "!!python/object:a.b {}"])
def test_front_matter_that_yaml_cannot_read_is_broken(value: str) -> None:
    document = clean(item_of("a.md", f"---\ntitle: Odd\ndraft: {value}\n---\nwords\n".encode()))
    assert document.text.strip() == "words" and "front_matter" not in document.metadata
    assert document.metadata["broken_front_matter"]


def test_a_page_with_a_picture_written_out_is_not_minified() -> None:
    kind = kind_of("README.md")
    assert kind is not None
    page = b"# Title\n" + b"Some words.\n" * 40
    assert skip_by_content(page + PICTURE, kind=kind, generated=None, limits=GitLimits()) is None
    assert skip_by_content(b"x" * 200_000, kind=kind, generated=None, limits=GitLimits()) == "minified"
