"""Anthropic's messages: Claude (https://docs.claude.com/en/api/messages). Needs the extra `anthropic`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.answering.chat import Reading, Response
from rag_pipeline.answering.event_stream import Event
from rag_pipeline.answering.language_model import Message
from rag_pipeline.answering.sdk_errors import CONNECT_S, failed_event, meaning
from rag_pipeline.bounded_json import parse_json
from rag_pipeline.embedding.tokens import encodable
from rag_pipeline.remote.refusals import Service, without_key

if TYPE_CHECKING:
    from rag_pipeline.settings.answering import Answering

ANTHROPIC_URL: Final = "https://api.anthropic.com"
_CUT_OFF: Final = ("max_tokens", "model_context_window_exceeded")


class AnthropicWire:
    """Messages of the endpoint that the settings name; `now` is for tests."""

    def __init__(
        self,
        settings: Answering,
        *,
        key: str,
        key_variable: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        import anthropic

        # Anthropic's library adds /v1 itself, the address in its documentation may have it.
        self.url = (settings.base_url or ANTHROPIC_URL).removesuffix("/v1")
        self._settings, self._key, self._now = settings, key, now
        self._service = Service(
            url=self.url, model=settings.model, section="answering", key_variable=key_variable,
            when_refused="if it is too long, lower answering.context_tokens or answering.history_turns",
        )  # fmt: skip
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=self.url,
            timeout=anthropic.Timeout(None, connect=CONNECT_S),  # patience is the caller's: see `patience`
            max_retries=0,
            # The key is for the configured address only.
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    @asynccontextmanager
    async def request(
        self, messages: Sequence[Message], *, max_tokens: int, streamed: bool
    ) -> AsyncIterator[Response]:  # fmt: skip
        import anthropic

        create: Any = self._client.messages.with_streaming_response.create
        async with AsyncExitStack() as stack:
            try:
                request = create(**self._body(messages, max_tokens=max_tokens, streamed=streamed))
                response = await stack.enter_async_context(request)
            except anthropic.AnthropicError as error:
                found = meaning(error, sdk=anthropic, service=self._service, key=self._key, now=self._now())
                raise found from (None if isinstance(error, anthropic.APIStatusError) else error)
            yield response

    def whole(self, body: Mapping[str, Any], reading: Reading) -> str:
        self._finish(body["stop_reason"], reading)
        _read_usage(body.get("usage"), reading)
        return "".join(block["text"] for block in body["content"] if block["type"] == "text")

    def part(self, event: Event, reading: Reading) -> str:
        body = parse_json(event.data)
        kind = body["type"]
        if kind == "error":
            raise failed_event(body, service=self._service, key=self._key)
        if kind == "message_start":
            _read_usage(body["message"].get("usage"), reading)
        elif kind == "message_delta":
            _read_usage(body.get("usage"), reading)
            self._finish(body["delta"].get("stop_reason"), reading)
        elif kind == "message_stop":
            reading.is_over = True
        elif kind == "content_block_delta" and body["delta"]["type"] == "text_delta":
            return str(body["delta"]["text"])
        return ""

    def said(self, value: object) -> str:
        return without_key(value, self._key)

    async def close(self) -> None:
        await self._client.close()

    def _body(self, messages: Sequence[Message], *, max_tokens: int, streamed: bool) -> dict[str, Any]:
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        turns = [message for message in messages if message.role != "system"]
        # A conversation that was shortened may begin with an answer; Anthropic wants a question first.
        turns = list(dropwhile(lambda message: message.role != "user", turns))
        body: dict[str, Any] = {
            "model": self._settings.model,
            "max_tokens": max_tokens,
            "messages": [{"role": message.role, "content": encodable(message.content)} for message in turns],
        }
        if system:
            body["system"] = encodable(system)
        if self._settings.temperature is not None:
            # Newer models have none any more, and so the library does not either.
            body["extra_body"] = {"temperature": self._settings.temperature}
        if streamed:
            body["stream"] = True
        return body

    @staticmethod
    def _finish(reason: object, reading: Reading) -> None:
        reading.is_over = reading.is_over or reason is not None
        reading.is_cut_off = reading.is_cut_off or reason in _CUT_OFF
        if reason == "refusal":
            reading.refused = "the model declines"


def _read_usage(usage: object, reading: Reading) -> None:
    if isinstance(usage, dict):
        # What a cache served is input, too; without it the count would be of a part of the prompt.
        cached = int(usage.get("cache_creation_input_tokens") or 0) + int(usage.get("cache_read_input_tokens") or 0)
        if usage.get("input_tokens") is not None:
            reading.input_tokens = int(usage["input_tokens"]) + cached
        reading.output_tokens = int(usage.get("output_tokens") or reading.output_tokens)
