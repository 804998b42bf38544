"""The tokenizer of BERT-Base Uncased, built from the vocabulary that the package carries; no model hub is asked."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from rag_pipeline.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY = "bert-base-uncased-vocab.txt"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
UNK, CLS, SEP = 100, 101, 102
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@cache
def wordpiece() -> Tokenizer:
    """The tokenizer, without truncation, padding, or [CLS] and [SEP] around the text.

    Gives the ids of the published tokenizer.json (which also cuts and pads to 128; this one does neither).

    Raises:
        ConfigError: the vocabulary file is not the one this package was made with.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    tokenizer = Tokenizer(WordPiece(_vocabulary(), unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def _vocabulary() -> dict[str, int]:
    path = files("rag_pipeline.embedding") / "data" / VOCABULARY
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != VOCABULARY_SHA256:
        raise ConfigError(f"vocabulary {path} has sha256 {found}, expected {VOCABULARY_SHA256}: reinstall rag-pipeline")
    # Not splitlines(): some entries are themselves characters that it takes for line ends.
    return {word: index for index, word in enumerate(content.decode("utf-8").rstrip("\n").split("\n"))}
