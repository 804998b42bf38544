"""Bytes of any encoding become text that PostgreSQL takes."""

from __future__ import annotations

import codecs
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.documents import clean
from rag_pipeline.documents.decoding import decode, plain_lines, plain_text
from rag_pipeline_tests.bench.splitters import item_of


@given(st.binary(max_size=400))
def test_any_bytes_become_storable_text(content: bytes) -> None:
    text = decode(content).text
    text.encode("utf-8")
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in text if c not in "\n\t")
    assert "\ufeff" not in text[:1]


@given(st.text(max_size=200))
def test_utf8_loses_nothing_but_controls(text: str) -> None:
    decoded = decode(plain_text(text).encode())
    assert decoded.text == plain_text(text).removeprefix("\ufeff")
    assert (decoded.encoding, decoded.replaced_characters) == ("utf-8", 0)


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (codecs.BOM_UTF8 + "größe".encode(), "utf-8"),
        ("größe".encode("utf-16"), "utf-16"),
        (codecs.BOM_UTF16_BE + "größe".encode("utf-16-be"), "utf-16"),
        ("größe".encode("utf-32"), "utf-32"),
    ],
)
def test_byte_order_marks_are_read_and_dropped(content: bytes, encoding: str) -> None:
    decoded = decode(content)
    assert (decoded.text, decoded.encoding) == ("größe", encoding)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Le café est fermé à côté de la forêt. Voilà la leçon du garçon.\n", "cp1252"),
        ("Så här gör du för att läsa filen på svenska.\n", "latin-1"),
        ("A configuração não é necessária; vá até o início.\n", "latin-1"),
        ("Copyright (c) 2009 José Muñoz\n", "latin-1"), ("# Auteur: Frédéric\nx = 1\n", "latin-1"),
        ("Don’t use “smart” quotes — please…\n", "cp1252"),
        ("Zażółć gęślą jaźń; proszę uruchomić polecenie i sprawdzić wynik.\n", "cp1250"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy. Soubor nelze přečíst.\n", "cp1250"),
        ("Dosya okunamadı, lütfen ayarları kontrol edin. Şu anda çalışıyor.\n", "cp1254"),
        ("Καλημέρα κόσμε, αυτό είναι ένα αρχείο.\n", "cp1253"),
        ("これは設定ファイルです。変更しないでください。\n", "shift_jis"),
        ("这是一个配置文件，请不要修改。谢谢大家的支持。\n", "gbk"),
    ],
)  # fmt: skip
def test_a_sentence_says_its_encoding(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert (decoded.text, decoded.replaced_characters) == (text, 0), decoded.encoding


def test_another_encoding_is_guessed() -> None:
    decoded = decode(("Die Größe der Straße überrascht niemanden, außer den Käufern. " * 5).encode("latin-1"))
    assert "Größe der Straße" in decoded.text
    assert decoded.encoding != "utf-8"
    assert decoded.replaced_characters == 0


def test_damaged_utf8_stays_utf8_and_counts_what_is_lost() -> None:
    decoded = decode("größe straße".encode() + b"\xff" + b" end")
    assert decoded.text == "größe straße\ufffd end"
    assert (decoded.encoding, decoded.replaced_characters) == ("utf-8", 1)


def test_newlines_controls_and_normal_form() -> None:
    assert plain_text("a\r\nb\rc\x00\x07d\x0ce\x85f\te\u0301\ud800") == "a\nb\ncd e\nf\té\ufffd"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("first\x85second", "first\nsecond"),
        ("first\u2028second\u2029third", "first\nsecond\nthird"),
        ("data\xadbase", "database"),
        ("alpha\u200bbeta", "alpha beta"),
        (
            "org.\u200bapache.\u200bkafka, snake_\u200bcase and \u200bspaced\u200b",
            "org.apache.kafka, snake_case and spaced",
        ),
        ("ภาษา\u200bไทย", "ภาษา ไทย"),
        ("auf\u200clage", "auflage"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
        ("👩\u200d👩\u200d👧 and ❤️\u200d🔥", "👩\u200d👩\u200d👧 and ❤️\u200d🔥"),
        ("co\u2060operate \ufeffword\ufeffs", "cooperate words"),
        ("a\u202egnirts\u202c \u2066b\u2069 \u200ec\u200f \u061cd", "agnirts b c d"),
        ("base\ufff9text\ufffagloss\ufffb.", "basetext gloss."),
        ("visible\U000e0068\U000e0069\U000e007f", "visible"),
        ("one\x1ftwo", "one two"),
        ("\x1b[31mred\x1b[0m and \x1b[1;38;5;12mbo\x1b[Kld\x1b[m", "red and bold"),
        ("left\x1b[10Cright\x1b[2;5Hdown", "left right down"),
        ("\x1b]0;a title\x07text \x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\.", "text link."),
        ("\x1bP1$r0m\x1b\\after \x1b(Bplain\x1b7", "after plain"),
        ("\x1b[unfinished\n\x1b", "nfinished\n"),
        ("N\x08NA\x08AM\x08ME\x08E _\x08u_\x08n", "NAME un"),
        ("a page\0 with\0 NULs", "a page with NULs"),
        ("Windows\r\nMac\rUnix\n", "Windows\nMac\nUnix\n"),
        ("e\u200b\u0301", "é"),
    ],
)
def test_unseen_characters_neither_glue_words_nor_stay_inside(text: str, plain: str) -> None:
    assert plain_text(text) == plain
    assert decode(text.encode()).text.removeprefix("\ufeff") == plain


UNSEEN = (
    "ab Aé\u0301\u0338⫝ก\u0e48\u0e21\u0940\u093c\u0915\u094d👩❤\ufe0f_.\n\r\t\x85\u2028\xad\u200b\u200c\u200d"
    "\u2060\ufeff\ufff9\ufffa\u202e\x1b[]mC0;\x07\x08\\\U000e0041\x00\x1f"
)


@given(st.text(alphabet=UNSEEN, max_size=40))
def test_plain_text_is_plain_already(text: str) -> None:
    plain = plain_text(text)
    assert plain_text(plain) == plain
    assert unicodedata.is_normalized("NFC", plain)


@given(st.text(alphabet=UNSEEN, max_size=60))
def test_lines_are_those_that_editors_count(text: str) -> None:
    plain, lines = plain_lines(text)
    counted = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    numbers = list(lines) if lines is not None else list(range(1, counted + 1))
    assert len(numbers) == plain.count("\n") + 1
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (1, counted)


@pytest.mark.parametrize("path", ["a.md", "a.rst", "a.adoc", "a.html", "a.py", "a.txt"])
def test_a_soft_line_end_moves_no_line_number(path: str) -> None:
    before = "<p>one\x85two\u2028three</p>\r\n\r\n" if path == "a.html" else "one\x85two\u2028three\r\n\r\n"
    document = clean(item_of(path, f"{before}last words\r\n".encode()))
    lines = document.text.split("\n")
    place = next(number for number, line in enumerate(lines) if "last words" in line)
    source = document.source_lines[place] if document.source_lines is not None else place + 1
    assert source == 3
    assert "onetwo" not in document.text


def test_notebooks_and_threads_lose_no_line_end() -> None:
    cells = [
        {"cell_type": "markdown", "source": "soft\xadhyphen one\u2028two\x85three"},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [{"output_type": "stream", "text": "\x1b[32mgreen\x1b[0m\x1b]0;t\x07 out\u200bput"}],
        },
    ]
    content = json.dumps({"cells": cells, "metadata": {}}, ensure_ascii=False).encode()
    text = clean(item_of("a.ipynb", content)).text
    assert "softhyphen one\ntwo\nthree" in text
    assert "green out put" in text


@pytest.mark.parametrize("entity", ["&#8232;", "&#x2029;", "&#13;", "&#10;"])
def test_an_entity_adds_no_line_to_a_page(entity: str) -> None:
    page = f"<html><body><pre>one{entity}two\nthree</pre>\n<p>four&shy;teen &#x200b;</p>\n<p>five</p></body></html>"
    document = clean(item_of("a.html", page.encode()))
    assert document.source_lines is not None
    assert len(document.source_lines) == document.text.count("\n") + 1
    assert "onetwo" not in document.text
    assert "fourteen" in document.text
