"""`POST /v1/context` and `POST /v1/chunk`."""

from __future__ import annotations

from typing import Any

import pytest

from rag_pipeline.chunking.chunk import chunk_document
from rag_pipeline.embedding.tokens import encoding_counter
from rag_pipeline.errors import TransientError
from rag_pipeline.isolation import SMALL_CHARS
from rag_pipeline.serving.routes import chunk as chunk_route
from rag_pipeline_tests.end_to_end.installation import WordEmbedder
from rag_pipeline_tests.serving.apps import Service, service
from rag_pipeline_tests.serving.asked import ANN, GLOBEX, asking_as

MARKDOWN = "# Deploying\n\n" + "Run make deploy and wait. " * 60 + "\n\n# Rolling back\n\n" + "Run make rollback. " * 80
PYTHON = "class Deployment:\n" + "".join(f"    def step_{n}(self):\n        return 'make {n}'\n\n" for n in range(60))


def context(service: Service, **body: Any) -> dict[str, Any]:
    answer = service.client.post("/v1/context", json={"question": "how to deploy with make?"} | body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_a_context_is_cited_and_no_longer_than_its_budget(asked: Service):
    made = context(asked, budget_tokens=100)
    assert (made["enabled"], made["reason"]) == (True, "ok")
    assert "[Source 1] handbook:deploy.md - deploy.md:1-1" in made["text"]
    assert made["sources"][0]["location"] == "deploy.md:1-1" and made["sources"][0]["number"] == 1
    (tokens,) = encoding_counter("o200k_base")([made["text"]])
    assert made["tokens"] == tokens <= 100
    assert len(context(asked)["sources"]) > len(made["sources"])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"question": ""}, "skipped"),
        ({"question": "thanks!"}, "skipped"),
        ({"min_score": 1e9}, "nothing_found"),
        ({"repository": "handbook", "path_prefix": "nowhere/"}, "nothing_found"),
        ({"source_type": "docs", "labels": ["x"], "path_prefix": "a"}, "nothing_found"),
    ],
)
def test_where_there_is_no_context_a_reason_is(asked: Service, body: dict[str, Any], reason: str):
    made = context(asked, **body)
    assert (made["text"], made["sources"], made["enabled"], made["reason"]) == ("", [], False, reason)


def test_a_context_holds_what_the_caller_may_see(asked: Service):
    question = {"question": "who is on call in the rota, and where are the plans?"}
    with asking_as(asked, ANN):
        assert "rota of ann" not in context(asked, **question)["text"]
        assert "rota of ann" in context(asked, **question, scopes=["user:ann"])["text"]
        assert asked.client.post("/v1/context", json=question | {"scopes": ["user:bob"]}).status_code == 403
    with asking_as(asked, GLOBEX):
        made = context(asked, **question, scopes=["user:ann"])["text"]
        assert "vault" in made and "rota" not in made


@pytest.mark.parametrize(
    "body", [{"budget_tokens": 99}, {"budget_tokens": 4001}, {"budget_tokens": 10**9}, {"k": 0}, {"legs": "lexical"}]
)
def test_a_context_that_cannot_be_had_is_refused(asked: Service, body: dict[str, Any]):
    answer = asked.client.post("/v1/context", json={"question": "x"} | body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")


def test_larger_contexts_are_allowed_where_the_settings_say_so(indexed: str, tmp_path):
    with service(indexed, tmp_path, serving={"most_context_tokens": 9_000}) as running:
        assert context(running, budget_tokens=9_000)["reason"] == "ok"


def chunks(service: Service, **body: Any) -> dict[str, Any]:
    answer = service.client.post("/v1/chunk", json=body)
    assert answer.status_code == 200, answer.text
    cut: dict[str, Any] = answer.json()
    return cut


def test_chunks_lie_in_the_text_under_their_headings(asked: Service):
    cut = chunks(asked, text=MARKDOWN, markup="markdown")
    assert len(cut["chunks"]) > 1 and cut["model"] is None
    for one in cut["chunks"]:
        assert MARKDOWN[one["start_char"] : one["end_char"]] == one["text"]
        assert MARKDOWN[: one["start_char"]].count("\n") + 1 == one["start_line"]
        assert one["embedding"] is None
    assert {tuple(one["heading_path"]) for one in cut["chunks"]} == {("Deploying",), ("Rolling back",)}


def test_a_path_says_what_a_text_is(asked: Service):
    by_path = chunks(asked, text=MARKDOWN, path="docs/deploy.md")
    assert by_path == chunks(asked, text=MARKDOWN, markup="markdown")
    code = chunks(asked, text=PYTHON, path="app.py")
    assert code == chunks(asked, text=PYTHON, markup="code", language="python")
    assert any("Deployment" in one["heading_path"] for one in code["chunks"])
    assert chunks(asked, text="plain words", path="../../etc/passwd")["chunks"][0]["text"] == "plain words"


def test_chunks_come_with_the_vectors_of_the_active_model(asked: Service):
    cut = chunks(asked, text=MARKDOWN, path="deploy.md", embed=True)
    assert (cut["model"], cut["dimensions"]) == ("words", 64)
    for one in cut["chunks"]:
        expected = WordEmbedder().embed_query(one["context"] + one["text"])
        assert one["embedding"] == pytest.approx(expected.tolist(), abs=1e-6)


def test_nothing_gives_no_chunks(asked: Service):
    assert chunks(asked, text="")["chunks"] == chunks(asked, text=" \n", embed=True)["chunks"] == []


def test_long_texts_are_cut_in_a_process_of_their_own(asked: Service, monkeypatch: pytest.MonkeyPatch):
    text = "word " * (SMALL_CHARS // 4)
    here = []
    monkeypatch.setattr("rag_pipeline.chunking.stage.chunk_document", lambda *_, **__: here.append(1) or [])
    assert len(chunks(asked, text=text)["chunks"]) > 1 and not here
    assert chunk_document  # what was replaced here is what runs there


def test_a_text_that_takes_too_long_is_refused(indexed: str, tmp_path):
    with service(indexed, tmp_path, documents={"timeout_s": 0.001}) as running:
        answer = running.client.post("/v1/chunk", json={"text": "word " * (SMALL_CHARS // 4)})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


def test_more_chunks_than_are_embedded_at_once_are_refused(asked: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chunk_route, "MOST_EMBEDDED", 1)
    answer = asked.client.post("/v1/chunk", json={"text": MARKDOWN, "path": "a.md", "embed": True})
    assert answer.status_code == 413 and "send it in parts" in answer.json()["error"]["message"]


def test_a_model_that_does_not_answer_is_unavailable_for_now(asked: Service, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> Any:
        raise TransientError("https://internal refused sk-123")

    monkeypatch.setattr(WordEmbedder, "embed", fail)
    answer = asked.client.post("/v1/chunk", json={"text": "one", "embed": True})
    assert answer.status_code == 503 and "internal" not in answer.text and answer.headers["retry-after"]


@pytest.mark.parametrize(
    "body",
    [{}, {"text": 5}, {"text": "a\0"}, {"text": "x", "markup": "html"}, {"text": "x", "path": "a" * 1001},
     {"text": "x", "embed": "true"}, {"text": "x", "more": 1}],
)  # fmt: skip
def test_bodies_that_say_something_else_are_refused(asked: Service, body: dict[str, Any]):
    answer = asked.client.post("/v1/chunk", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")


@pytest.mark.parametrize("where", [{"repository": "handbok"}, {"source_type": "doc"}])
@pytest.mark.parametrize("path", ["/v1/search", "/v1/ask", "/v1/context"])
def test_unknown_sources_are_refused_with_those_there_are(asked: Service, path: str, where: dict[str, str]):
    if path == "/v1/search":
        answer = asked.client.get(path, params={"q": "how to deploy with make?"} | where)
    else:
        answer = asked.client.post(path, json={"question": "how to deploy with make?"} | where)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, "unknown_source")
    assert "choose from handbook" in error["message"] or "choose from docs" in error["message"]
