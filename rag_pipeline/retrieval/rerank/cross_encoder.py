"""Cross-encoders that fetch their model from a hub: of sentence-transformers (torch) or fastembed (ONNX).

Both are optional extras. A cross-encoder reads question and passage as one text (Nogueira and Cho 2019,
https://arxiv.org/abs/1901.04085).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from rag_pipeline.embedding.telemetry import hold_telemetry
from rag_pipeline.embedding.tokens import encodable
from rag_pipeline.errors import ConfigError, PermanentError
from rag_pipeline.extras import how_to_add
from rag_pipeline.model import SearchHit
from rag_pipeline.retrieval.rerank.reranker import Reranker, passage_of
from rag_pipeline.settings import Rerank

_BATCH_PASSAGES: Final = 16


class _CrossEncoder(ABC):
    """What the two have in common: the model is loaded at its first use, and used by one thread at a time."""

    library: str
    default_model: str

    def __init__(self, settings: Rerank) -> None:
        self.model = settings.model or self.default_model
        self.name = f"{self.library} {self.model}"
        self._threads = settings.threads or None
        self._lock = threading.Lock()
        self._loaded: Any = None

    def scores(self, question: str, hits: Sequence[SearchHit]) -> list[float]:
        passages = [passage_of(hit) for hit in hits]
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load_or_explain()
            found = self._predict(self._loaded, encodable(question), passages)
        scores = np.asarray(found, dtype=np.float64)
        if scores.size != len(passages):
            raise PermanentError(
                f"{self.name} gave {scores.size} numbers for {len(passages)} passages: it is no reranking model"
            )
        return [float(score) for score in scores.ravel()]

    def close(self) -> None:
        self._loaded = None

    def _load_or_explain(self) -> Any:
        hold_telemetry()
        try:
            return self._load()
        except (OSError, ValueError) as error:  # what both raise for an unknown name and for an unreachable hub
            raise ConfigError(
                f"{self.library} cannot load rerank.model {self.model!r}: {error}: "
                "check the name, and that the model hub can be reached or the model is in its cache"
            ) from error

    @abstractmethod
    def _load(self) -> Any: ...

    @abstractmethod
    def _predict(self, model: Any, question: str, passages: Sequence[str]) -> Any: ...


class SentenceTransformersCrossEncoder(_CrossEncoder):
    """A cross-encoder of sentence-transformers 5 or newer; scores as its own activation gives them."""

    library = "sentence-transformers"
    default_model = "cross-encoder/ms-marco-MiniLM-L6-v2"

    def _load(self) -> Any:
        from sentence_transformers import CrossEncoder

        return CrossEncoder(self.model)

    def _predict(self, model: Any, question: str, passages: Sequence[str]) -> Any:
        pairs = [(question, passage) for passage in passages]
        return model.predict(pairs, batch_size=_BATCH_PASSAGES, show_progress_bar=False)


class FastembedCrossEncoder(_CrossEncoder):
    """A cross-encoder of fastembed; scores are the model's logits."""

    library = "fastembed"
    default_model = "Xenova/ms-marco-MiniLM-L-6-v2"

    def _load(self) -> Any:
        from fastembed.rerank.cross_encoder import TextCrossEncoder

        return TextCrossEncoder(self.model, threads=self._threads)

    def _predict(self, model: Any, question: str, passages: Sequence[str]) -> Any:
        return list(model.rerank(question, list(passages), batch_size=_BATCH_PASSAGES))


def make_cross_encoder(settings: Rerank) -> Reranker:
    """The cross-encoder of whichever library is installed, sentence-transformers before fastembed.

    Raises:
        ConfigError: neither is.
    """
    if find_spec("sentence_transformers") is not None:
        return SentenceTransformersCrossEncoder(settings)
    if find_spec("fastembed") is not None:
        return FastembedCrossEncoder(settings)
    raise ConfigError(
        "rerank.provider is 'cross-encoder', but its package is missing: "
        f"{how_to_add('sentence-transformers')}, or the same with fastembed"
    )
