"""Short texts of many languages in many encodings come out right, or are marked as guessed."""

from __future__ import annotations

import codecs
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rag_pipeline.documents import clean
from rag_pipeline.documents.decoding import Decoded, decode
from rag_pipeline.nul_bytes import is_binary
from rag_pipeline_tests.bench.splitters import item_of
from rag_pipeline_tests.documents.languages import PARAGRAPHS

SIZES = (5, 20, 80, 400)
SHAPES = ("{}", "# {0}\n\nSee `README.md`, run `make install`.\n\n* {0}\n")
PAIRS = [(language, encoding) for language, (names, _) in PARAGRAPHS.items() for encoding in names.split()]


def outcome(decoded: Decoded, text: str) -> str:
    right = decoded.text == unicodedata.normalize("NFC", text)
    marked = decoded.is_guessed or bool(decoded.replaced_characters)
    return f"{'right' if right else 'wrong'} {'marked' if marked else 'unmarked'}"


def cuts(text: str, encoding: str, size: int, *, places: int) -> Iterator[str]:
    """Pieces of about so many bytes, from the beginnings of words on."""
    starts = [0, *(place + 1 for place, letter in enumerate(text) if letter in " ，。、：")]
    for start in starts[:: max(1, len(starts) // places)]:
        piece, length = "", 0
        for letter in text[start:]:
            length += len(letter.encode(encoding, "ignore"))
            if length > size:
                break
            piece += letter
        if length >= 0.6 * size:
            yield piece


def samples(language: str, encoding: str, *, places: int) -> Iterator[tuple[int, bytes, str]]:
    _, text = PARAGRAPHS[language]
    if encoding == "cp1258":  # holds the marks of tone as letters of their own
        text = "".join(
            letter if letter.encode(encoding, "ignore") else unicodedata.normalize("NFD", letter) for letter in text
        )
    for size in SIZES:
        for piece in cuts(text, encoding, size, places=places):
            for shape in SHAPES:
                content = shape.format(piece).encode(encoding, "ignore")
                if not content.isascii() or encoding.startswith("iso2022"):
                    yield size, content, content.decode(encoding)


def measured(*, places: int) -> dict[int, Counter[str]]:
    """How many samples of each size came out how."""
    table: dict[int, Counter[str]] = {size: Counter() for size in SIZES}
    for language, encoding in PAIRS:
        for size, content, text in samples(language, encoding, places=places):
            table[size][outcome(decode(content), text)] += 1
    return table


@pytest.mark.parametrize("language", PARAGRAPHS)
def test_short_texts_are_right_or_marked(language: str) -> None:
    names, _ = PARAGRAPHS[language]
    for encoding in names.split():
        for _, content, text in samples(language, encoding, places=2):
            assert outcome(decode(content), text) != "wrong unmarked", (encoding, text)


@pytest.mark.slow
def test_most_texts_are_right_and_none_is_wrong_unmarked() -> None:
    table = measured(places=12)
    for size, found in table.items():
        print(size, dict(found))
        assert not found["wrong unmarked"]
    assert sum(table[400].values()) == table[400]["right unmarked"] + table[400]["right marked"]
    assert table[80]["right unmarked"] > 0.6 * table[80].total()
    for size in (20, 80):
        assert table[size]["wrong marked"] < 0.15 * table[size].total()


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    "text", ["Hello, world.\n", "Größe: 12 cm\n", "Все люди рождаются.\nДа.\n", "设置 README\n", "설정 파일\n"]
)
def test_wide_text_without_a_mark_is_told_by_its_nuls(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert (decoded.text, decoded.encoding) == (text, encoding)


@pytest.mark.parametrize("encoding", ["koi8-r", "cp1251", "cp1253", "iso8859-7", "cp1250", "latin-1"])
def test_no_text_without_nuls_is_read_as_utf_16(encoding: str) -> None:
    for language, (names, _) in PARAGRAPHS.items():
        if encoding in names.split():
            for _, content, _ in samples(language, encoding, places=4):
                assert not decode(content).encoding.startswith("utf-16")


@pytest.mark.parametrize(
    "text", ["café", "naïve façade", "5 µm ± 1 °C", "π = 3.14", "“quoted” – yes…", "日本", "שלום", "Привет"]
)
def test_short_utf8_is_not_marked(text: str) -> None:
    assert decode(f"# Title\n\n{text}\n".encode()) == Decoded(text=f"# Title\n\n{text}\n", encoding="utf-8")


@pytest.mark.parametrize("text", ["写", "小写", "谢谢"])
def test_chinese_that_is_valid_utf8_by_chance_is_marked_unless_declared(text: str) -> None:
    content = f"# {text}\n".encode("gbk")
    content.decode("utf-8")
    assert decode(content).is_guessed
    declared = decode(f"# -*- coding: gbk -*-\n# {text}\n".encode("gbk"))
    assert (text in declared.text, declared.encoding, declared.is_guessed) == (True, "gb18030", False)


DECLARATIONS = [
    ("page.html", '<!DOCTYPE html><html><head><meta charset="{}"></head><body><p>{}</p></body></html>'),
    ("page.htm", "<html><head><META HTTP-EQUIV='Content-Type' CONTENT='text/html; charset={}'></head><p>{}</p></html>"),
    ("page.xhtml", '<?xml version="1.0" encoding="{}"?>\n<html><body><p>{}</p></body></html>'),
    ("data.xml", "<?xml version='1.0' encoding='{}'?>\n<a>{}</a>"),
    ("a.py", "#!/usr/bin/python\n# -*- coding: {} -*-\nname = '{}'\n"),
    ("b.py", "# coding={}\nname = '{}'\n"),
    ("c.rb", "# encoding: {}\nname = '{}'\n"),
    ("d.c", "/* vim: set ts=4 fileencoding={}: */\n/* {} */\n"),
    ("e.txt", "; -*- mode: text; coding: {}-unix -*-\n{}\n"),
    ("f.el", "(foo \"{1}\")\n\n;; Local Variables:\n;; mode: lisp\n;; coding: {0}\n;; End:\n"),
    ("g.adoc", "= Title\n:encoding: {}\n\n{}\n"),
    ("h.css", '@charset "{}";\n/* {} */\n'),
    ("i.po", 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\nmsgid "a"\nmsgstr "{}"\n'),
    ("j.pod", "=encoding {}\n\n=head1 {}\n"),
    ("k.tex", "\\documentclass{{article}}\n\\usepackage[{}]{{inputenc}}\n{}\n"),
    ("l.jsp", '<%@ page language="java" pageEncoding="{}"%>\n<p>{}</p>\n'),
]  # fmt: skip


@pytest.mark.parametrize(("path", "template"), DECLARATIONS)
@pytest.mark.parametrize(
    ("text", "encoding"), [("Да, это он", "koi8-r"), ("Ναι", "cp1253"), ("設定", "euc-jp"), ("é", "cp1252")]
)
def test_a_declared_encoding_is_believed_first(path: str, template: str, text: str, encoding: str) -> None:
    content = template.format(encoding, text).encode(encoding)
    document = clean(item_of(path, content))
    assert text in document.text
    assert document.metadata["encoding"] == codecs.lookup(encoding).name
    assert "guessed_encoding" not in document.metadata


@pytest.mark.parametrize(
    "label", ["latin-1", "ascii", "iso-8859-5", "windows-1251", "gbk", "utf-16", "rot13", "no-such"]
)
def test_utf8_is_utf8_whatever_is_declared(label: str) -> None:
    content = f"<html><head><meta charset={label}></head><p>Größe für dich und mich</p></html>".encode()
    document = clean(item_of("a.html", content))
    assert "Größe für dich" in document.text
    assert "encoding" not in document.metadata


@pytest.mark.parametrize("label", ["utf-8", "us-ascii-x", "shift_jis", "rot13", "unicode_escape"])
def test_a_declaration_that_the_bytes_contradict_is_not_believed(label: str) -> None:
    text = "Все люди рождаются свободными и равными в своем достоинстве и правах."
    document = clean(item_of("a.py", f"# coding: {label}\n# {text}\n".encode("koi8-r")))
    assert text in document.text


def test_latin_1_means_what_windows_makes_of_it() -> None:
    content = "<meta charset=iso-8859-1><p>“Smart” quotes – and €</p>".encode("cp1252")
    assert "“Smart” quotes – and €" in clean(item_of("a.html", content)).text


def test_the_word_of_the_source_is_believed() -> None:
    content = "Ναι, ίσως".encode("cp1253")
    for metadata in ({"declared_encoding": "windows-1253"}, {"content_type": "text/plain; charset=windows-1253"}):
        document = clean(replace(item_of("a.txt", content), metadata=metadata))
        assert (document.text, document.metadata["encoding"]) == ("Ναι, ίσως", "cp1253")


def test_a_guessed_document_says_what_was_taken() -> None:
    metadata = clean(item_of("a.txt", "Да, это".encode("koi8-r"))).metadata
    assert metadata["encoding"] == "guessed"
    assert codecs.lookup(str(metadata["guessed_encoding"]))


@pytest.mark.parametrize("before", ["", "a", "# Title\n\nSome words", "Größe und", "日本"])
def test_a_page_with_a_nul_is_still_utf8(before: str) -> None:
    decoded = decode(f"{before}\0 and some more words of a page.\n".encode())
    assert decoded == Decoded(text=f"{before} and some more words of a page.\n", encoding="utf-8")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    "text",
    ["一个简单的测试，统一编码。\n第一行 one line\n", "Old Italic \U00010300\U00010301\n" * 3, "Ā and one line more\n"],
)
def test_wide_texts_without_a_mark_may_hold_other_nuls(text: str, encoding: str) -> None:
    content = text.encode(encoding)
    assert not is_binary(content)
    assert decode(content).text == text
