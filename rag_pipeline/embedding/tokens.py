"""How long a text is, in the tokens of the embedding model; always offline.

Chunk sizes are counted here, so what counts is part of the fingerprint of chunking: see `counting_version`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.errors import ConfigError

if TYPE_CHECKING:
    import tiktoken

    from rag_pipeline.embedding.piece_count import PieceCounter, Unknown
    from rag_pipeline.settings import Embedding

TokenCounter = Callable[[Sequence[str]], list[int]]
"""Texts to their lengths in tokens, in the same order."""

_WORDPIECE_VERSION = "wordpiece/bert-base-uncased/2"
_CARRIED = ("cl100k_base", "o200k_base")
_DEFAULT_ENCODING = "cl100k_base"
_environment_lock = threading.Lock()


def token_counter(settings: Embedding) -> TokenCounter:
    """The counter that fits the configured model.

    Its own tokenizer for the local model and for OpenAI's. For other models it is a stand-in: cl100k for what an
    OpenAI-compatible server runs, WordPiece for sentence-transformers and fastembed, whose models mostly are BERTs.
    """
    if _counts_word_pieces(settings):
        return count_word_pieces
    return encoding_counter(encoding_name(settings.model))


def counting_version(settings: Embedding) -> str:
    """Fingerprint of `token_counter(settings)`: equal versions count equally. Loads nothing."""
    return _WORDPIECE_VERSION if _counts_word_pieces(settings) else f"tiktoken/{encoding_name(settings.model)}/1"


def _counts_word_pieces(settings: Embedding) -> bool:
    return settings.provider not in ("openai", "azure-openai")


def encodable(text: str) -> str:
    """The text with lone surrogates replaced, which neither a tokenizer nor JSON in UTF-8 can carry."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def count_word_pieces(texts: Sequence[str]) -> list[int]:
    """Lengths in word pieces of BERT-Base Uncased, without [CLS] and [SEP].

    A word that its vocabulary cannot spell counts by its bytes, though the model gets one token for it.
    """
    try:
        return _piece_counter()(texts)
    except UnicodeEncodeError:
        return _piece_counter()([encodable(text) for text in texts])


count_word_pieces.adds_up = True  # type: ignore[attr-defined]  # white space ends every piece: see chunking.tokens


def word_pieces_read(texts: Sequence[str]) -> list[int]:
    """As `count_word_pieces`, but as the model gets them: one token for each word that its vocabulary cannot spell."""
    counts, counter = count_word_pieces(texts), _piece_counter()
    unknown = [counter.read(encodable(text))[1] for text in texts]
    return [count - rest.tokens + rest.words for count, rest in zip(counts, unknown, strict=True)]


def known_word_shares(texts: Sequence[str]) -> list[float]:
    """What share of each text's words, by their lengths, BERT-Base Uncased can spell; 1 for a text without words.

    What touches a word that it cannot spell is unknown, too: of a Chinese word of three characters one alone says
    nothing.
    """
    counter = _piece_counter()
    return [_share(*counter.read(encodable(text))) for text in texts]


def _share(length: int, unknown: Unknown) -> float:
    if not unknown.words:
        return 1.0
    return 1 - (unknown.weight + unknown.next_to) / (length - unknown.tokens + unknown.weight)


@cache
def _piece_counter() -> PieceCounter:
    from rag_pipeline.embedding.piece_count import PieceCounter

    return PieceCounter()


def encoding_counter(name: str) -> TokenCounter:
    """A counter for one tiktoken encoding; marks such as `<|endoftext|>` in a text count as plain text."""
    return partial(_count_in, name)  # not a closure: it goes to the process that cuts long documents


def _count_in(name: str, texts: Sequence[str]) -> list[int]:
    encoding = load_encoding(name)
    return [len(encoding.encode_ordinary(encodable(text))) for text in texts]


def encoding_name(model: str) -> str:
    """The tiktoken encoding of an OpenAI model that can be had offline; cl100k_base for all others."""
    # A dated or prefixed name ("openai/text-embedding-3-small") is the same model; every OpenAI embedding model is
    # cl100k, so only the families that use o200k have to be told apart.
    families = ("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "o1", "o3", "o4", "chatgpt-4o")
    name = model.rsplit("/", 1)[-1].lower()
    return "o200k_base" if name.startswith(families) else _DEFAULT_ENCODING


@cache
def load_encoding(name: str) -> tiktoken.Encoding:
    """A tiktoken encoding, from the cache that llama-index-core ships unless the user configured another.

    Raises:
        ConfigError: the tables are neither there nor can be downloaded.
    """
    import tiktoken

    with _token_tables(name):
        try:
            return tiktoken.get_encoding(name)
        except Exception as error:  # tiktoken lets through whatever its download raises
            raise ConfigError(
                f"the token table {name} cannot be loaded ({error}): unset TIKTOKEN_CACHE_DIR to use the one that "
                "llama-index-core carries, or put it there"
            ) from error


@contextmanager
def _token_tables(name: str) -> Iterator[None]:
    """Point tiktoken at the carried tables for this call only; a user's own setting wins."""
    with _environment_lock:
        carried = _carried_tables()
        if name not in _CARRIED or carried is None or {"TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"} & os.environ.keys():
            yield
            return
        os.environ["TIKTOKEN_CACHE_DIR"] = str(carried)
        try:
            yield
        finally:
            del os.environ["TIKTOKEN_CACHE_DIR"]


def _carried_tables() -> Path | None:
    # The package is located, not imported: importing it takes seconds.
    spec = find_spec("llama_index.core")
    places = (spec and spec.submodule_search_locations) or []
    folders = [Path(place) / "_static" / "tiktoken_cache" for place in places]
    return next((folder for folder in folders if folder.is_dir()), None)
