"""Token counting: offline, by the right tokenizer, and whatever the text holds."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.embedding import counting_version, token_counter, tokens
from rag_pipeline.embedding.wordpiece import UNK, wordpiece
from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import Embedding

LOCAL = Embedding()
OPENAI = Embedding(provider="openai", model="text-embedding-3-small")


def test_each_model_is_counted_with_its_own_tokenizer():
    texts = ["Hello, World!", "", "tokenization of <|endoftext|> and [CLS]"]
    assert token_counter(LOCAL)(texts) == [4, 0, 13]
    assert token_counter(OPENAI)(texts) == [4, 0, 13]
    assert token_counter(Embedding(provider="openai", model="nomic-embed-text"))(texts) == [4, 0, 13]
    assert token_counter(Embedding(provider="openai", model="gpt-4o"))(["日本語の文章"]) != token_counter(OPENAI)(
        ["日本語の文章"]
    )


def test_the_version_tells_the_counters_apart():
    hub = Embedding(provider="fastembed", model="BAAI/bge-small-en-v1.5")
    versions = [counting_version(settings) for settings in (LOCAL, hub, OPENAI)]
    assert versions == ["wordpiece/bert-base-uncased/2", "wordpiece/bert-base-uncased/2", "tiktoken/cl100k_base/1"]


@given(text=st.text(st.characters(exclude_categories=()), max_size=200))
def test_any_text_can_be_counted(text):
    assert token_counter(LOCAL)([text])[0] <= 3 * len(text) + 1
    assert (token_counter(OPENAI)([text])[0] > 0) == bool(text)


PIECES = st.sampled_from(
    [
        "word",
        "Word's",
        "naïve",
        "İ",
        "ǆ",
        "e\u0301",
        " \u0301x",
        "漢字",
        "か\u3099",
        "x" * 99,
        "y" * 101,
        "[CLS]",
        "[cls]",
        "[",
        "]",
        "…",
        "\u200b",
        "\u00a0",
        "\x85",
        "\x1c",
        "\x0c",
        "\u2028",
        "\ufffd",
        "_",
        "snake_case",
        "3.14",
        "\t",
        "\n",
        " ",
        "😀",
        "ﬁ",
        "ß",
        "\U0001d400",
        "—",
        "a\u00adb",
        "\ue000",
    ]
)


@given(texts=st.lists(st.lists(PIECES | st.characters(), max_size=30).map("".join), max_size=4))
def test_counting_gives_what_the_tokenizer_gives(texts):
    encodable = [tokens.encodable(text) for text in texts]
    encoded = [wordpiece().encode(text, add_special_tokens=False) for text in encodable]
    assert tokens.word_pieces_read(texts) == list(map(len, encoded))
    # An unknown word is longer than the one token that the model gets for it.
    for counted, encoding in zip(tokens.count_word_pieces(texts), encoded, strict=True):
        assert counted >= len(encoding)
        assert counted == len(encoding) or UNK in encoding.ids


@given(left=st.lists(PIECES).map("".join), right=st.lists(PIECES).map("".join), space=st.sampled_from(" \t\n"))
def test_what_is_cut_at_white_space_counts_as_its_parts_do(left, right, space):
    whole, *parts = tokens.count_word_pieces([f"{left}{space}{right}", f"{left}{space}", right])
    assert whole == sum(parts)


UNREADABLE = {
    "Thai": "การตั้งค่าฐานข้อมูล สำรองข้อมูลทุกวัน",
    "Burmese": "ဒေတာဘေ့စ်ကို နေ့စဉ် သိမ်းဆည်းပါ",
    "Khmer": "បម្រុងទុកទិន្នន័យ រៀងរាល់ថ្ងៃ",
    "Lao": "ສຳຮອງຂໍ້ມູນທຸກໆມື້",
    "Amharic": "የውሂብ ጎታውን በየቀኑ ያስቀምጡ",
    "Telugu": "ప్రతిరోజు డేటాబేస్ బ్యాకప్ చేయండి",
    "Sinhala": "දිනපතා දත්ත සුරකින්න",
    "Chinese": "每天晚上备份数据库",
    "Japanese": "データベースの設定を変更する",
    "Cherokee": "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ",
    "emoji": "🎉🎉 🚀",
    "a lump": "QUJD" * 60,
    "Thai with a number": "สำรองข้อมูล 16 ครั้ง",
}
READABLE = {
    "English": "How do I rotate the signing key?",
    "code": "def f(x):\n    return {'a': x ** 2}  # ─── →",
    "German": "Wie ändere ich den Schlüssel?",
    "Polish": "Zażółć gęślą jaźń",
    "Russian": "Как сменить ключ подписи?",
    "Greek": "Πώς αλλάζω το κλειδί;",
    "Arabic": "كيف أغير مفتاح التوقيع؟",
    "Hebrew": "איך מחליפים את המפתח?",
    "Hindi": "मैं कुंजी कैसे बदलूं",
    "Vietnamese": "Làm thế nào để đổi khóa?",
    "Turkish": "Anahtarı nasıl değiştiririm?",
    "a word in English": "What does ค่าเริ่มต้น mean in this table of settings?",
    "nothing": "",
    "marks": "... --- 42",
    "a table": "┌──────┬───────┐\n│ name │ price │\n├──────┼───────┤\n│ pear │  1.20 │\n└──────┴───────┘",
    "a lump below a paragraph": "This key is in base64, as the header says. " + "QUJD" * 500,
}


@pytest.mark.parametrize(("kind", "readable"), [*product(UNREADABLE, [False]), *product(READABLE, [True])])
def test_the_share_of_known_words_tells_what_can_be_read(kind, readable):
    (share,) = tokens.known_word_shares([(READABLE | UNREADABLE)[kind]])
    assert 0 <= share <= 1
    assert (share >= LOCAL.min_known_share) == readable, share


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_word_that_cannot_be_spelled_counts_by_its_length(text):
    long = "".join(text.split()) * 100
    (counted,) = token_counter(LOCAL)([long])
    assert len(long) / 5 <= counted <= len(long)
    assert tokens.word_pieces_read([long])[0] <= counted


@given(texts=st.lists(st.lists(PIECES | st.characters(), max_size=30).map("".join), max_size=4))
def test_a_share_is_of_each_text_alone(texts):
    shares = tokens.known_word_shares(texts)
    assert shares == [tokens.known_word_shares([text])[0] for text in texts]
    assert all(0 <= share <= 1 for share in shares)


def test_the_environment_is_left_as_it_was(monkeypatch):
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    tokens.load_encoding.cache_clear()
    before = dict(os.environ)
    assert token_counter(OPENAI)(["a"]) == [1]
    assert dict(os.environ) == before


def test_a_cache_that_the_user_configured_wins(monkeypatch, tmp_path):
    import tiktoken

    seen = []

    def get_encoding(_: str) -> None:
        seen.append(os.environ["TIKTOKEN_CACHE_DIR"])
        raise OSError("no network")

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken, "get_encoding", get_encoding)
    tokens.load_encoding.cache_clear()
    with pytest.raises(ConfigError, match="unset TIKTOKEN_CACHE_DIR"):
        token_counter(OPENAI)(["a"])
    assert seen == [str(tmp_path)]


def test_importing_the_package_loads_no_model_library():
    heavy = "onnxruntime", "tokenizers", "openai", "tiktoken", "llama_index", "sentence_transformers", "fastembed"
    code = f"import rag_pipeline.embedding, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
