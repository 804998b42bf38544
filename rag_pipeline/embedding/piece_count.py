"""Counting word pieces without making them, many times faster than the tokenizer does.

BERT's tokenizer cuts at white space and punctuation first, and how it cuts a word further depends on that word alone:
so each word is given to it once, and counted from memory ever after.

A word that the vocabulary cannot spell is a single [UNK] to the model, however long it is: a page of Thai would be
three tokens. So lengths count such a word by its bytes, and what it was counted as is remembered apart: it says how
much of a text the model can read, and how many tokens the model really gets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from operator import add
from string import ascii_lowercase, ascii_uppercase, punctuation
from typing import Final, NamedTuple

from rag_pipeline.embedding.wordpiece import SPECIAL_TOKENS, UNK, wordpiece

_MAX_REMEMBERED: Final = 500_000
_MAX_WORD_BYTES: Final = 100
"""Longer ones are hardly met twice."""
_SPECIAL: Final = re.compile("|".join(map(re.escape, SPECIAL_TOKENS)))
_PUNCTUATION: Final = punctuation.encode()
_END: Final = "\0"
"""Between texts that are counted together."""
_CONTROLS: Final = bytes([*range(1, 9), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
"""The tokenizer removes them, so that what is around them grows together: too rare to have a rule of their own here."""
_BYTES_PER_TOKEN: Final = 4
"""Of a word that the vocabulary cannot spell. On interface texts in Thai, Burmese, Khmer, Telugu and Georgian, that is
1.5 characters a token, where OpenAI's o200k has 1.8 to 2.3 and its cl100k .6 to 1.1."""
_CHARS_PER_WORD: Final = 4
"""Of such a word, when it is compared with pieces of known words: English texts have one for 4 to 5 letters."""
_NO_MARKS: Final = bytes(set(range(1, 256)) - set(_PUNCTUATION))
_WORDS: Final = bytes.maketrans(
    f"{ascii_uppercase}{punctuation}".encode(), f"{ascii_lowercase}{' ' * len(punctuation)}".encode()
)


class Unknown(NamedTuple):
    """The words of a text that the vocabulary cannot spell."""

    words: int
    """The model gets one token for each of them."""
    tokens: int
    """As their lengths are counted."""
    weight: int
    """How many words of a known language they stand for: where a script has no spaces, several. One for what holds no
    letters of another script, such as base64, emoji or the frame of a table: next to a paragraph it says little about
    whether the paragraph can be read."""
    next_to: int
    """Pieces that the vocabulary holds and that touch such a word, as characters of a Chinese word do."""


class PieceCounter:
    """Texts to their lengths in word pieces of BERT-Base Uncased, without [CLS] and [SEP]."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        self._unknown: dict[bytes, Unknown] = {}
        """Of the words in `_known`, those that hold something that the vocabulary cannot spell."""

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """One count per text, in order; a word that the vocabulary cannot spell counts by its bytes.

        Raises:
            UnicodeEncodeError: a text with a lone surrogate.
        """
        if not texts:
            return []
        together = _END.join(texts)
        content = together.encode()
        if together.count(_END) >= len(texts) or _is_special(together, content):
            return [tokens for tokens, _ in _lengths(texts)] if len(texts) == 1 else [self([text])[0] for text in texts]
        # Bytes are cut and compared much faster than characters. Each mark of ASCII punctuation is a token; whatever
        # is not ASCII stays in its word, which the tokenizer cuts.
        end = _END.encode()
        marks = map(len, content.translate(None, _NO_MARKS).split(end))
        return list(map(add, marks, self._pieces(content.translate(_WORDS).split(end))))

    def read(self, text: str) -> tuple[int, Unknown]:
        """The length of the words of a text, without ASCII punctuation, and what of it the vocabulary cannot spell.

        The length of a text without unknown words is exact only where it is not ASCII.

        Raises:
            UnicodeEncodeError: a text with a lone surrogate.
        """
        content = text.encode()
        if _is_special(text, content) or _END in text:
            return _lengths([text])[0]
        words = content.translate(_WORDS).split()
        if text.isascii() and (not words or max(map(len, words)) <= _MAX_WORD_BYTES):
            return len(words), _NOTHING  # all of ASCII is in the vocabulary
        if any(word not in self._known for word in words if len(word) <= _MAX_WORD_BYTES):
            self._learn({word for word in words if len(word) <= _MAX_WORD_BYTES})
        known, unknown = self._known, self._unknown
        longer = _lengths([word.decode() for word in words if word not in known])
        found = [unknown[word] for word in words if word in unknown] + [rest for _, rest in longer]
        length = sum(known[word] for word in words if word in known) + sum(tokens for tokens, _ in longer)
        return length, _together(found)

    def _pieces(self, texts: Sequence[bytes]) -> Iterator[int]:
        """The pieces of the words of each text; in small letters, without punctuation."""
        known = self._known.__getitem__
        for text in texts:
            words = text.split()
            try:
                yield sum(map(known, words))
            except KeyError:
                if any(word not in self._known for word in words if len(word) <= _MAX_WORD_BYTES):
                    # All at once: the tokenizer takes many words in half of the time that it takes them in turns.
                    self._learn({word for each in texts for word in each.split() if len(word) <= _MAX_WORD_BYTES})
                yield self._sum(words)

    def _sum(self, words: Sequence[bytes]) -> int:
        """As above; the words that are too long to be remembered are counted here."""
        known = self._known
        longer = _lengths([word.decode() for word in words if word not in known])
        return sum(known[word] for word in words if word in known) + sum(tokens for tokens, _ in longer)

    def _learn(self, words: Set[bytes]) -> None:
        known = self._known
        if len(known) > _MAX_REMEMBERED:
            known.clear()
            self._unknown.clear()
        new = [word for word in words if word not in known]
        for word, (tokens, unknown) in zip(new, _lengths([word.decode() for word in new]), strict=True):
            known[word] = tokens
            if unknown.words:
                self._unknown[word] = unknown


_NOTHING: Final = Unknown(words=0, tokens=0, weight=0, next_to=0)


def _together(found: Sequence[Unknown]) -> Unknown:
    return Unknown(*map(sum, zip(*found, strict=True))) if found else _NOTHING


def _is_special(text: str, content: bytes) -> bool:
    """Whether it holds what only the tokenizer itself can count."""
    if len(content.translate(None, _CONTROLS)) < len(content):
        return True
    return _SPECIAL.search(text) is not None


def _lengths(texts: Sequence[str]) -> list[tuple[int, Unknown]]:
    """How long each text is, and what of it the vocabulary cannot spell."""
    encodings = wordpiece().encode_batch_fast(list(texts), add_special_tokens=False)
    found = []
    for text, encoding in zip(texts, encodings, strict=True):
        ids = encoding.ids
        unknown = _unknown_in(text) if UNK in ids else _NOTHING
        found.append((len(ids) - unknown.words + unknown.tokens, unknown))
    return found


def _unknown_in(text: str) -> Unknown:
    # Slower, as it says where each token stands.
    encoding = wordpiece().encode(text, add_special_tokens=False)
    found: list[Unknown] = []
    known = unknown = end = (
        0  # of letters that touch each other: pieces that are in the vocabulary, and words that are not
    )
    for token, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True):
        is_script = _is_script(text[start:stop])
        if start != end or not is_script:
            found += _next_to(known, unknown)
            known = unknown = 0
        if token == UNK:
            found.append(_unknown(text[start:stop], is_script=is_script))
        known, unknown = known + (is_script and token != UNK), unknown + (is_script and token == UNK)
        end = stop
    return _together(found + _next_to(known, unknown))


def _next_to(known: int, unknown: int) -> list[Unknown]:
    return [_NOTHING._replace(next_to=known)] if known and unknown else []


def _is_script(word: str) -> bool:
    """Whether it has letters, and not only those of ASCII."""
    return not word.isascii() and any(map(str.isalpha, word))


def _unknown(word: str, *, is_script: bool) -> Unknown:
    return Unknown(
        words=1,
        tokens=max(1, -(-len(word.encode()) // _BYTES_PER_TOKEN)),
        weight=-(-len(word) // _CHARS_PER_WORD) if is_script else 1,
        next_to=0,
    )
