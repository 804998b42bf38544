"""Embedders that fetch their model from a hub: sentence-transformers (torch) and fastembed (ONNX); optional extras."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from rag_pipeline.embedding.embedder import EmbeddedBatch, Vectors
from rag_pipeline.embedding.pool import BusyClock
from rag_pipeline.embedding.telemetry import hold_telemetry
from rag_pipeline.embedding.tokens import count_word_pieces, encodable, word_pieces_read
from rag_pipeline.errors import ConfigError
from rag_pipeline.extras import how_to_add
from rag_pipeline.settings import Embedding

T = TypeVar("T")

_BATCH_TEXTS = 64


class _HubEmbedder(ABC):
    """What the two have in common: the model is loaded at its first use, and runs on its own threads."""

    provider: str
    recipe: str
    _module: str

    def __init__(self, settings: Embedding) -> None:
        if find_spec(self._module) is None:
            raise ConfigError(
                f"embedding.provider is {self.provider!r}, but its package is missing: {how_to_add(self.provider)}"
            )
        self.model = settings.model
        self.dimensions = settings.dimensions
        self._threads = settings.threads
        self._lock = threading.Lock()
        self._loaded: Any = None
        self._clock = BusyClock()

    @property
    def model_seconds(self) -> float:
        return self._clock.seconds

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return count_word_pieces(texts)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return word_pieces_read(texts)

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        # Of about the same length together: a batch is padded to its longest.
        order = iter(sorted(range(len(texts)), key=lambda index: -len(texts[index])))
        while indices := list(islice(order, _BATCH_TEXTS)):
            batch = [encodable(texts[index]) for index in indices]
            vectors = self._timed(self._passages, batch)
            yield EmbeddedBatch(indices=indices, vectors=vectors, tokens=sum(word_pieces_read(batch)))

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._timed(self._query, encodable(text))[0]
        return vector

    def close(self) -> None:
        self._loaded = None

    def _timed(self, work: Callable[[Any, T], Vectors], given: T) -> Vectors:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load_or_explain()
            model = self._loaded
        with self._clock.running():
            vectors = work(model, given)
        self.dimensions = vectors.shape[1]
        return vectors

    def _load_or_explain(self) -> Any:
        hold_telemetry()
        try:
            return self._load()
        except (OSError, ValueError) as error:  # what both raise for an unknown name and for an unreachable hub
            raise ConfigError(
                f"{self.provider} cannot load embedding.model {self.model!r}: {error}: "
                "check the name, and that the model hub can be reached or the model is in its cache"
            ) from error

    @abstractmethod
    def _load(self) -> Any: ...

    @abstractmethod
    def _passages(self, model: Any, texts: Sequence[str]) -> Vectors: ...

    @abstractmethod
    def _query(self, model: Any, text: str) -> Vectors: ...


class SentenceTransformersEmbedder(_HubEmbedder):
    """A model of sentence-transformers 5 or newer, with its own document and query prompts, L2-normalised."""

    provider = "sentence-transformers"
    recipe = "document/v1 l2"
    _module = "sentence_transformers"

    def _load(self) -> Any:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(self.model, truncate_dim=self.dimensions)

    def _passages(self, model: Any, texts: Sequence[str]) -> Vectors:
        vectors = model.encode_document(
            list(texts), batch_size=_BATCH_TEXTS, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)

    def _query(self, model: Any, text: str) -> Vectors:
        vectors = model.encode_query([text], normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


class FastembedEmbedder(_HubEmbedder):
    """A model of fastembed, with its passage and query forms; vectors as fastembed returns them."""

    provider = "fastembed"
    recipe = "passage/v1"
    _module = "fastembed"

    def __init__(self, settings: Embedding) -> None:
        super().__init__(settings)
        if settings.dimensions is not None:
            raise ConfigError("fastembed cannot shorten vectors: remove embedding.dimensions")

    def _load(self) -> Any:
        from fastembed import TextEmbedding

        return TextEmbedding(self.model, threads=self._threads or None)

    def _passages(self, model: Any, texts: Sequence[str]) -> Vectors:
        return np.stack(list(model.passage_embed(list(texts), batch_size=_BATCH_TEXTS))).astype(np.float32)

    def _query(self, model: Any, text: str) -> Vectors:
        return np.stack(list(model.query_embed(text))).astype(np.float32)
