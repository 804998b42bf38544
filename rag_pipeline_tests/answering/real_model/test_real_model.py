"""Real weights behind a real server, asked as the settings say: `make test-llm`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rag_pipeline.answering.language_model import LanguageModel, Message
from rag_pipeline.answering.models import make_language_model
from rag_pipeline.errors import PermanentError
from rag_pipeline.settings import Answering
from rag_pipeline_tests.answering.asking import joined
from rag_pipeline_tests.answering.real_model.server import llama_server
from rag_pipeline_tests.answering.real_model.weights import CODER, SMOL, Weights

pytestmark = pytest.mark.skipif(
    not os.environ.get("RAG_TEST_LLM"), reason="RAG_TEST_LLM names no environment with weights: run `make test-llm`"
)
PATIENCE_S = 600.0
SOURCES = """[Source 1] Backups
```
The nightly backup starts at 02:30 UTC and is written to the bucket acme-backups. It is kept for 35 days.
```

[Source 2] Deployments
```
Deploy with `make release`. A release needs two approvals in the pull request.
```
"""


@contextmanager
def served(weights: Weights) -> Iterator[LanguageModel]:
    environment = Path(os.environ["RAG_TEST_LLM"]).absolute()
    with llama_server(environment, weights.file(environment)) as url:
        settings = Answering(provider="openai", model=weights.name, base_url=url, temperature=0)
        model = make_language_model(settings, environ={})
        assert model is not None
        try:
            yield model
        finally:
            model.close()


@pytest.fixture(scope="module")
def smol() -> Iterator[LanguageModel]:
    with served(SMOL) as model:
        yield model


@pytest.fixture(scope="module")
def coder() -> Iterator[LanguageModel]:
    with served(CODER) as model:
        yield model


def said(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


def test_a_short_completion_comes_whole(smol):
    piece = smol.complete(said("What is the capital of France?"), max_tokens=30, timeout_s=PATIENCE_S)
    assert "Paris" in piece.text
    assert piece.input_tokens > 5
    assert 0 < piece.output_tokens <= 30


def test_a_stream_comes_in_pieces_and_says_the_same(smol):
    question = said("What is the capital of France?")
    pieces = list(smol.stream(question, max_tokens=30, timeout_s=PATIENCE_S))
    assert len(pieces) > 3
    whole = smol.complete(question, max_tokens=30, timeout_s=PATIENCE_S)
    assert joined(iter(pieces)).text == whole.text


def test_a_text_that_is_long_enough_is_cut_off(smol):
    piece = joined(smol.stream(said("Count to one hundred."), max_tokens=5, timeout_s=PATIENCE_S))
    assert piece.is_cut_off


def test_who_stops_listening_frees_the_server_for_the_next(smol):
    pieces = smol.stream(said("Write a long story about a duck."), max_tokens=2000, timeout_s=PATIENCE_S)
    next(pieces)
    pieces.close()
    assert smol.complete(said("Say yes."), max_tokens=5, timeout_s=PATIENCE_S).text


def test_a_question_that_is_too_long_is_refused_and_says_what_to_lower(smol):
    with pytest.raises(PermanentError, match="lower answering"):
        smol.complete(said("duck " * 9_000), max_tokens=5, timeout_s=PATIENCE_S)


def asked(model: LanguageModel, question: str) -> str:
    instructions = (
        "Answer the question from the sources only. After each sentence, cite the source it is from as [Source N]. "
        "If the sources do not say it, answer: I do not know."
    )
    prompt = [
        Message(role="system", content=instructions),
        Message(role="user", content=f"Sources\n\n{SOURCES}\nQuestion: {question}"),
    ]
    return joined(model.stream(prompt, max_tokens=80, timeout_s=PATIENCE_S)).text


def test_a_question_is_answered_from_its_source_with_a_citation(coder):
    text = asked(coder, "How long is the nightly backup kept?")
    assert "35 days" in text
    assert set(re.findall(r"\[Source \d+\]", text)) == {"[Source 1]"}


def test_a_question_that_no_source_answers_is_declined(coder):
    assert "do not know" in asked(coder, "Who won the world cup in 1998?")
