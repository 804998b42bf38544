"""Language models on a scripted server, and what they were asked to wait for (none is slept)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rag_pipeline.answering.chat import ServedModel
from rag_pipeline.answering.language_model import Message, Piece
from rag_pipeline.answering.models import make_language_model
from rag_pipeline.settings.answering import Answering
from rag_pipeline_tests.answering.scripted_server import Script, ScriptedServer, scripted_server

KEY = "hunter2-hunter2"
QUESTION = [Message(role="system", content="Be short."), Message(role="user", content="How?")]
PROVIDERS = ("openai", "anthropic")


@dataclass(slots=True, kw_only=True)
class Asking:
    """A model, the server behind it, and its waits."""

    model: ServedModel
    server: ScriptedServer
    slept: list[float] = field(default_factory=list)

    def complete(self, messages: Sequence[Message] = QUESTION, *, max_tokens: int = 50, timeout_s: float = 20) -> Piece:
        return self.model.complete(messages, max_tokens=max_tokens, timeout_s=timeout_s)

    def stream(
        self, messages: Sequence[Message] = QUESTION, *, max_tokens: int = 50, timeout_s: float = 20
    ) -> Iterator[Piece]:
        return self.model.stream(messages, max_tokens=max_tokens, timeout_s=timeout_s)

    def both(self, *scripts: Script) -> Iterator[Piece | None]:
        """What `complete` and `stream` (joined) make of the same script."""
        self.server.then(*scripts)
        yield self.complete()
        self.server.then(*scripts)
        yield joined(self.stream())


def joined(pieces: Iterator[Piece]) -> Piece:
    """A stream as the one piece that `complete` would give."""
    *before, last = pieces
    assert not any(piece.input_tokens or piece.output_tokens or piece.is_cut_off for piece in before)
    return Piece(
        text="".join(piece.text for piece in [*before, last]),
        input_tokens=last.input_tokens, output_tokens=last.output_tokens, is_cut_off=last.is_cut_off,
    )  # fmt: skip


@contextmanager
def asking(*scripts: Script, provider: str = "openai", **options: object) -> Iterator[Asking]:
    """A model of a provider on a server with these scripts."""
    with scripted_server(*scripts) as server:
        url = server.anthropic_url if provider == "anthropic" else server.url
        settings = Answering.model_validate({"provider": provider, "model": "m", "base_url": url} | options)
        environ = {"OPENAI_API_KEY": KEY, "AZURE_OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
        model = make_language_model(settings, environ=environ)
        assert isinstance(model, ServedModel)
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        model._sleep, model._jitter = sleep, lambda: 1.0
        try:
            yield Asking(model=model, server=server, slept=slept)
        finally:
            model.close()
