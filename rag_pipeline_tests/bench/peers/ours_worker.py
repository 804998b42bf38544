"""`rag-pipeline` with its embedder counted, or replaced by the fake one: everything else is as a user runs it.

`python -m rag_pipeline_tests.bench.peers.ours_worker COUNTS MODEL materialize --json` writes to the file COUNTS what
was asked of the model, and the seconds of what the command does before its run (of which `ready_storage`, within
`prepare`, is Dagster's).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rag_pipeline.embedding.embedder as embedders
from rag_pipeline.embedding.embedder import EmbeddedBatch, Embedder, Vectors, embed_stream
from rag_pipeline_tests.bench.peers.models import DIMENSIONS, Counted, Counts, Fake
from rag_pipeline_tests.bench.wordwise import Wordwise

if TYPE_CHECKING:
    from rag_pipeline.settings import Embedding

_TEXTS = 256


class FakeEmbedder(Wordwise):
    """The fake model as an embedder."""

    provider = "local"
    model = "fake"
    recipe = "words/v1"
    dimensions: int | None = DIMENSIONS

    def __init__(self, model: Counted) -> None:
        self._model = model

    @property
    def model_seconds(self) -> float:
        return self._model.counts.seconds

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        for start in range(0, len(texts), _TEXTS):
            indices = range(start, min(start + _TEXTS, len(texts)))
            yield EmbeddedBatch(indices=indices, vectors=self._model.passages([texts[n] for n in indices]), tokens=0)

    def embed_query(self, text: str) -> Vectors:
        return self._model.question(text)


class CountedEmbedder:
    """An embedder, and what is asked of it."""

    def __init__(self, embedder: Embedder, counts: Counts) -> None:
        self._embedder, self._counts = embedder, counts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        return self._counted(self._embedder.embed(list(self._read(texts))))

    def embed_stream(self, texts: Iterable[str]) -> Iterator[EmbeddedBatch]:
        """One call, however many texts come."""
        return self._counted(embed_stream(self._embedder, self._read(texts)))

    def _counted(self, batches: Iterator[EmbeddedBatch]) -> Iterator[EmbeddedBatch]:
        called = False
        for batch in batches:
            self._counts.calls += not called
            called = True
            self._counts.texts += len(batch.indices)
            self._counts.tokens += batch.tokens
            yield batch

    def _read(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            self._counts.characters += len(text)
            yield text


def main(arguments: Sequence[str]) -> None:
    """See the module."""
    file, model, *command = arguments
    counts = _counted(fake=model == "fake")
    before: dict[str, float] = {}
    import rag_pipeline.cli.runs as runs
    from rag_pipeline.cli import main as rag_pipeline_main

    for name in ("ready_storage", "prepare", "plan_refresh"):
        setattr(runs, name, _timed(getattr(runs, name), name, before))
    sys.argv = ["rag-pipeline", *command]
    try:
        rag_pipeline_main()
    finally:
        counts.save(Path(file), before=before)


def _counted(*, fake: bool) -> Counts:
    """Replace the one place that picks a provider."""
    if fake:
        model = Counted(Fake())
        embedders._provider = lambda settings, environ: FakeEmbedder(model)
        return model.counts
    counts, real = Counts(), embedders._provider

    def provider(settings: Embedding, environ: Mapping[str, str]) -> Embedder:
        return CountedEmbedder(real(settings, environ), counts)  # type: ignore[return-value]

    embedders._provider = provider
    return counts


def _timed(function: Callable[..., Any], name: str, seconds: dict[str, float]) -> Callable[..., Any]:
    def timed(*arguments: Any, **more: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments, **more)
        finally:
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - started

    return timed


if __name__ == "__main__":
    main(sys.argv[1:])
