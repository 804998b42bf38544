"""The models that embed questions: opened once for each embedding space and shared, with the vectors they gave.

A model is used from one thread at a time, so of one that a service runs there are as many as questions at once; of one
that runs here there is one, because more would only share its cores.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Condition, Lock
from typing import Final

from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.embedding.embedder import Vectors
from rag_pipeline.embedding.passing import PassingEmbedder
from rag_pipeline.embedding.spaces import settings_of
from rag_pipeline.errors import TransientError
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.settings import Embedding

_SERVED: Final = frozenset({"openai", "azure-openai"})
_REST_S: Final = 5.0
"""After a model did not answer, questions are not kept waiting for it for so long."""
_SPACES: Final = 2
"""So many spaces' models stay open: that of the active one, and while another is promoted, of that."""


class QuestionVectors:
    """Vectors of questions that were asked before, the last `most` of them; safe to share between threads.

    `looked` is told of each look whether the vector was there.
    """

    def __init__(self, *, most: int, looked: Callable[[bool], object] = lambda hit: None) -> None:
        self._most = most
        self._looked = looked
        self._vectors: OrderedDict[tuple[int, str, str], Vectors] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._vectors)

    def get(self, space: EmbeddingSpace, text: str) -> Vectors | None:
        """The vector of a question in a space, shape (d,), if it is known."""
        with self._lock:
            found = self._vectors.get((space.space_id, space.recipe, text))
            if found is not None:
                self._vectors.move_to_end((space.space_id, space.recipe, text))
        self._looked(found is not None)
        return found

    def put(self, space: EmbeddingSpace, text: str, vector: Vectors) -> None:
        """Remember a vector."""
        with self._lock:
            self._vectors[space.space_id, space.recipe, text] = vector
            while len(self._vectors) > self._most:
                self._vectors.popitem(last=False)


class _Models:
    """The open models of one space."""

    def __init__(self, space: EmbeddingSpace, make: Callable[[], Embedder], *, most: int, patience_s: float) -> None:
        self.space = space
        self._make = make
        self._patience_s = patience_s
        self._first = make()
        self._idle = [self._first]
        self._left = most - 1
        self._is_open = True
        self._changed = Condition()
        self.recipe = self._first.recipe

    @property
    def first(self) -> Embedder:
        """To ask what it is, not for vectors."""
        return self._first

    @contextmanager
    def lent(self) -> Iterator[Embedder]:
        """One of them, for this thread alone."""
        embedder = self._taken()
        try:
            yield embedder
        finally:
            if not self._take_back(embedder):
                embedder.close()

    def close(self) -> None:
        """Close those that are idle now, and the others when they come back."""
        with self._changed:
            self._is_open = False
            idle, self._idle = self._idle, []
        for embedder in idle:
            embedder.close()

    def _take_back(self, embedder: Embedder) -> bool:
        with self._changed:
            if self._is_open:
                self._idle.append(embedder)
                self._changed.notify()
            return self._is_open

    def _taken(self) -> Embedder:
        with self._changed:
            if not self._idle and self._left > 0:
                self._left -= 1
                try:
                    return self._make()
                except BaseException:
                    self._left += 1
                    raise
            if not self._changed.wait_for(lambda: self._idle or not self._is_open, timeout=self._patience_s):
                raise TransientError("all models that embed questions are at work: ask again in a moment")
            return self._idle.pop() if self._idle else self._make()


class QuestionEmbedders:
    """The models of embedding spaces, for questions; `close` when nobody asks any more.

    `patience_s` is how long a question waits for its vector at most. `concurrent`: so many of a model that a service
    runs are open at once.
    """

    def __init__(
        self, settings: Embedding, *, environ: Mapping[str, str], vectors: QuestionVectors, concurrent: int,
        patience_s: float, monotonic: Callable[[], float], make: Callable[..., Embedder] = make_embedder,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._environ = environ
        self._vectors = vectors
        self._concurrent = concurrent
        self._patience_s = patience_s
        self._monotonic = monotonic
        self._make = make
        self._models: OrderedDict[int, _Models] = OrderedDict()
        self._lock = Lock()
        self._resting_until = 0.0

    def of(self, space: EmbeddingSpace) -> Embedder:
        """The embedder of a space; closing it leaves the model open for the next question.

        Raises:
            ConfigError: a key, a model name or a package is missing or wrong.
        """
        return _Shared(self._of(space), self)

    def own(self, space: EmbeddingSpace) -> Embedder:
        """An embedder of a space for passages, with all its patience; whoever asked for it closes it.

        Raises:
            ConfigError: as `of`.
        """
        return self._make(settings_of(space, self._settings), environ=self._environ)

    def close(self) -> None:
        """Close all models; those that are at work, when they are done."""
        with self._lock:
            models, self._models = list(self._models.values()), OrderedDict()
        for one in models:
            one.close()

    def vector(self, models: _Models, text: str) -> Vectors:
        """The vector of a question, shape (d,); raises what `Embedder.embed_query` raises."""
        known = self._vectors.get(models.space, text)
        if known is not None:
            return known
        if self._monotonic() < self._resting_until:
            raise TransientError("the model did not answer a moment ago, and is left alone for some seconds")
        try:
            with models.lent() as embedder:
                vector = embedder.embed_query(text)
        except TransientError:
            self._resting_until = self._monotonic() + _REST_S
            raise
        self._vectors.put(models.space, text, vector)
        return vector

    def _of(self, space: EmbeddingSpace) -> _Models:
        with self._lock:
            found = self._models.get(space.space_id)
            if found is not None and found.space == space:
                self._models.move_to_end(space.space_id)
                return found
        made, gone = self._opened(space), []
        with self._lock:
            there = self._models.get(space.space_id)
            if there is not None and there.space == space:
                made, gone = there, [made]  # another thread was faster
            else:
                gone = [there] if there is not None else []
                self._models[space.space_id] = made
                while len(self._models) > _SPACES:
                    gone.append(self._models.popitem(last=False)[1])
        for one in gone:
            with suppress(Exception):  # what cannot be closed is nobody's trouble who asks something
                one.close()
        return made

    def _opened(self, space: EmbeddingSpace) -> _Models:
        wanted = settings_of(space, self._settings)
        # Who asks waits: rather the words alone than another attempt.
        hurried = wanted.model_copy(
            update={"timeout_s": min(wanted.timeout_s, self._patience_s), "max_retries": 0}
        )  # fmt: skip
        return _Models(
            space, lambda: self._make(hurried, environ=self._environ),
            most=self._concurrent if wanted.provider in _SERVED else 1, patience_s=self._patience_s,
        )  # fmt: skip


class _Shared(PassingEmbedder):
    """What one question sees of a space's models."""

    def __init__(self, models: _Models, shared: QuestionEmbedders) -> None:
        super().__init__(models.first)
        self._models = models
        self._shared = shared

    def embed_query(self, text: str) -> Vectors:
        return self._shared.vector(self._models, text)

    def close(self) -> None:
        """Leave it to the next question."""
