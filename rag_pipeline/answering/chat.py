"""A `LanguageModel` behind a network: one request as pieces, whichever wire format it speaks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rag_pipeline.answering.background import Background
from rag_pipeline.answering.event_stream import Event, events_of
from rag_pipeline.answering.language_model import Message, Piece
from rag_pipeline.answering.patience import patiently
from rag_pipeline.answering.thoughts import Thoughts, without_thoughts
from rag_pipeline.bounded_json import parse_json
from rag_pipeline.errors import PermanentError, RagPipelineError, TransientError

_AFTERWARDS_S: Final = 2.0
"""So long what a text cost is waited for once the text is over, or half of the caller's patience if that is less."""


class Response(Protocol):
    """What the libraries of OpenAI and Anthropic hand out for a response whose body is not read yet."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def iter_bytes(self) -> AsyncIterator[bytes]: ...

    async def read(self) -> bytes: ...


@dataclass(slots=True, kw_only=True)
class Reading:
    """What is known of a text while it is read."""

    input_tokens: int = 0
    output_tokens: int = 0
    is_over: bool = False
    is_cut_off: bool = False
    """It was long enough, and not finished."""
    refused: str = ""
    """Why the model, or a filter, writes nothing (more)."""


class Wire(Protocol):
    """A wire format, and how to send it."""

    url: str

    def request(
        self, messages: Sequence[Message], *, max_tokens: int, streamed: bool
    ) -> AbstractAsyncContextManager[Response]:
        """The response, whose status is one of success; raises as `LanguageModel.stream`."""
        ...

    def whole(self, body: Mapping[str, Any], reading: Reading) -> str:
        """The text of an answer that came whole.

        Raises:
            LookupError, TypeError, ValueError: it is not the answer that it should be.
        """
        ...

    def part(self, event: Event, reading: Reading) -> str:
        """What an event of a stream adds to the text; raises as `whole`, and `RagPipelineError` for one of failure."""
        ...

    def said(self, value: object) -> str:
        """What the service said, as it may be repeated."""
        ...

    async def close(self) -> None: ...


class ServedModel:
    """A language model that a service runs; `sleep` and `jitter` are for tests."""

    def __init__(
        self,
        wire: Wire,
        *,
        name: str,
        max_retries: int,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self._wire = wire
        self._max_retries = max_retries
        self._sleep, self._jitter = sleep, jitter
        self._background = Background(name=f"language model {name}")

    def stream(self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float) -> Iterator[Piece]:
        return self._background.iterate(self._asked(messages, max_tokens, timeout_s, streamed=True))

    def complete(self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float) -> Piece:
        return self._background.run(_only(self._asked(messages, max_tokens, timeout_s, streamed=False)))

    def close(self) -> None:
        self._background.close(self._wire.close())

    def _asked(
        self, messages: Sequence[Message], max_tokens: int, timeout_s: float, *, streamed: bool
    ) -> AsyncGenerator[Piece, None]:
        def attempt() -> AsyncGenerator[Piece, None]:
            if not streamed:
                return _asked_whole(self._wire, messages, max_tokens=max_tokens)
            afterwards_s = min(_AFTERWARDS_S, timeout_s / 2)
            return _asked_streamed(self._wire, messages, max_tokens=max_tokens, afterwards_s=afterwards_s)

        return patiently(
            attempt, who=self._wire.url, timeout_s=timeout_s, max_retries=self._max_retries,
            sleep=self._sleep, jitter=self._jitter,
        )  # fmt: skip


async def _only(pieces: AsyncGenerator[Piece, None]) -> Piece:
    async with aclosing(pieces):
        return await anext(pieces)


async def _asked_whole(wire: Wire, messages: Sequence[Message], *, max_tokens: int) -> AsyncGenerator[Piece, None]:
    async with wire.request(messages, max_tokens=max_tokens, streamed=False) as response:
        yield await _whole(wire, response, max_tokens=max_tokens)


async def _asked_streamed(
    wire: Wire, messages: Sequence[Message], *, max_tokens: int, afterwards_s: float
) -> AsyncGenerator[Piece, None]:
    async with wire.request(messages, max_tokens=max_tokens, streamed=True) as response:
        kind = response.headers.get("content-type", "")
        if "json" in kind or "html" in kind:  # the service knows no streams, or is none
            yield await _whole(wire, response, max_tokens=max_tokens)
            return
        parts = _streamed(wire, response, max_tokens=max_tokens, afterwards_s=afterwards_s)
        async with aclosing(parts):
            async for piece in parts:
                yield piece


async def _whole(wire: Wire, response: Response, *, max_tokens: int) -> Piece:
    reading = Reading(is_over=True)
    body = b"".join([chunk async for chunk in _chunks(wire, response)])
    try:
        text = without_thoughts(wire.whole(parse_json(body), reading))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        said = wire.said(body.decode("utf-8", "replace"))
        raise PermanentError(
            f"{wire.url} sent something else than a chat answer: {said}: check answering.base_url"
        ) from None
    _check(wire, reading, is_empty=not text.strip(), max_tokens=max_tokens)
    return _last(reading, text)


async def _streamed(
    wire: Wire, response: Response, *, max_tokens: int, afterwards_s: float
) -> AsyncGenerator[Piece, None]:
    reading, thoughts, is_empty = Reading(), Thoughts(), True
    events = events_of(_chunks(wire, response))
    async with aclosing(events):
        while not reading.is_over:
            event = await anext(events, None)
            if event is None:
                raise TransientError(f"{wire.url} ended the stream in the middle of the answer")
            if text := thoughts.passed(_part(wire, event, reading)):
                is_empty = is_empty and not text.strip()
                yield Piece(text=text)
        with suppress(TimeoutError, RagPipelineError):  # the text is complete, whatever comes after it
            async with asyncio.timeout(afterwards_s):
                # To the very end: only then can the connection be used again.
                async for event in events:
                    _part(wire, event, reading)
    rest = thoughts.rest()
    _check(wire, reading, is_empty=is_empty and not rest.strip(), max_tokens=max_tokens)
    yield _last(reading, rest)


def _part(wire: Wire, event: Event, reading: Reading) -> str:
    try:
        return wire.part(event, reading)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        said = wire.said(event.data)
        raise PermanentError(f"{wire.url} sent an event that makes no sense: {said}") from None


async def _chunks(wire: Wire, response: Response) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.iter_bytes():
            yield chunk
    except Exception as error:  # which one depends on the HTTP library under the service's own
        raise TransientError(f"the connection to {wire.url} broke: {wire.said(error)}") from error


def _check(wire: Wire, reading: Reading, *, is_empty: bool, max_tokens: int) -> None:
    if reading.refused:
        raise PermanentError(f"{wire.url} refused to answer: {wire.said(reading.refused)}")
    if is_empty and reading.is_cut_off:
        raise PermanentError(
            f"{wire.url} spent {max_tokens} tokens and had written nothing yet: raise answering.max_answer_tokens"
        )
    if is_empty:
        raise PermanentError(f"{wire.url} answered with an empty text")


def _last(reading: Reading, text: str) -> Piece:
    return Piece(
        text=text, input_tokens=reading.input_tokens, output_tokens=reading.output_tokens,
        is_cut_off=reading.is_cut_off,
    )  # fmt: skip
