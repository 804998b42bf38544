"""The reuse of known vectors: only texts without a vector are embedded, each once, and each finished part is stored.

Knows no provider and no database: both are protocols.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from uuid import UUID

from rag_pipeline.embedding.embedder import EmbeddedBatch, Embedder, Vectors
from rag_pipeline.embedding.spending import Spending, Wanted
from rag_pipeline.errors import PermanentError


class Text(NamedTuple):
    """A text that shall have a vector."""

    text_hash: UUID
    text: str
    repository: str = ""
    """Which one's account it goes on, if it has to be embedded."""


class KnownVectors(Protocol):
    """The vectors of one embedding space, by text hash."""

    def known(self, hashes: Sequence[UUID]) -> set[UUID]:
        """Those of the hashes that have a vector."""

    def store(self, hashes: Sequence[UUID], vectors: Vectors) -> int:
        """Keep the vectors, shape (len(hashes), d); returns how many were new. Storing one twice is harmless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingProgress:
    """Where `embed_missing` stands; all counts are since its start."""

    texts: int
    embedded: int
    reused: int
    failed: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingReport:
    """What `embed_missing` did: `texts == embedded + reused + repeated + len(failures)`."""

    texts: int
    """How many were given, repetitions included."""
    embedded: int
    """Texts sent through the model and stored."""
    reused: int
    """Distinct texts of a buffer that already had a vector."""
    repeated: int
    """Texts that were in the same buffer before, or were refused before."""
    tokens: int
    failures: Sequence[tuple[UUID, str]]
    seconds: float
    model_seconds: float
    """Part of `seconds` during which the model or a request was running."""


def _ignore(_: EmbeddingProgress) -> None:
    pass


def embed_missing(
    texts: Iterable[Text],
    *,
    embedder: Embedder,
    vectors: KnownVectors,
    on_progress: Callable[[EmbeddingProgress], None] = _ignore,
    spending: Spending | None = None,
    buffer_texts: int = 2048,
) -> EmbeddingReport:
    """Embed and store every text that has no vector yet.

    `texts` are read as a stream: memory is bounded by `buffer_texts`. A text that comes again is embedded once: within
    a buffer because it is merged, later because its vector is known by then. Each finished part is stored before the
    next is asked for, so a crash loses at most what was being computed. With `spending`, nothing is sent before that
    allows it, and each part is put on its account.

    Raises:
        BudgetExceeded: the next text may not be sent; those before it are stored.
        PermanentError: the embedder lost or repeated a text; and everything that `Embedder.embed` raises.
    """
    run = _Run(embedder=embedder, vectors=vectors, on_progress=on_progress, spending=spending)
    for buffer in _buffers(texts, size=buffer_texts):
        run.take(buffer)
    return run.report()


def _buffers(texts: Iterable[Text], *, size: int) -> Iterator[list[Text]]:
    buffer: list[Text] = []
    for item in texts:
        buffer.append(item)
        if len(buffer) >= size:
            yield buffer
            buffer = []
    if buffer:
        yield buffer


@dataclass(slots=True, kw_only=True)
class _Run:
    """The running totals of one `embed_missing` call."""

    embedder: Embedder
    vectors: KnownVectors
    on_progress: Callable[[EmbeddingProgress], None]
    spending: Spending | None
    texts: int = 0
    embedded: int = 0
    reused: int = 0
    repeated: int = 0
    tokens: int = 0
    failures: dict[UUID, str] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    model_started: float = field(init=False)
    seconds_on_record: float = field(init=False)

    def __post_init__(self) -> None:
        self.model_started = self.seconds_on_record = self.embedder.model_seconds

    def take(self, buffer: Sequence[Text]) -> None:
        wanted: dict[UUID, Text] = {}
        for text in buffer:
            # A refused text has no vector: without this it would be sent again each time it comes.
            if text.text_hash not in self.failures:
                wanted.setdefault(text.text_hash, text)
        known = self.vectors.known(list(wanted))
        missing = [text for text in wanted.values() if text.text_hash not in known]
        self.texts += len(buffer)
        self.repeated += len(buffer) - len(wanted)
        self.reused += len(wanted) - len(missing)
        self._tell()
        if self.spending is None:
            self._embed(missing, ())
        else:
            self._embed_allowed(missing, self.spending)

    def _embed_allowed(self, texts: Sequence[Text], spending: Spending) -> None:
        """In as few pieces as the budget allows: mostly one."""
        if not texts:
            return
        tokens = self.embedder.input_tokens([text.text for text in texts])
        wanted = [Wanted(repository=text.repository, tokens=n) for text, n in zip(texts, tokens, strict=True)]
        sent = 0
        while sent < len(texts):
            end = sent + spending.allow(wanted[sent:])
            try:
                self._embed(texts[sent:end], wanted[sent:end])
            finally:
                spending.release()
            sent = end

    def _embed(self, texts: Sequence[Text], wanted: Sequence[Wanted]) -> None:
        if not texts:
            return
        open_indices, hashes = set(range(len(texts))), [text.text_hash for text in texts]
        for batch in self.embedder.embed([text.text for text in texts]):
            answered = [*batch.indices, *(index for index, _ in batch.failures)]
            if not open_indices.issuperset(answered) or len(set(answered)) != len(answered):
                raise self._broken("answered a text twice, or one that it was not given")
            open_indices.difference_update(answered)
            if self.spending is not None:
                self._record(self.spending, batch, [wanted[index] for index in answered])
            self._store(batch, hashes)
        if open_indices:
            raise self._broken(f"left {len(open_indices)} of {len(texts)} texts without an answer")

    def _record(self, spending: Spending, batch: EmbeddedBatch, answered: Sequence[Wanted]) -> None:
        """Before it is stored: whatever becomes of it, it was paid for."""
        now = self.embedder.model_seconds
        seconds, self.seconds_on_record = now - self.seconds_on_record, now
        spending.record(answered, tokens=batch.tokens, requests=batch.requests, seconds=seconds)

    def _store(self, batch: EmbeddedBatch, hashes: Sequence[UUID]) -> None:
        if len(batch.indices):
            self.vectors.store([hashes[index] for index in batch.indices], batch.vectors)
        self.embedded += len(batch.indices)
        self.tokens += batch.tokens
        self.failures |= {hashes[index]: reason for index, reason in batch.failures}
        self._tell()

    def _broken(self, what: str) -> PermanentError:
        return PermanentError(f"embedder {self.embedder.provider}/{self.embedder.model} {what}: this is a defect in it")

    def _tell(self) -> None:
        self.on_progress(
            EmbeddingProgress(
                texts=self.texts,
                embedded=self.embedded,
                reused=self.reused,
                failed=len(self.failures),
                tokens=self.tokens,
                seconds=time.perf_counter() - self.started,
            )
        )

    def report(self) -> EmbeddingReport:
        return EmbeddingReport(
            texts=self.texts,
            embedded=self.embedded,
            reused=self.reused,
            repeated=self.repeated,
            tokens=self.tokens,
            failures=list(self.failures.items()),
            seconds=time.perf_counter() - self.started,
            model_seconds=self.embedder.model_seconds - self.model_started,
        )
