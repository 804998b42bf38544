"""The reuse of known vectors: only texts without a vector are embedded, each once, and each finished part is stored.

Knows no provider and no database: both are protocols.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from rag_pipeline.embedding.embedder import EmbeddedBatch, Embedder, Vectors
from rag_pipeline.errors import PermanentError


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
    texts: Iterable[tuple[UUID, str]],
    *,
    embedder: Embedder,
    vectors: KnownVectors,
    on_progress: Callable[[EmbeddingProgress], None] = _ignore,
    buffer_texts: int = 2048,
) -> EmbeddingReport:
    """Embed and store every text that has no vector yet.

    `texts` are (text hash, text) and are read as a stream: memory is bounded by `buffer_texts`. A text that comes
    again is embedded once: within a buffer because it is merged, later because its vector is known by then.
    Each finished part is stored before the next is asked for, so a crash loses at most what was being computed.

    Raises:
        PermanentError: the embedder lost or repeated a text; and everything that `Embedder.embed` raises.
    """
    run = _Run(embedder=embedder, vectors=vectors, on_progress=on_progress)
    for buffer in _buffers(texts, size=buffer_texts):
        run.take(buffer)
    return run.report()


def _buffers(texts: Iterable[tuple[UUID, str]], *, size: int) -> Iterator[list[tuple[UUID, str]]]:
    buffer: list[tuple[UUID, str]] = []
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
    texts: int = 0
    embedded: int = 0
    reused: int = 0
    repeated: int = 0
    tokens: int = 0
    failures: dict[UUID, str] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    model_started: float = field(init=False)

    def __post_init__(self) -> None:
        self.model_started = self.embedder.model_seconds

    def take(self, buffer: Sequence[tuple[UUID, str]]) -> None:
        # A refused text has no vector: without this it would be sent again each time it comes.
        wanted = {text_hash: text for text_hash, text in buffer if text_hash not in self.failures}
        known = self.vectors.known(list(wanted))
        missing = {text_hash: text for text_hash, text in wanted.items() if text_hash not in known}
        self.texts += len(buffer)
        self.repeated += len(buffer) - len(wanted)
        self.reused += len(wanted) - len(missing)
        self._tell()
        if missing:
            self._embed(list(missing), list(missing.values()))

    def _embed(self, hashes: Sequence[UUID], texts: Sequence[str]) -> None:
        open_indices = set(range(len(hashes)))
        for batch in self.embedder.embed(texts):
            answered = [*batch.indices, *(index for index, _ in batch.failures)]
            if not open_indices.issuperset(answered) or len(set(answered)) != len(answered):
                raise self._broken("answered a text twice, or one that it was not given")
            open_indices.difference_update(answered)
            self._store(batch, hashes)
        if open_indices:
            raise self._broken(f"left {len(open_indices)} of {len(hashes)} texts without an answer")

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
