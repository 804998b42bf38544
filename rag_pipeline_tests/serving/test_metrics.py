"""What Prometheus reads: in its own format, of few labels, and nothing of who or what asked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from rag_pipeline.answering.language_model import Message, Piece
from rag_pipeline.errors import TransientError
from rag_pipeline.index.bookkeeping import SourceKey
from rag_pipeline.index.database import connected
from rag_pipeline.index.freshness import note_complete
from rag_pipeline.model import Answer
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.serving.measured import MeasuredModel
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline_tests.serving.apps import NOW, Service, service
from rag_pipeline_tests.serving.callers import come_as

Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parsed(text: str) -> Figures:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in plain(text)
        for sample in family.samples
    }


def figures(running: Service) -> Figures:
    answer = running.client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return parsed(answer.text)


def value(found: Figures, name: str, **labels: str) -> float:
    return found.get((name, tuple(sorted(labels.items()))), 0.0)


def test_requests_are_told_apart_by_route_and_never_by_path(running: Service) -> None:
    come_as(running.app)
    for name in ("a", "b"):
        running.client.put(f"/v1/documents/knowledge/{name}", json={"content": "secretword"})
    running.client.get("/wp-admin/giraffe")
    running.client.request("BREW", "/wp-admin/zebra")
    running.client.post("/v1/feedback", json={})
    found = figures(running)
    route = "/v1/documents/{source_type}/{id:path}"
    assert value(found, "rag_http_request_seconds_count", method="PUT", route=route, status="202") == 2
    assert value(found, "rag_http_request_seconds_count", method="GET", route="other", status="404") == 1
    assert value(found, "rag_http_request_seconds_count", method="other", route="other", status="404") == 1
    assert value(found, "rag_http_errors_total", code="not_found") == 2
    assert value(found, "rag_http_errors_total", code="invalid") == 1
    assert value(found, "rag_http_requests_in_flight") == 1, "this one"
    text = running.client.get("/metrics").text
    assert not [word for word in ("acme", "giraffe", "secretword", "0123456789ab", "zebra") if word in text]


def test_legs_and_stages_of_a_search_are_timed(running: Service) -> None:
    running.services.search(SearchQuery(text="how to deploy", tenant="acme"))
    running.services.search(SearchQuery(text="how to deploy", tenant="acme", legs="lexical"))
    found = figures(running)
    counts = {
        stage: value(found, "rag_stage_seconds_count", stage=stage)
        for stage in ("database", "embed", "lexical", "vector", "search", "rerank")
    }
    assert counts == {"database": 2, "embed": 1, "lexical": 2, "vector": 1, "search": 2, "rerank": 0}
    assert value(found, "rag_stage_seconds_sum", stage="lexical") > 0
    assert value(found, "rag_stage_seconds_sum", stage="lexical") < value(
        found, "rag_stage_seconds_sum", stage="search"
    )


def test_how_far_the_index_is_behind_is_told_by_kind_of_source(running: Service) -> None:
    with connected(running.services.settings.database_url or "") as connection:
        for tenant, hours in {"acme": 1, "globex": 5}.items():
            key = SourceKey(tenant=tenant, repository=f"{tenant}-plans", source="git")
            note_complete(connection, key, until=NOW - timedelta(hours=hours), now=NOW)
    found = figures(running)
    assert value(found, "rag_index_lag_seconds", source="git") == 5 * 3600
    assert value(found, "rag_database_up") == 1
    assert "plans" not in running.client.get("/metrics").text


def test_without_a_database_there_are_figures_all_the_same(tmp_path: Path) -> None:
    with service("postgresql://nobody@127.0.0.1:1/nothing", tmp_path) as running:
        found = figures(running)
    assert value(found, "rag_database_up") == 0
    assert not [name for name, _ in found if name == "rag_index_lag_seconds"]


def test_who_asks_for_the_newer_format_gets_it(running: Service) -> None:
    answer = running.client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert "rag_http_requests_in_flight" in {family.name for family in openmetrics(answer.text)}


def test_answers_caches_and_what_could_not_be_logged_are_counted() -> None:
    metrics = Metrics()
    metrics.answered(
        Answer(
            question="q", text="a", status="answered", confidence=0.75, removed_citations=2, input_tokens=100,
            output_tokens=10, cost_usd=0.5,
        )
    )  # fmt: skip
    metrics.answered(Answer(question="q", text="", status="unknown", confidence=0.0, cost_usd=None))
    metrics.cached("answers", hit=True)
    metrics.cached("answers", hit=False)
    metrics.dropped(3)
    metrics.found("ask", hits=5, degraded=True)
    waiting = iter([4.0])
    metrics.watch("requests_waiting", lambda: next(waiting))
    found = parsed(metrics.text("")[0].decode())
    expected = {
        ("rag_answers_total", ("status", "answered")): 1, ("rag_answers_total", ("status", "unknown")): 1,
        ("rag_removed_citations_total",): 2, ("rag_model_tokens_total", ("kind", "input")): 100,
        ("rag_model_tokens_total", ("kind", "output")): 10, ("rag_model_cost_usd_total",): 0.5,
        ("rag_answer_confidence_sum",): 0.75, ("rag_query_log_dropped_total",): 3,
        ("rag_search_results_sum", ("entrance", "ask")): 5, ("rag_degraded_total", ("entrance", "ask")): 1,
        ("rag_requests_waiting",): 4,
    }  # fmt: skip
    assert {key: found[key[0], tuple(key[1:])] for key in expected} == expected  # type: ignore[index]
    for result in ("hit", "miss"):
        assert value(found, "rag_cache_lookups_total", cache="answers", result=result) == 1


def test_each_service_counts_for_itself() -> None:
    first, second = Metrics(), Metrics()
    first.dropped(1)
    assert value(parsed(second.text("")[0].decode()), "rag_query_log_dropped_total") == 0


class Model:
    """Writes three words, and fails when it is to."""

    name = "words"

    def __init__(self, *, error: Exception | None = None) -> None:
        self.error = error

    def stream(self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float) -> Iterator[Piece]:
        del messages, timeout_s
        yield Piece(text="")
        for word in itertools.repeat("word ", max_tokens):
            yield Piece(text=word)
        if self.error:
            raise self.error

    def complete(self, messages: Sequence[Message], *, max_tokens: int, timeout_s: float) -> Piece:
        return Piece(text="".join(piece.text for piece in self.stream(messages, max_tokens=max_tokens, timeout_s=1)))

    def close(self) -> None:
        """Nothing is open."""


def test_a_language_model_is_timed_until_its_first_word_and_until_it_is_done() -> None:
    metrics = Metrics()
    model = MeasuredModel(Model(), metrics)
    assert "".join(piece.text for piece in model.stream([], max_tokens=3, timeout_s=1)) == "word word word "
    assert model.complete([], max_tokens=1, timeout_s=1).text == "word "
    failing = MeasuredModel(Model(error=TransientError("cut off")), metrics)
    with pytest.raises(TransientError):
        list(failing.stream([], max_tokens=1, timeout_s=1))
    # Whoever closes the stream early has no complaint about the model.
    stream = model.stream([], max_tokens=9, timeout_s=1)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    found = parsed(metrics.text("")[0].decode())
    assert value(found, "rag_stage_seconds_count", stage="model_first_word") == 2
    assert value(found, "rag_stage_seconds_count", stage="model") == 2
    assert value(found, "rag_model_errors_total", kind="transient") == 1
    assert value(found, "rag_model_errors_total", kind="other") == 0
