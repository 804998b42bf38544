"""What writes answers: any language model that takes messages and gives text, whole or piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some of what a model writes; the last one of a text carries what it cost."""

    text: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    """As charged; 0 while unknown, and for services that do not say."""
    is_cut_off: bool = False
    """The text ended because it was long enough, not because it was finished."""


class LanguageModel(Protocol):
    """A chat model; may be used from several threads."""

    name: str
    """As it is shown and priced."""

    def stream(self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float) -> Iterator[Piece]:
        """The text in pieces, as they are written; closing the iterator early ends the request.

        `timeout_s` is for the first piece, retries included, and again for each wait between two pieces.

        Raises:
            TransientError: not reached, too slow, overloaded, cut off in the middle.
            ConfigError: the key, the model or the address is wrong.
            PermanentError: refused, or an answer that makes no sense.
        """
        ...

    def complete(self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float) -> Piece:
        """The whole text as one piece, in `timeout_s` seconds; raises as `stream`."""
        ...

    def close(self) -> None:
        """Give up connections; calls that are under way may fail."""
        ...
