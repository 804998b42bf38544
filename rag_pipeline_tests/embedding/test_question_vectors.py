"""The models that embed questions: shared, one thread at a time, and left alone when they do not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rag_pipeline.embedding import Embedder
from rag_pipeline.embedding.question_vectors import QuestionEmbedders, QuestionVectors
from rag_pipeline.embedding.spaces import config_of
from rag_pipeline.errors import ConfigError, ItemError, TransientError
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.end_to_end.installation import WordEmbedder
from rag_pipeline_tests.serving.test_caches import Watch


class Model(WordEmbedder):
    """Notes who uses it, and fails when it is told to."""

    def __init__(self, factory: Factory) -> None:
        super().__init__()
        self._factory = factory
        self.asked: list[str] = []
        self.is_closed = False

    def embed_query(self, text: str) -> Any:
        assert not self.is_closed
        with self._factory.at_work(self):
            self.asked.append(text)
            if self._factory.error is not None:
                raise self._factory.error
            return super().embed_query(text)

    def close(self) -> None:
        self.is_closed = True


class Factory:
    """Makes models, and knows all that it has made."""

    def __init__(self) -> None:
        self.made: list[Model] = []
        self.settings: list[Embedding] = []
        self.error: Exception | None = None
        self.wait: Callable[[], object] = lambda: None
        self._busy: set[int] = set()
        self.most_busy = 0
        self._lock = threading.Lock()

    def __call__(self, settings: Embedding, *, environ: object) -> Embedder:
        del environ
        self.settings.append(settings)
        self.made.append(Model(self))
        return self.made[-1]

    def at_work(self, model: Model) -> Any:
        factory = self

        class Use:
            def __enter__(self) -> None:
                with factory._lock:
                    assert id(model) not in factory._busy, "two threads use one model"
                    factory._busy.add(id(model))
                    factory.most_busy = max(factory.most_busy, len(factory._busy))
                factory.wait()

            def __exit__(self, *_: object) -> None:
                with factory._lock:
                    factory._busy.remove(id(model))

        return Use()

    @property
    def asked(self) -> list[str]:
        return [text for model in self.made for text in model.asked]


def embedders(
    factory: Factory, *, most: int = 10, concurrent: int = 4, patience_s: float = 5.0, watch: Watch | None = None,
    **settings: Any,
) -> QuestionEmbedders:  # fmt: skip
    return QuestionEmbedders(
        Embedding(**settings), environ={}, vectors=QuestionVectors(most=most), concurrent=concurrent,
        patience_s=patience_s, monotonic=watch or Watch(), make=factory,
    )  # fmt: skip


def space(number: int = 1, **changed: Any) -> EmbeddingSpace:
    made = EmbeddingSpace(
        space_id=number, provider="local", model="words", dimensions=64, recipe="words/v1", status="active"
    )
    return replace(made, **changed)


def ask(shared: QuestionEmbedders, text: str, where: EmbeddingSpace | None = None) -> Any:
    """As a search asks: an embedder that it closes afterwards."""
    embedder = shared.of(where or space())
    try:
        return embedder.embed_query(text)
    finally:
        embedder.close()


def test_one_model_answers_all_questions_and_each_question_once():
    factory = Factory()
    shared = embedders(factory)
    vectors = [ask(shared, text) for text in ("one", "two", "one")]
    assert len(factory.made) == 1
    assert factory.asked == ["one", "two"]
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert not factory.made[0].is_closed
    shared.close()
    assert factory.made[0].is_closed


def test_only_so_many_vectors_are_remembered():
    factory = Factory()
    shared = embedders(factory, most=1)
    for text in ("one", "two", "one"):
        ask(shared, text)
    assert factory.asked == ["one", "two", "one"]
    none = embedders(factory, most=0)
    assert ask(none, "one") is not None


def test_the_same_words_have_another_vector_in_another_space():
    factory = Factory()
    shared = embedders(factory)
    ask(shared, "one", space(1))
    ask(shared, "one", space(2))
    assert factory.asked == ["one", "one"]


@pytest.mark.parametrize(("provider", "expected"), [("local", 1), ("openai", 3)])
def test_a_model_that_runs_here_is_open_once_and_one_of_a_service_as_often_as_it_is_asked(provider, expected):
    factory = Factory()
    together = threading.Barrier(expected)
    factory.wait = lambda: together.wait(timeout=10)
    shared = embedders(factory, concurrent=3, provider=provider)
    where = space(provider=provider)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda n: ask(shared, f"question {n}", where), range(3)))
    assert factory.most_busy == len(factory.made) == expected


def test_who_waits_too_long_for_a_model_goes_on_without():
    factory, free, begun = Factory(), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert free.wait(30)

    factory.wait = wait
    shared = embedders(factory, patience_s=0.01)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(ask, shared, "one")
        assert begun.wait(30)
        with pytest.raises(TransientError, match="at work"):
            ask(shared, "two")
        free.set()
        assert first.result(10) is not None


def test_questions_are_embedded_in_a_hurry_and_passages_with_all_patience():
    factory = Factory()
    shared = embedders(factory, provider="openai", timeout_s=60, max_retries=6, patience_s=2.0)
    where = space(provider="openai")
    ask(shared, "one", where)
    shared.own(where).close()
    hurried, patient = factory.settings
    assert (hurried.timeout_s, hurried.max_retries) == (2.0, 0)
    assert (patient.timeout_s, patient.max_retries) == (60.0, 6)


def test_a_model_that_does_not_answer_is_left_alone_for_a_while():
    factory, watch = Factory(), Watch()
    shared = embedders(factory, watch=watch)
    known = ask(shared, "known")
    factory.error = TransientError("overloaded")
    for text in ("one", "two"):
        with pytest.raises(TransientError):
            ask(shared, text)
    assert factory.asked == ["known", "one"]  # the second was not even tried
    np.testing.assert_array_equal(ask(shared, "known"), known)  # what is known needs no model
    factory.error, watch.now = None, 5.0
    assert ask(shared, "two") is not None


@pytest.mark.parametrize("error", [ItemError("too long"), ConfigError("no key")])
def test_what_is_wrong_for_good_is_said_each_time_and_not_remembered(error):
    factory = Factory()
    shared = embedders(factory)
    factory.error = error
    for _ in range(2):
        with pytest.raises(type(error)):
            ask(shared, "one")
    assert factory.asked == ["one", "one"]


def test_a_model_that_cannot_be_made_is_tried_again():
    factory = Factory()

    def broken(settings: Embedding, *, environ: object) -> Embedder:
        if factory.error is not None:
            raise factory.error
        return factory(settings, environ=environ)

    shared = QuestionEmbedders(
        Embedding(), environ={}, vectors=QuestionVectors(most=1), concurrent=1, patience_s=1, monotonic=Watch(),
        make=broken,
    )  # fmt: skip
    factory.error = ConfigError("no key")
    with pytest.raises(ConfigError):
        ask(shared, "one")
    factory.error = None
    assert ask(shared, "one") is not None


def test_after_promotions_the_models_of_spaces_long_gone_are_closed():
    factory = Factory()
    shared = embedders(factory)
    for number in (1, 2, 3):
        ask(shared, "one", space(number))
    assert [model.is_closed for model in factory.made] == [True, False, False]
    ask(shared, "two", space(1))
    assert len(factory.made) == 4


def test_a_space_with_other_settings_gets_another_model():
    factory = Factory()
    shared = embedders(factory)
    ask(shared, "one")
    ask(shared, "two", space(config=config_of(Embedding(provider="openai", model="words"))))
    assert [model.is_closed for model in factory.made] == [True, False]
    assert factory.settings[1].provider == "openai"


def test_a_model_that_is_at_work_when_its_time_is_over_ends_its_work_first():
    factory, free, begun = Factory(), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert free.wait(30)

    shared = embedders(factory)
    factory.wait = wait
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, shared, "one")
        assert begun.wait(30)
        shared.close()
        assert not factory.made[0].is_closed
        free.set()
        assert asked.result(10) is not None
    assert factory.made[0].is_closed
