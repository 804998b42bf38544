"""The embedder for OpenAI, Azure OpenAI and all that speaks their API: Ollama, vLLM, LiteLLM, …."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from rag_pipeline.embedding.concurrency import AdaptiveLimit
from rag_pipeline.embedding.embedder import EmbeddedBatch, Vectors
from rag_pipeline.embedding.openai_service import EmbeddingService, ServedVectors
from rag_pipeline.embedding.pool import BusyClock, Workers, run_ahead
from rag_pipeline.embedding.tokens import encodable, encoding_counter, encoding_name, load_encoding
from rag_pipeline.errors import ConfigError, DimensionMismatch, ItemError, TransientError
from rag_pipeline.remote.retry import LONGEST_RETRY_AFTER_S, retrying
from rag_pipeline.settings import Embedding

BLANK = "."
"""Sent for a text without a visible character: services answer 400 to an empty one."""

_QUERY_RETRIES = 2
_QUERY_TIMEOUT_S = 10.0
_MOST_BLAMED = 8
"""Texts that are refused in a row before a harmless one has to be accepted again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """One request's texts, as they are sent."""

    indices: Sequence[int]
    texts: Sequence[str]
    tokens: Sequence[int]

    def part(self, start: int, end: int) -> _Batch:
        return _Batch(indices=self.indices[start:end], texts=self.texts[start:end], tokens=self.tokens[start:end])


class OpenAIEmbedder:
    """Vectors from an OpenAI-compatible service, as it returns them.

    Inputs longer than `max_input_tokens` are cut there, blank ones are sent as `BLANK`. Up to `concurrency` requests
    run at once, fewer while the service is overloaded. What may pass is retried with backoff; a batch that the service
    refuses is halved until the text at fault is alone, and only that one fails; if none was at fault, later batches are
    as small as those that it took. `sleep` and `jitter` are for tests.
    """

    def __init__(
        self,
        settings: Embedding,
        *,
        environ: Mapping[str, str],
        sleep: Callable[[float], object] | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.provider: str = settings.provider
        self.model = settings.model
        self.dimensions = settings.dimensions
        self._encoding = encoding_name(settings.model)
        self.recipe = f"text/v1 truncate={settings.max_input_tokens} {self._encoding} blank={BLANK}"
        self._settings = settings
        self._service = EmbeddingService(settings, environ=environ)
        self._sleep = sleep
        self._jitter = jitter
        self._lock = threading.Lock()
        self._pool = Workers(settings.concurrency, name="embed")
        self._limit = AdaptiveLimit(settings.concurrency)
        self._most_texts = settings.batch_texts
        self._clock = BusyClock()
        self._answered = False
        self._blamed = 0  # texts that were refused, one by one, since the last answer
        self._resume_at = 0.0

    @property
    def model_seconds(self) -> float:
        return self._clock.seconds

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return encoding_counter(self._encoding)(texts)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return [tokens for _, tokens in map(self._input, texts)]

    def embed_query(self, text: str) -> Vectors:
        sent, _ = self._input(text)
        retries = min(_QUERY_RETRIES, self._settings.max_retries)
        timeout_s = min(_QUERY_TIMEOUT_S, self._settings.timeout_s)
        served = self._ask([sent], stopped=threading.Event(), max_retries=retries, timeout_s=timeout_s)
        if not served.usable[0]:
            raise ItemError(f"model {self.model!r} returned no usable vector for the question: rephrase it")
        vector: Vectors = served.vectors[0]
        return vector

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        return self.embed_stream(texts)

    def embed_stream(self, texts: Iterable[str]) -> Iterator[EmbeddedBatch]:
        """See `StreamingEmbedder`: at most twice as many batches are held as requests may be under way."""
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            self._limit.wake()

        return run_ahead(
            self._pool,
            partial(self._embed_batch, stopped=stopped),
            self._batches(texts),
            # Twice the concurrency: requests go on while the caller stores what is finished.
            ahead=2 * self._settings.concurrency,
            on_error=stop,
        )

    def close(self) -> None:
        # Whoever still waits for an answer is left alone with it: after Ctrl-C nobody waits for a server that hangs.
        self._pool.close(then=self._service.close)

    def _batches(self, texts: Iterable[str]) -> Iterator[_Batch]:
        """Batches of at most `batch_texts` texts and `batch_tokens` tokens; a longer single text goes alone."""
        batch: list[tuple[int, str, int]] = []
        total = 0
        for index, text in enumerate(texts):
            sent, tokens = self._input(text)
            if batch and (len(batch) >= self._most_texts or total + tokens > self._settings.batch_tokens):
                yield _batch(batch)
                batch, total = [], 0
            batch.append((index, sent, tokens))
            total += tokens
        if batch:
            yield _batch(batch)

    def _input(self, text: str) -> tuple[str, int]:
        """What is sent for a text, and its length in tokens."""
        text = encodable(text)
        if not text.strip():
            return BLANK, 1
        encoding = load_encoding(self._encoding)
        tokens = encoding.encode_ordinary(text)
        limit = self._settings.max_input_tokens
        if len(tokens) <= limit:
            return text, len(tokens)
        # "ignore": the cut may fall inside a character.
        cut = encoding.decode(tokens[:limit], errors="ignore")
        return (cut, limit) if cut.strip() else (BLANK, 1)

    def _embed_batch(self, batch: _Batch, *, stopped: threading.Event) -> EmbeddedBatch:
        try:
            served = self._ask(
                batch.texts,
                stopped=stopped,
                max_retries=self._settings.max_retries,
                timeout_s=self._settings.timeout_s,
            )
        except ItemError as refusal:
            self._check_that_input_is_at_fault(stopped=stopped)
            if len(batch.texts) == 1:
                self._blamed += 1
                return _failed(batch.indices[0], self._advice(str(refusal)))
            middle = len(batch.texts) // 2
            halves = batch.part(0, middle), batch.part(middle, len(batch.texts))
            joined = _joined([self._embed_batch(half, stopped=stopped) for half in halves])
            if not joined.failures:
                # No text was at fault, so there were too many of them. Several threads may find so: the least counts.
                self._most_texts = min(self._most_texts, len(batch.texts) - middle)
            return joined
        return _answered(batch, served)

    def _ask(
        self, texts: Sequence[str], *, stopped: threading.Event, max_retries: int, timeout_s: float
    ) -> ServedVectors:
        """One request with its retries; vectors that stay unusable are marked so when the others are good."""
        last: ServedVectors | None = None
        sleep = self._sleep or stopped.wait

        def call() -> ServedVectors:
            nonlocal last
            last = None
            last = self._request(texts, sleep=sleep, stopped=stopped, timeout_s=timeout_s)
            if not last.usable.all():
                bad = int((~last.usable).sum())
                raise TransientError(
                    f"{self._service.url} returned {bad} of {len(texts)} vectors with NaN, infinity or only zeros "
                    f"for model {self.model!r}: check the model"
                )
            return last

        try:
            return retrying(call, max_retries=max_retries, sleep=sleep, stopped=stopped, jitter=self._jitter)
        except TransientError:
            # One text that the model cannot handle must not stop the others; a model that is broken must.
            lone = len(texts) == 1 and self._answered
            if last is None or not (last.usable.any() or lone):
                raise
            return last

    def _request(
        self, texts: Sequence[str], *, sleep: Callable[[float], object], stopped: threading.Event, timeout_s: float
    ) -> ServedVectors:
        # When one request is told to wait, the others wait too instead of being refused one by one.
        if (pause := self._resume_at - time.monotonic()) > 0:
            sleep(pause)
        try:
            with self._limit.slot(stopped) as slot, self._clock.running():
                try:
                    served = self._service.request(texts, timeout_s=timeout_s)
                    self._limit.answered(slot)
                except TransientError as error:
                    if error.overloaded:
                        self._limit.refused(slot)
                    raise
        except TransientError as error:
            if error.retry_after_s is not None and error.retry_after_s <= LONGEST_RETRY_AFTER_S:
                self._resume_at = max(self._resume_at, time.monotonic() + error.retry_after_s)
            raise
        self._check_length(served.vectors.shape[1])
        if served.usable.any():
            self._answered, self._blamed = True, 0
        return served

    def _check_length(self, got: int) -> None:
        with self._lock:
            self.dimensions = self.dimensions or got
            if got != self.dimensions:
                raise DimensionMismatch(
                    f"model {self.model!r} at {self._service.url} returned {got} dimensions, expected "
                    f"{self.dimensions}: set embedding.dimensions to {got} or remove it, or check embedding.model"
                )

    def _check_that_input_is_at_fault(self, *, stopped: threading.Event) -> None:
        """Before texts are blamed for a refusal: a harmless one must be accepted.

        Otherwise a wrong setting would cost two requests a text, and quarantine the whole corpus; so would a service
        that was right at first. Its answers prove nothing any more once so many texts in a row were refused.
        """
        if self._answered and self._blamed < _MOST_BLAMED:
            return
        settings = self._settings
        try:
            self._ask(["ok"], stopped=stopped, max_retries=settings.max_retries, timeout_s=settings.timeout_s)
        except ItemError as refusal:
            raise ConfigError(
                f"{self._service.url} refuses every request for model {self.model!r}: {refusal}: "
                "check embedding.model, embedding.dimensions and embedding.base_url"
            ) from refusal

    def _advice(self, reason: str) -> str:
        too_long = any(word in reason.lower() for word in ("token", "length", "too long", "context"))
        return f"{reason} (lower embedding.max_input_tokens)" if too_long else reason


def _batch(items: Sequence[tuple[int, str, int]]) -> _Batch:
    return _Batch(indices=[i for i, _, _ in items], texts=[t for _, t, _ in items], tokens=[n for _, _, n in items])


def _answered(batch: _Batch, served: ServedVectors) -> EmbeddedBatch:
    good, bad = np.flatnonzero(served.usable).tolist(), np.flatnonzero(~served.usable).tolist()
    return EmbeddedBatch(
        indices=[batch.indices[row] for row in good],
        vectors=served.vectors[good],
        tokens=served.tokens if served.tokens is not None else sum(batch.tokens),
        failures=[(batch.indices[row], "the model returned NaN, infinity or only zeros") for row in bad],
        requests=1,
    )


def _failed(index: int, reason: str) -> EmbeddedBatch:
    nothing = np.empty((0, 0), dtype=np.float32)
    return EmbeddedBatch(indices=[], vectors=nothing, tokens=0, failures=[(index, reason)], requests=1)


def _joined(parts: Sequence[EmbeddedBatch]) -> EmbeddedBatch:
    vectors = [part.vectors for part in parts if len(part.indices)]
    return EmbeddedBatch(
        indices=[index for part in parts for index in part.indices],
        vectors=np.concatenate(vectors) if vectors else np.empty((0, 0), dtype=np.float32),
        tokens=sum(part.tokens for part in parts),
        failures=[failure for part in parts for failure in part.failures],
        requests=1 + sum(part.requests for part in parts),  # the one that was refused, too
    )
