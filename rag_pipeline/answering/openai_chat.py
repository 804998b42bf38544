"""OpenAI's chat completions, as many servers offer them: OpenAI, Azure, OpenRouter, DeepSeek, Ollama, vLLM and others.

The library sends and knows the errors; what comes back is read here, because it passes on unchecked what any server
sends. https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.answering.chat import Reading, Response
from rag_pipeline.answering.event_stream import Event
from rag_pipeline.answering.language_model import Message
from rag_pipeline.answering.sdk_errors import CONNECT_S, failed_event, meaning, what_it_said
from rag_pipeline.bounded_json import parse_json
from rag_pipeline.embedding.tokens import encodable
from rag_pipeline.remote.refusals import Service, without_key

if TYPE_CHECKING:
    import openai

    from rag_pipeline.settings.answering import Answering

OPENAI_URL: Final = "https://api.openai.com/v1"
_OTHER_NAME: Final = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """What servers differ in; learned from what they refuse."""

    limit: str
    """What the limit of tokens is called: models that reason know only `max_completion_tokens`, most servers only the
    older `max_tokens`."""
    asks_usage: bool = True
    """Whether `stream_options` is sent."""

    def without(self, said: str) -> _Dialect | None:
        """Another dialect, when this one is what a refusal names."""
        if "stream_options" in said and self.asks_usage:
            return replace(self, asks_usage=False)
        return replace(self, limit=_OTHER_NAME[self.limit]) if self.limit in said else None


class OpenAIWire:
    """Chat completions of the endpoint that the settings name; `now` is for tests."""

    def __init__(
        self,
        settings: Answering,
        *,
        key: str,
        key_variable: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.url = settings.base_url or OPENAI_URL
        self._settings, self._key, self._now = settings, key, now
        self._service = Service(
            url=self.url, model=settings.model, section="answering", key_variable=key_variable,
            when_refused="if it is too long, lower answering.context_tokens or answering.history_turns",
        )  # fmt: skip
        is_openai = settings.provider == "azure-openai" or not settings.base_url
        self._dialect = _Dialect(limit="max_completion_tokens" if is_openai else "max_tokens")
        self._client = _client(settings, key=key, url=self.url)

    @asynccontextmanager
    async def request(
        self, messages: Sequence[Message], *, max_tokens: int, streamed: bool
    ) -> AsyncIterator[Response]:  # fmt: skip
        import openai

        create: Any = self._client.chat.completions.with_streaming_response.create
        dialect, tried = self._dialect, {self._dialect}
        async with AsyncExitStack() as stack:
            while True:
                sent = self._body(messages, dialect, max_tokens=max_tokens, streamed=streamed)
                try:
                    response = await stack.enter_async_context(create(**sent))
                    break
                except openai.APIStatusError as error:
                    said, _ = what_it_said(error.body, self._key)
                    other = dialect.without(said) if error.status_code in (400, 422) else None
                    if other is None or other in tried:
                        raise self._meaning(error) from None
                    dialect = other
                    tried.add(other)
                except openai.OpenAIError as error:
                    raise self._meaning(error) from error
            self._dialect = dialect
            yield response

    def whole(self, body: Mapping[str, Any], reading: Reading) -> str:
        if body.get("error"):  # OpenRouter reports what failed behind it with a status of success
            raise failed_event(body, service=self._service, key=self._key)
        choice = body["choices"][0]
        message = choice["message"]
        self._finish(choice.get("finish_reason"), message.get("refusal"), reading)
        _read_usage(body.get("usage"), reading)
        return _text(message.get("content"))

    def part(self, event: Event, reading: Reading) -> str:
        if event.data.strip() == "[DONE]":
            reading.is_over = True
            return ""
        body = parse_json(event.data)
        if body.get("error") or event.name == "error":
            raise failed_event(body, service=self._service, key=self._key)
        _read_usage(body.get("usage"), reading)
        if not body.get("choices"):  # usage comes alone, and so do the results of Azure's filters
            return ""
        choice = body["choices"][0]
        delta = choice.get("delta") or {}
        self._finish(choice.get("finish_reason"), delta.get("refusal"), reading)
        return _text(delta.get("content"))

    def said(self, value: object) -> str:
        return without_key(value, self._key)

    async def close(self) -> None:
        await self._client.close()

    def _body(
        self, messages: Sequence[Message], dialect: _Dialect, *, max_tokens: int, streamed: bool
    ) -> dict[str, Any]:  # fmt: skip
        body: dict[str, Any] = {
            "model": self._settings.model,
            "messages": [{"role": message.role, "content": encodable(message.content)} for message in messages],
            dialect.limit: max_tokens,
        }
        if self._settings.temperature is not None:
            body["temperature"] = self._settings.temperature
        if streamed:
            body["stream"] = True
        if streamed and dialect.asks_usage:
            body["stream_options"] = {"include_usage": True}
        return body

    def _meaning(self, error: openai.OpenAIError) -> Exception:
        import openai

        return meaning(error, sdk=openai, service=self._service, key=self._key, now=self._now())

    @staticmethod
    def _finish(reason: object, refusal: object, reading: Reading) -> None:
        reading.is_over = reading.is_over or reason is not None
        reading.is_cut_off = reading.is_cut_off or reason == "length"
        if reason == "content_filter":
            reading.refused = "its content filter holds the answer back"
        elif refusal:
            reading.refused += str(refusal)


def _client(settings: Answering, *, key: str, url: str) -> openai.AsyncOpenAI:
    import openai

    options: dict[str, Any] = {
        # Patience is the caller's: see `patience`.
        "timeout": openai.Timeout(None, connect=CONNECT_S),
        "max_retries": 0,
        # The key is for the configured address only.
        "http_client": openai.DefaultAsyncHttpxClient(follow_redirects=False),
    }
    if settings.provider == "azure-openai":
        return openai.AsyncAzureOpenAI(api_key=key, azure_endpoint=url, api_version=settings.api_version, **options)
    # Ollama, vLLM and their like take any key, but the library insists on one.
    return openai.AsyncOpenAI(api_key=key or "none", base_url=url, **options)


def _read_usage(usage: object, reading: Reading) -> None:
    if isinstance(usage, dict):
        reading.input_tokens = int(usage.get("prompt_tokens") or reading.input_tokens)
        reading.output_tokens = int(usage.get("completion_tokens") or reading.output_tokens)


def _text(content: object) -> str:
    """Content as text: most send one text, Mistral's reasoning models a list of parts."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if part.get("type") == "text")
    if content is not None and not isinstance(content, str):
        raise TypeError(f"content is a {type(content).__name__}")
    return content or ""
