"""A language model at the protocol that says what it is told to, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rag_pipeline.answering.language_model import Message, Piece


@dataclass(kw_only=True)
class ScriptedModel:
    """Writes `says` in pieces of so many characters; a script may end in an error, after what comes before it."""

    says: Sequence[str | Exception] = ()
    """One for each call, in order; the last one again and again."""
    piece_chars: int = 7
    name: str = "scripted-1"
    input_tokens: int = 100
    output_tokens: int = 20
    is_cut_off: bool = False
    fails_after: int | None = None
    """Breaks off a stream after so many pieces."""
    asked: list[Sequence[Message]] = field(default_factory=list)
    is_closed: bool = False

    def stream(self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float) -> Iterator[Piece]:
        text = self._next(messages)
        for number, start in enumerate(range(0, len(text), self.piece_chars)):
            if number == self.fails_after:
                raise ConnectionResetError("the wire was cut")
            yield Piece(text=text[start : start + self.piece_chars])
        yield Piece(input_tokens=self.input_tokens, output_tokens=self.output_tokens, is_cut_off=self.is_cut_off)

    def complete(self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float) -> Piece:
        return Piece(
            text=self._next(messages), input_tokens=self.input_tokens, output_tokens=self.output_tokens,
            is_cut_off=self.is_cut_off,
        )  # fmt: skip

    def close(self) -> None:
        self.is_closed = True

    def _next(self, messages: Sequence[Message]) -> str:
        said = self.says[min(len(self.asked), len(self.says) - 1)]
        self.asked.append(messages)
        if isinstance(said, Exception):
            raise said
        return said
