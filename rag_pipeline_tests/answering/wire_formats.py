"""How OpenAI and Anthropic write an answer: whole, and as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rag_pipeline_tests.answering.scripted_server import Says

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


class Format(Protocol):
    """One wire format; each text is an event of a stream, complete with its empty line."""

    def whole(self, says: Says, *, model: str) -> dict[str, object]: ...

    def opening(self, says: Says, *, model: str) -> Iterator[str]: ...

    def pieces(self, says: Says) -> Iterator[str]: ...

    def finish(self, says: Says) -> str: ...

    def closing(self, says: Says, *, include_usage: bool) -> Iterator[str]: ...


def of_path(path: str) -> Format:
    """The format that a path is asked in."""
    return AnthropicFormat() if path.split("?")[0].endswith("/messages") else OpenAIFormat()


class OpenAIFormat:
    """https://platform.openai.com/docs/api-reference/chat-streaming"""

    def whole(self, says: Says, *, model: str) -> dict[str, object]:
        message = {"role": "assistant", "content": "".join(says.pieces)}
        if says.reasoning:
            message["reasoning_content"] = "".join(says.reasoning)
        choice = {"index": 0, "message": message, "finish_reason": says.finish}
        answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}
        return answer | ({"usage": self._usage(says)} if says.input_tokens is not None else {})

    def opening(self, says: Says, *, model: str) -> Iterator[str]:
        yield self._event({"role": "assistant", "content": ""})

    def pieces(self, says: Says) -> Iterator[str]:
        for thought in says.reasoning:
            yield self._event({"reasoning_content": thought})
        for piece in says.pieces:
            yield self._event({"content": piece})

    def finish(self, says: Says) -> str:
        return self._event({}, finish=says.finish)

    def closing(self, says: Says, *, include_usage: bool) -> Iterator[str]:
        if says.finish is not None:
            yield self.finish(says)
        if include_usage and says.input_tokens is not None:
            yield self._data({"choices": [], "usage": self._usage(says)})
        if says.says_done:
            yield "data: [DONE]\n\n"

    def _event(self, delta: dict[str, str], *, finish: str | None = None) -> str:
        return self._data({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None})

    @staticmethod
    def _data(content: dict[str, object]) -> str:
        return f"data: {json.dumps({'id': 'c1', 'object': 'chat.completion.chunk', 'created': 1} | content)}\n\n"

    @staticmethod
    def _usage(says: Says) -> dict[str, int]:
        total = (says.input_tokens or 0) + says.output_tokens
        return {"prompt_tokens": says.input_tokens or 0, "completion_tokens": says.output_tokens, "total_tokens": total}


class AnthropicFormat:
    """https://docs.claude.com/en/docs/build-with-claude/streaming"""

    def whole(self, says: Says, *, model: str) -> dict[str, object]:
        thoughts = [{"type": "thinking", "thinking": "".join(says.reasoning), "signature": "s"}]
        text = [{"type": "text", "text": "".join(says.pieces)}]
        return {
            "id": "m1", "type": "message", "role": "assistant", "model": model,
            "content": [*(thoughts if says.reasoning else []), *text],
            "stop_reason": _STOP_REASONS.get(says.finish or ""), "stop_sequence": None,
            "usage": {"input_tokens": says.input_tokens or 0, "output_tokens": says.output_tokens},
        }  # fmt: skip

    def opening(self, says: Says, *, model: str) -> Iterator[str]:
        message = self.whole(says, model=model) | {"content": [], "stop_reason": None}
        message["usage"] = {"input_tokens": says.input_tokens or 0, "output_tokens": 1}
        yield self._event("message_start", message=message)
        yield self._event("ping")

    def pieces(self, says: Says) -> Iterator[str]:
        if says.reasoning:
            block = {"type": "thinking", "thinking": "", "signature": ""}
            yield self._event("content_block_start", index=0, content_block=block)
        for thought in says.reasoning:
            delta = {"type": "thinking_delta", "thinking": thought}
            yield self._event("content_block_delta", index=0, delta=delta)
        yield self._event("content_block_start", index=1, content_block={"type": "text", "text": ""})
        for piece in says.pieces:
            yield self._event("content_block_delta", index=1, delta={"type": "text_delta", "text": piece})

    def finish(self, says: Says) -> str:
        usage = {"output_tokens": says.output_tokens}
        delta = {"stop_reason": _STOP_REASONS.get(says.finish or ""), "stop_sequence": None}
        return self._event("message_delta", delta=delta, usage=usage)

    def closing(self, says: Says, *, include_usage: bool) -> Iterator[str]:
        yield self._event("content_block_stop", index=1)
        if says.finish is not None:
            yield self.finish(says)
        if says.says_done:
            yield self._event("message_stop")

    @staticmethod
    def _event(name: str, **content: object) -> str:
        return f"event: {name}\ndata: {json.dumps({'type': name} | content)}\n\n"
