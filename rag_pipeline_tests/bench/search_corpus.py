"""A corpus of any size that looks like a real one: recombined lines of real files, vectors mixed from real ones.

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
_MOST_EMBEDDED = 1_500
_REPOSITORIES = 100
"""Every hundredth document is of the same one: a filter on a repository keeps one percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Real chunks and their vectors, to make more of."""

    texts: Sequence[str]
    vectors: NDArray[np.float32]
    """Shape (texts, dimensions), normalised."""
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

    def _mixed(self, count: int, rng: random.Random, *, seed: int) -> tuple[list[str], NDArray[np.float32]]:
        """Each of lines from two real chunks, most of them from the first; its vector lies among theirs and a third's.

        Three, because on the lines between two there would be crowds of neighbours equally far away, as real texts
        do not have them.
        """
        chance = np.random.default_rng(seed)
        first, second, third = (chance.integers(0, len(self.texts), count) for _ in range(3))
        shares = np.sort(chance.dirichlet((1, 1, 1), count).astype(np.float32), axis=1)[:, ::-1]
        share = shares[:, :1]
        vectors = sum(
            part[:, None] * self.vectors[which] for part, which in zip(shares.T, (first, second, third), strict=True)
        )
        vectors = vectors + chance.normal(0, 0.05 / np.sqrt(self.vectors.shape[1]), vectors.shape)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        texts = [
            _recombined(self.texts[one], self.texts[other], float(part[0]), rng) + f" {seed + n}"
            for n, (one, other, part) in enumerate(zip(first, second, share, strict=True))
        ]
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
    """Real chunks of these files, as many as are embedded in a minute, and questions from their sentences."""
    rng = random.Random(3)
    chunks = [chunk for found in files.by_kind.values() for path, content in found for chunk in _chunks(path, content)]
    rng.shuffle(chunks)
    chunks = chunks[:_MOST_EMBEDDED]
    questions = [question for chunk in chunks if (question := _question(chunk.text))][:400]
    embedder = make_embedder(Embedding(), environ={})
    vectors = _embedded(embedder, [chunk.context + chunk.text for chunk in chunks])
    return Corpus(
        texts=[chunk.text for chunk in chunks], vectors=vectors, questions=questions,
        question_vectors=np.stack([embedder.embed_query(question) for question in questions]),
    )  # fmt: skip


def _chunks(path: str, content: bytes) -> list[Chunk]:
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
