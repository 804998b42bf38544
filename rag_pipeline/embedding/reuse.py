"""The reuse of known vectors: only texts without a vector are embedded, each once, and each finished part is stored.

Knows no provider and no database: both are protocols.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, runtime_checkable
from uuid import UUID

from rag_pipeline.embedding.embedder import (
    BUFFER_TEXTS,
    ChoosyEmbedder,
    EmbeddedBatch,
    Embedder,
    Vectors,
    embed_stream,
)
from rag_pipeline.embedding.spending import Spending, Wanted
from rag_pipeline.errors import BudgetExceeded, PermanentError


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


@runtime_checkable
class SharedVectors(Protocol):
    """Known vectors that several runs add to at once; each text is embedded by one of them."""

    def claim(self, hashes: Sequence[UUID]) -> tuple[set[UUID], set[UUID]]:
        """Those that have a vector, and those that another run embeds just now; the others are this run's."""

    def settle(self, hashes: Sequence[UUID]) -> None:
        """These are this run's no more: they have a vector by now, or the model refuses them."""


@runtime_checkable
class PartialVectors(Protocol):
    """Known vectors of a model that cannot read every text."""

    def set_unreadable(self, hashes: Sequence[UUID]) -> None:
        """These texts have no vector, and lack none."""


_MOST_ELSEWHERE: Final = 4
"""Buffers full of texts that other runs embed: more are not held while the rest is done."""
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingProgress:
    """Where `embed_missing` stands; all counts are since its start."""

    texts: int
    embedded: int
    reused: int
    unreadable: int
    failed: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingReport:
    """What `embed_missing` did: `texts == embedded + reused + repeated + unreadable + len(failures)`."""

    texts: int
    """How many were given, repetitions included."""
    embedded: int
    """Texts sent through the model and stored."""
    reused: int
    """Distinct texts of a buffer that already had a vector."""
    repeated: int
    """Texts that were in the same buffer before, were under way, or were refused before."""
    unreadable: int
    """Distinct texts of a buffer of whose words the model knows too few: they get no vector."""
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
    buffer_texts: int = BUFFER_TEXTS,
    sleep: Callable[[float], object] = time.sleep,
) -> EmbeddingReport:
    """Embed and store every text that has no vector yet and that the model can read.

    `texts` are read as a stream, `buffer_texts` at a time and only as far ahead as the embedder has work under way:
    memory does not grow with them. A text that comes again is embedded once: merged with the one that is under way, or
    known by then. Each finished part is stored before the next is asked for, so a crash loses at most what was being
    computed. With `spending`, nothing is sent before that allows it, and each part is put on its account.

    Texts that another run embeds just now (`SharedVectors`) come last: they have a vector by then, or are embedded here
    because that run has ended, or was refused them. Nothing is waited for while this run has texts under way, so two
    runs never wait for each other.

    Raises:
        BudgetExceeded: the next text may not be sent; those before it are stored.
        PermanentError: the embedder lost or repeated a text; and everything that `Embedder.embed` raises.
    """
    run = _Run(
        embedder=embedder,
        vectors=vectors,
        on_progress=on_progress,
        spending=spending,
        buffer_texts=buffer_texts,
        sleep=sleep,
    )
    run.take(texts)
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


class _Sent(NamedTuple):
    """A text that the embedder has and did not answer yet."""

    text_hash: UUID
    wanted: Wanted | None


@dataclass(slots=True, kw_only=True)
class _Run:
    """The running totals of one `embed_missing` call."""

    embedder: Embedder
    vectors: KnownVectors
    on_progress: Callable[[EmbeddingProgress], None]
    spending: Spending | None
    buffer_texts: int
    sleep: Callable[[float], object]
    texts: int = 0
    embedded: int = 0
    reused: int = 0
    repeated: int = 0
    unreadable: int = 0
    tokens: int = 0
    failures: dict[UUID, str] = field(default_factory=dict)
    open: dict[int, _Sent] = field(default_factory=dict)
    """By what the embedder calls them; empty between two streams."""
    waiting: Sequence[Text] = ()
    """Texts that the budget did not hold while others were under way."""
    elsewhere: dict[UUID, Text] = field(default_factory=dict)
    """Texts that another run embeds."""
    started: float = field(default_factory=time.perf_counter)
    model_started: float = field(init=False)
    seconds_on_record: float = field(init=False)

    def __post_init__(self) -> None:
        self.model_started = self.seconds_on_record = self.embedder.model_seconds

    def take(self, texts: Iterable[Text]) -> None:
        """One stream, or several: where the budget makes them wait until it is known what those before them cost."""
        buffers = self._missing(texts)
        while self._has_more(buffers):
            try:
                self._embed(self._stream(buffers))
            finally:
                if self.spending is not None:
                    self.spending.release()

    def _has_more(self, buffers: Iterator[Sequence[Text]]) -> bool:
        """Whether there are texts to be sent; False, too, while others must be answered before it is known."""
        self.waiting = self.waiting or next(buffers, ())
        return bool(self.waiting)

    def _missing(self, texts: Iterable[Text]) -> Iterator[Sequence[Text]]:
        """Of each buffer the texts to be sent, if there are any; nothing, while others must be answered first."""
        for buffer in _buffers(texts, size=self.buffer_texts):
            wanted = self._wanted(buffer)
            missing = self._claimed(wanted)
            self.reused += len(wanted) - len(missing) - sum(text_hash in self.elsewhere for text_hash in wanted)
            self._tell()
            if missing:
                yield missing
            yield from self._from_elsewhere(most=_MOST_ELSEWHERE * self.buffer_texts)
        yield from self._from_elsewhere(most=0)

    def _wanted(self, buffer: Sequence[Text]) -> dict[UUID, Text]:
        """The texts of a buffer that shall have a vector: each once, and only what the model can read."""
        settled = {sent.text_hash for sent in self.open.values()} | self.elsewhere.keys()
        wanted: dict[UUID, Text] = {}
        for text in buffer:
            # A refused text has no vector: without this it would be sent again each time it comes.
            if text.text_hash not in self.failures and text.text_hash not in settled:
                wanted.setdefault(text.text_hash, text)
        self.texts += len(buffer)
        self.repeated += len(buffer) - len(wanted)
        if isinstance(self.embedder, ChoosyEmbedder) and isinstance(self.vectors, PartialVectors):
            readable = self.embedder.readable([text.text for text in wanted.values()])
            unreadable = [text_hash for text_hash, reads in zip(wanted, readable, strict=True) if not reads]
            if unreadable:
                self.vectors.set_unreadable(unreadable)
                self.unreadable += len(unreadable)
                for text_hash in unreadable:
                    del wanted[text_hash]
        return wanted

    def _claimed(self, wanted: dict[UUID, Text]) -> list[Text]:
        """Those that this run has to embed; what another one embeds goes to `elsewhere`."""
        if isinstance(self.vectors, SharedVectors):
            known, others = self.vectors.claim(list(wanted))
            self.elsewhere |= {text_hash: wanted[text_hash] for text_hash in others}
        else:
            known, others = self.vectors.known(list(wanted)), set()
        return [text for text_hash, text in wanted.items() if text_hash not in known and text_hash not in others]

    def _from_elsewhere(self, *, most: int) -> Iterator[Sequence[Text]]:
        """Wait until other runs embed no more than `most` of our texts; what they leave to us is to be sent."""
        pause = _FIRST_PAUSE_S
        while len(self.elsewhere) > most:
            while self.open:
                # Another run may be waiting for what we have under way: first that is stored.
                yield ()
            left, self.elsewhere = self.elsewhere, {}
            ours = self._claimed(left)
            self.reused += (settled := len(left) - len(ours) - len(self.elsewhere))
            if ours:
                yield ours
            if ours or settled:
                self._tell()
                pause = _FIRST_PAUSE_S
            else:
                self.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _stream(self, buffers: Iterator[Sequence[Text]]) -> Iterator[str]:
        """Texts for as long as the budget holds the next; what it does not hold is left in `waiting`."""
        sent = 0
        while self._has_more(buffers):
            try:
                wanted = self._allowed(self.waiting)
            except BudgetExceeded:
                if self.open:
                    return  # what is under way may cost less than was set aside for it
                raise
            allowed, self.waiting = self.waiting[: len(wanted)], self.waiting[len(wanted) :]
            for text, one in zip(allowed, wanted, strict=True):
                self.open[sent] = _Sent(text.text_hash, one)
                sent += 1
            yield from (text.text for text in allowed)
            if self.waiting or (self.spending is not None and self.spending.is_guessing):
                return

    def _allowed(self, texts: Sequence[Text]) -> Sequence[Wanted | None]:
        """Of the first texts, as many as the budget holds: what is set aside for them."""
        if self.spending is None:
            return [None] * len(texts)
        tokens = self.embedder.input_tokens([text.text for text in texts])
        wanted = [Wanted(repository=text.repository, tokens=n) for text, n in zip(texts, tokens, strict=True)]
        return wanted[: self.spending.allow(wanted)]

    def _embed(self, texts: Iterator[str]) -> None:
        for batch in embed_stream(self.embedder, texts, buffer_texts=self.buffer_texts):
            answered = [*batch.indices, *(index for index, _ in batch.failures)]
            if not self.open.keys() >= set(answered) or len(set(answered)) != len(answered):
                raise self._broken("answered a text twice, or one that it was not given")
            if self.spending is not None:
                self._record(self.spending, batch, [self.open[index].wanted for index in answered])
            self._store(batch)
            for index in answered:
                del self.open[index]
        if self.open:
            raise self._broken(f"left {len(self.open)} texts without an answer")

    def _record(self, spending: Spending, batch: EmbeddedBatch, answered: Sequence[Wanted | None]) -> None:
        """Before it is stored: whatever becomes of it, it was paid for."""
        now = self.embedder.model_seconds
        seconds, self.seconds_on_record = now - self.seconds_on_record, now
        wanted = [one for one in answered if one is not None]
        spending.record(wanted, tokens=batch.tokens, requests=batch.requests, seconds=seconds)

    def _store(self, batch: EmbeddedBatch) -> None:
        if len(batch.indices):
            self.vectors.store([self.open[index].text_hash for index in batch.indices], batch.vectors)
        if isinstance(self.vectors, SharedVectors):
            answered = [*batch.indices, *(index for index, _ in batch.failures)]
            self.vectors.settle([self.open[index].text_hash for index in answered])
        self.embedded += len(batch.indices)
        self.tokens += batch.tokens
        self.failures |= {self.open[index].text_hash: reason for index, reason in batch.failures}
        self._tell()

    def _broken(self, what: str) -> PermanentError:
        return PermanentError(f"embedder {self.embedder.provider}/{self.embedder.model} {what}: this is a defect in it")

    def _tell(self) -> None:
        self.on_progress(
            EmbeddingProgress(
                texts=self.texts,
                embedded=self.embedded,
                reused=self.reused,
                unreadable=self.unreadable,
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
            unreadable=self.unreadable,
            tokens=self.tokens,
            failures=list(self.failures.items()),
            seconds=time.perf_counter() - self.started,
            model_seconds=self.embedder.model_seconds - self.model_started,
        )
