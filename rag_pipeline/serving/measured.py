"""What is measured without those who are measured knowing of it: requests, and calls of language models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_pipeline.answering.language_model import LanguageModel, Piece
from rag_pipeline.answering.language_model import Message as Turn
from rag_pipeline.errors import ConfigError, PermanentError, TransientError
from rag_pipeline.serving.metrics import Metrics

_UNMATCHED = "other"
_GONE = 499  # whoever asked did not wait for the answer


class MeasuredApp:
    """ASGI middleware that counts requests and how long they take, by the template of their route."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, clock: Callable[[], float] = time.perf_counter) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, started = _GONE, self._clock()

        async def listening(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.begun()
        try:
            await self._app(scope, receive, listening)
        except Exception:
            status = 500
            raise
        finally:
            self._metrics.ended()
            self._metrics.request(
                route=_template(scope), method=scope["method"], status=status, seconds=self._clock() - started
            )


def _template(scope: Scope) -> str:
    """What the path was matched by, as it was written down: paths themselves are without number."""
    found = getattr(scope.get("route"), "path", None)
    return found if isinstance(found, str) else _UNMATCHED


class MeasuredModel:
    """A language model whose calls are timed."""

    def __init__(self, model: LanguageModel, metrics: Metrics) -> None:
        self._model = model
        self._metrics = metrics
        self.name = model.name

    def stream(self, messages: Sequence[Turn], *, max_tokens: int, timeout_s: float) -> Iterator[Piece]:
        """See `LanguageModel`."""
        started, has_begun = time.perf_counter(), False
        with self._judged():
            for piece in self._model.stream(messages, max_tokens=max_tokens, timeout_s=timeout_s):
                if not has_begun and piece.text:
                    has_begun = True
                    self._metrics.took("model_first_word", time.perf_counter() - started)
                yield piece
        self._metrics.took("model", time.perf_counter() - started)

    def complete(self, messages: Sequence[Turn], *, max_tokens: int, timeout_s: float) -> Piece:
        """See `LanguageModel`."""
        started = time.perf_counter()
        with self._judged():
            piece = self._model.complete(messages, max_tokens=max_tokens, timeout_s=timeout_s)
        self._metrics.took("model", time.perf_counter() - started)
        return piece

    def close(self) -> None:
        """See `LanguageModel`."""
        self._model.close()

    @contextmanager
    def _judged(self) -> Iterator[None]:
        try:
            yield
        except TransientError:
            self._metrics.model_failed("transient")
            raise
        except ConfigError:
            self._metrics.model_failed("config")
            raise
        except PermanentError:
            self._metrics.model_failed("permanent")
            raise
        except Exception:
            self._metrics.model_failed("other")
            raise
