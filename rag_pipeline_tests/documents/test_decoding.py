"""Bytes of any encoding become text that PostgreSQL takes."""

from __future__ import annotations

import codecs
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.documents.decoding import decode, plain_text


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
    assert plain_text("a\r\nb\rc\x00\x07d\x0ce\x85f\te\u0301\ud800") == "a\nb\ncd ef\té\ufffd"
