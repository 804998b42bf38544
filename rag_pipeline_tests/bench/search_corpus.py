"""A corpus of any size that looks like a real one: recombined lines of real files, vectors between those of real lines.

Uniform random vectors would say nothing about a graph's recall, and random words nothing about postings: here the
frequencies of words and the clusters of vectors are those of the repository that the corpus is made of.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.chunking import chunk_document
from rag_pipeline.documents import clean
from rag_pipeline.embedding import make_embedder
from rag_pipeline.embedding.tokens import count_word_pieces
from rag_pipeline.index.writer import Entry
from rag_pipeline.model import Chunk, chunk_id, text_hash
from rag_pipeline.settings import Chunking, Embedding
from rag_pipeline_tests.bench.files import Files
from rag_pipeline_tests.bench.splitters import item_of

Batch = tuple[list[Entry], dict[str, NDArray[np.float32]]]
"""Documents with their chunks, and the vectors of their texts."""
TENANT = "bench"
_CHUNKS_PER_DOCUMENT = 20
_MOST_CHUNKS = 4_000
_MOST_LINES = 20_000
"""Embedded in about a minute."""
_REPOSITORIES = 100
"""Every hundredth document is of the same one: a filter on a repository keeps one percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Real chunks and their vectors, to make more of."""

    texts: Sequence[str]
    vectors: NDArray[np.float32]
    """Of real lines, of which many more can be embedded than of chunks; shape (lines, dimensions), normalised."""
    questions: Sequence[str]
    question_vectors: NDArray[np.float32]

    def batches(
        self, count: int, *, size: int = 10_000
    ) -> Iterator[tuple[list[Entry], dict[str, NDArray[np.float32]]]]:
        """Entries of `count` chunks, in batches of about `size`, with the vectors of their texts."""
        rng = random.Random(11)
        made = 0
        while made < count:
            texts, vectors = self._mixed(min(size, count - made), rng, seed=made)
            entries = [
                _entry(made // _CHUNKS_PER_DOCUMENT + n, texts[start : start + _CHUNKS_PER_DOCUMENT])
                for n, start in enumerate(range(0, len(texts), _CHUNKS_PER_DOCUMENT))
            ]
            yield entries, dict(zip(texts, vectors, strict=True))
            made += len(texts)

    def texts_of(self, number: int, count: int) -> list[str]:
        """The texts of one document, by its number alone; no other document has one of them."""
        rng = random.Random(number)
        return [
            _recombined(rng.choice(self.texts), rng.choice(self.texts), rng.uniform(0.6, 1.0), rng) + f" {number}-{n}"
            for n in range(count)
        ]

    def _mixed(self, count: int, rng: random.Random, *, seed: int) -> tuple[list[str], NDArray[np.float32]]:
        """Texts of lines from two real chunks, most of them from the first; vectors between those of two real lines."""
        chance = np.random.default_rng(seed)
        first, second = (chance.integers(0, len(self.texts), count) for _ in range(2))
        shares = chance.uniform(0.6, 1.0, count)
        texts = [
            _recombined(self.texts[one], self.texts[other], share, rng) + f" {seed + n}"
            for n, (one, other, share) in enumerate(zip(first, second, shares, strict=True))
        ]
        near, far = (chance.integers(0, len(self.vectors), count) for _ in range(2))
        part = chance.uniform(0.0, 0.3, (count, 1))
        vectors = (1 - part) * self.vectors[near] + part * self.vectors[far]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return texts, vectors.astype(np.float32)


def later(entry: Entry, day: int) -> Entry:
    """The document with every second chunk changed, `day` days on."""
    document = replace(entry.document, source_updated_at=entry.document.source_updated_at + timedelta(days=day),
                       observed_at=entry.document.observed_at + timedelta(days=day))  # fmt: skip
    chunks = []
    for number, chunk in enumerate(entry.chunks):
        text = f"{chunk.text} again {day}" if number % 2 else chunk.text
        identity = chunk_id(document.document_id, text, 0)
        chunks.append(replace(chunk, text=text, text_hash=text_hash(text), chunk_id=identity))
    text = "\n\n".join(chunk.text for chunk in chunks)
    return Entry(document=replace(document, text=text), chunks=chunks)


def corpus_of(files: Files) -> Corpus:
    """Real chunks of these files, vectors of their lines, and questions from their own sentences."""
    rng = random.Random(3)
    chunks = [
        chunk for found in files.by_kind.values() for path, content in found for chunk in chunks_of_file(path, content)
    ]
    rng.shuffle(chunks)
    chunks = chunks[:_MOST_CHUNKS]
    questions = [question for chunk in chunks if (question := _question(chunk.text))][:400]
    lines = sorted(
        {line.strip()[:200] for chunk in chunks for line in chunk.text.split("\n") if len(line.strip()) > 20}
    )
    rng.shuffle(lines)
    embedder = make_embedder(Embedding(), environ={})
    return Corpus(
        texts=[chunk.text for chunk in chunks], vectors=_embedded(embedder, lines[:_MOST_LINES]), questions=questions,
        question_vectors=np.stack([embedder.embed_query(question) for question in questions]),
    )  # fmt: skip


def chunks_of_file(path: str, content: bytes) -> list[Chunk]:
    """What the default settings make of a file."""
    return chunk_document(
        clean(item_of(path, content)), settings=Chunking(), count_tokens=count_word_pieces, context="symbols"
    )


def _embedded(embedder: object, texts: Sequence[str]) -> NDArray[np.float32]:
    vectors: NDArray[np.float32] = np.zeros((len(texts), 384), dtype=np.float32)
    for batch in embedder.embed(list(texts)):  # type: ignore[attr-defined]
        vectors[list(batch.indices)] = batch.vectors
    return vectors


def _recombined(one: str, other: str, share: float, rng: random.Random) -> str:
    lines = [line for line in one.split("\n") if rng.random() < share or len(one) < 200]
    more = [line for line in other.split("\n") if rng.random() < 1 - share]
    return "\n".join([*lines, *more]) or one


def _question(text: str) -> str:
    """The first sentence of prose in a chunk, if there is one of a question's length."""
    for line in text.split("\n"):
        words = line.strip(" #\"'*-").split()
        if 4 <= len(words) <= 16 and sum(word.isalpha() for word in words) >= 0.7 * len(words):
            return " ".join(words)
    return ""


def _entry(number: int, texts: Sequence[str]) -> Entry:
    name = f"{number}.md"
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    document = clean(item_of(name, b"x"))
    document = replace(
        document, text="\n\n".join(texts), repository=f"repository-{number % _REPOSITORIES}", path=name,
        title=f"Page {number}", source_updated_at=moment,
    )  # fmt: skip
    chunks, start, seen = [], 0, dict.fromkeys(texts, 0)
    for position, text in enumerate(texts):
        chunks.append(
            Chunk(
                tenant=TENANT, document_id=document.document_id,
                chunk_id=chunk_id(document.document_id, text, seen[text]), position=position, text=text,
                text_hash=text_hash(text), heading_path=(), start_char=start, end_char=start + len(text),
                start_line=position + 1, end_line=position + 1, tokens=len(text) // 4 + 1,
            )
        )  # fmt: skip
        seen[text] += 1
        start += len(text) + 2
    return Entry(document=document, chunks=chunks)
