"""A git repository of any number of pages that look like real ones, and commits of a fixed size on top of it.

Pages are lines of real chunks, recombined; a text's vector lies between those of two real lines, chosen by the text
alone, so that the pipeline itself can ask for it. Uniform random vectors would say nothing about a graph.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.embedding import EmbeddedBatch
from rag_pipeline.embedding.embedder import Vectors
from rag_pipeline_tests.bench.git_import import commit_files, new_repository
from rag_pipeline_tests.bench.search_corpus import Corpus, chunks_of_file
from rag_pipeline_tests.bench.wordwise import Wordwise

EDITED, ADDED, DELETED = 50, 10, 10
"""Pages of one commit, whatever the size of the repository."""
ROUNDS = 6
"""Such commits that there are; the first warms caches."""
_TEXTS_PER_PAGE = 18
_PAGES_PER_FOLDER = 500
_SAMPLE = 60


class ProjectedEmbedder(Wordwise):
    """A text's vector lies between those of two real lines that its hash chooses: clustered as theirs, and instant."""

    provider = "local"
    model = "projected"
    recipe = "projected/v1"
    model_seconds = 0.0

    def __init__(self, lines: NDArray[np.float32]) -> None:
        """`lines`: normalised vectors of real lines, of shape (lines, dimensions)."""
        self._lines = lines
        self.dimensions: int | None = lines.shape[1]

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        for start in range(0, len(texts), 256):
            indices = range(start, min(start + 256, len(texts)))
            yield EmbeddedBatch(indices=indices, vectors=self._vectors([texts[i] for i in indices]), tokens=0)

    def embed_query(self, text: str) -> Vectors:
        found: Vectors = self._vectors([text])[0]
        return found

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        digests = b"".join(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=24).digest() for text in texts)
        chance = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 3)
        near, far = (self._lines[(chance[:, n] % len(self._lines)).astype(np.int64)] for n in (0, 1))
        part = (chance[:, 2:] / 2.0**64 * 0.3).astype(np.float32)
        mixed = (1 - part) * near + part * far
        return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True), dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A bare repository of `pages` pages, and what comes after them."""

    folder: Path
    corpus: Corpus
    pages: int

    def fill(self, days: Sequence[date]) -> None:
        """Commit all pages, as many on each of these days."""
        new_repository(self.folder)
        each = -(-self.pages // len(days))
        commits = (
            (
                datetime.combine(day, time(12), UTC),
                {_path(n): self.page(n) for n in range(at, min(at + each, self.pages))},
            )
            for day, at in zip(days, range(0, self.pages, each), strict=False)
        )
        commit_files(self.folder, commits, is_empty=True)

    def change(self, round_: int, at: datetime) -> None:
        """The commit number `round_`: a sentence in each of 50 pages, 10 pages more, 10 pages less.

        No page is changed twice in `ROUNDS` rounds, so that each does as much as the others.
        """
        size = EDITED + DELETED
        order = random.Random(5).sample(range(self.pages), self.pages)
        at_first = round_ % (self.pages // size) * size
        chosen = order[at_first : at_first + size]
        files: dict[str, str | None] = {_path(n): self.page(n, later=round_ + 1) for n in chosen[:EDITED]}
        files |= {_path(n): None for n in chosen[EDITED:]}
        first = self.pages + round_ * ADDED
        files |= self._pages(range(first, first + ADDED))
        commit_files(self.folder, [(at, files)])

    def _pages(self, numbers: Iterable[int]) -> dict[str, str | None]:
        return {_path(number): self.page(number) for number in numbers}

    def page(self, number: int, *, later: int = 0) -> str:
        """A page; `later`: with a sentence more in the middle, one for each number."""
        texts = self.corpus.texts_of(number, _TEXTS_PER_PAGE)
        if later:
            texts[len(texts) // 2] += f"\n\nThis sentence about zebras was written in round {later}."
        parts = (f"## Part {n} of page {number}\n\n{text}\n" for n, text in enumerate(texts))
        return f"# Page {number}\n\n" + "\n".join(parts)


def _path(number: int) -> str:
    return f"docs/{number // _PAGES_PER_FOLDER:04}/{number:07}.md"


def source_of(corpus: Corpus, folder: Path, *, chunks: int) -> Source:
    """A repository that makes about so many chunks."""
    source = Source(folder=folder, corpus=corpus, pages=0)
    made = fmean(len(chunks_of_file(f"{n}.md", source.page(n).encode("utf-8", "replace"))) for n in range(_SAMPLE))
    return Source(folder=folder, corpus=corpus, pages=max(ROUNDS * (EDITED + DELETED), round(chunks / made)))


def days_before(today: date, count: int) -> list[date]:
    """So many days up to yesterday."""
    return [today - timedelta(days=n) for n in range(count, 0, -1)]
