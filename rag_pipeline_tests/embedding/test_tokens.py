"""Token counting: offline, by the right tokenizer, and whatever the text holds."""

from __future__ import annotations

import os
import subprocess
import sys

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
    ["word", "Word's", "naïve", "İ", "ǆ", "e\u0301", " \u0301x", "漢字", "か\u3099", "x" * 99, "y" * 101, "[CLS]",
     "[cls]", "[", "]", "…", "\u200b", "\u00a0", "\x85", "\x1c", "\x0c", "\u2028", "\ufffd", "_", "snake_case", "3.14",
     "\t", "\n", " ", "😀", "ﬁ", "ß", "\U0001d400", "—", "a\u00adb", "\ue000"]
)  # fmt: skip


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
