"""What Prometheus is told of a service: how long things take, what came of them, what waits. Never who or what asked.

Labels are of few values: routes as templates, stages, codes. Each service has a registry of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

from rag_pipeline.index.query_log import Entrance
from rag_pipeline.index.replica import Lag
from rag_pipeline.model import Answer
from rag_pipeline.retrieval import observer
from rag_pipeline.serving.errors import code_of

Stage = Literal[observer.Stage, "database", "model_first_word", "model"]
"""`database`: waiting for a connection; `model_first_word` and `model`: until a language model began, and was done."""
Cache = Literal["embedding", "results", "answers"]
ModelTrouble = Literal["transient", "permanent", "config", "other"]

_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_REQUEST_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_STAGE_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_COUNTS: Final = (0, 1, 2, 3, 5, 8, 10, 20, 50, 100, 200)
_SHARES: Final = tuple(step / 10 for step in range(1, 11))
_OTHER: Final = "other"


class Metrics:
    """The figures of one service; an `Observer` of searches, too. May be used from several threads."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self._requests = Histogram(
            "rag_http_request_seconds", "Until a request was answered in full, a stream included.",
            ["method", "route", "status"], registry=own, buckets=_REQUEST_S,
        )  # fmt: skip
        self._errors = Counter("rag_http_errors", "Requests that were refused or failed.", ["code"], registry=own)
        self._in_flight = Gauge("rag_http_requests_in_flight", "Requests that are not answered yet.", registry=own)
        self._stages = Histogram(
            "rag_stage_seconds", "How long a stage of searching or answering took.", ["stage"], registry=own,
            buckets=_STAGE_S,
        )  # fmt: skip
        self._results = Histogram(
            "rag_search_results", "Hits of a search.", ["entrance"], registry=own, buckets=_COUNTS
        )  # fmt: skip
        self._degraded = Counter("rag_degraded", "Answered, but without a part of it.", ["entrance"], registry=own)
        self._answers = Counter("rag_answers", "Answers by their status.", ["status"], registry=own)
        self._confidence = Histogram(
            "rag_answer_confidence", "Confidence in answers, 0 to 1.", registry=own, buckets=_SHARES
        )  # fmt: skip
        self._citations = Counter(
            "rag_removed_citations", "Citations of answers that pointed to nothing.", registry=own
        )
        self._tokens = Counter("rag_model_tokens", "Tokens of language models.", ["kind"], registry=own)
        self._cost = Counter("rag_model_cost_usd", "What language models cost, where prices are known.", registry=own)
        self._trouble = Counter("rag_model_errors", "Calls of language models that failed.", ["kind"], registry=own)
        self._caches = Counter("rag_cache_lookups", "Look-ups in caches.", ["cache", "result"], registry=own)
        self._dropped = Counter("rag_query_log_dropped", "Questions that the log could not keep.", registry=own)
        self._lag = Gauge(
            "rag_index_lag_seconds", "How far the index is behind its sources, the worst of a kind.", ["source"],
            registry=own,
        )  # fmt: skip
        self._replica_lag = Gauge(
            "rag_replica_lag_seconds", "How far the replica is behind the primary; NaN: nobody knows.", registry=own
        )
        self._replica_lag.set(math.nan)
        self._fallbacks = Counter(
            "rag_replica_fallbacks", "Reads of the primary, because the replica did not answer.", registry=own
        )
        self._database = Gauge("rag_database_up", "Whether the database answered the last look at it.", registry=own)

    def request(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered; `route` is the template, never the path that was asked for."""
        method = method if method in _METHODS else _OTHER
        self._requests.labels(method=method, route=route, status=str(status)).observe(seconds)
        if status >= 400:
            self._errors.labels(code=code_of(status)).inc()

    def begun(self) -> None:
        """A request came in."""
        self._in_flight.inc()

    def ended(self) -> None:
        """One that came in is over."""
        self._in_flight.dec()

    def took(self, stage: Stage, seconds: float) -> None:
        """A stage ended."""
        self._stages.labels(stage=stage).observe(seconds)

    def found(self, entrance: Entrance, *, hits: int, degraded: bool) -> None:
        """A search was answered."""
        self._results.labels(entrance=entrance).observe(hits)
        if degraded:
            self._degraded.labels(entrance=entrance).inc()

    def answered(self, answer: Answer) -> None:
        """A question was answered by the model or without; not for answers out of a cache."""
        self._answers.labels(status=answer.status).inc()
        self._confidence.observe(answer.confidence)
        self._citations.inc(answer.removed_citations)
        self._tokens.labels(kind="input").inc(answer.input_tokens)
        self._tokens.labels(kind="output").inc(answer.output_tokens)
        self._cost.inc(answer.cost_usd or 0.0)

    def model_failed(self, kind: ModelTrouble) -> None:
        """A call of a language model failed."""
        self._trouble.labels(kind=kind).inc()

    def cached(self, cache: Cache, *, hit: bool) -> None:
        """Somebody looked into a cache."""
        self._caches.labels(cache=cache, result="hit" if hit else "miss").inc()

    def dropped(self, count: int) -> None:
        """Questions that the log could not keep."""
        self._dropped.inc(count)

    def watch(self, name: Literal["requests_waiting", "query_log_waiting"], size: Callable[[], float]) -> None:
        """Show a figure as it is at the moment of each look; once for each name."""
        told = {
            "requests_waiting": "Calls at work or waiting for a thread.",
            "query_log_waiting": "Questions that are not in the log yet.",
        }
        Gauge(f"rag_{name}", told[name], registry=self._registry).set_function(size)

    def fresh(self, lag_s: Mapping[str, float] | None) -> None:
        """How far behind each kind of source is; None: the database did not answer."""
        self._database.set(lag_s is not None)
        if lag_s is not None:
            self._lag.clear()
            for source, seconds in lag_s.items():
                self._lag.labels(source=source).set(seconds)

    def replica(self, lag: Lag | None) -> None:
        """How far the replica is behind; None: it does not answer."""
        self._replica_lag.set(math.nan if lag is None or lag.lag_s is None else lag.lag_s)

    def fell_back(self) -> None:
        """The primary was read, because the replica did not answer."""
        self._fallbacks.inc()

    def text(self, accept: str) -> tuple[bytes, str]:
        """All figures and their content type, in the format that whoever asks takes."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type
