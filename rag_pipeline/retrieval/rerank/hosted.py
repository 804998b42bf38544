"""Rerankers behind `POST …/rerank`, as Cohere, Jina and Voyage offer it, and vLLM, LiteLLM, Infinity and others too."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.embedding.tokens import encodable
from rag_pipeline.errors import ConfigError, PermanentError, TransientError
from rag_pipeline.model import SearchHit
from rag_pipeline.remote.refusals import refusal, without_key
from rag_pipeline.retrieval.rerank.reranker import passage_of
from rag_pipeline.retrieval.rerank.service import api_key, patiently, required_model, service_of
from rag_pipeline.settings import Rerank

if TYPE_CHECKING:
    import httpx


class HostedReranker:
    """Relevance scores of a service: `{model, query, documents}` to `results` (Cohere, Jina) or `data` (Voyage).

    The number of results is not asked for: by default all three return every document, and they call it differently
    (`top_n`, `top_k`). Redirects are not followed: the key is for the configured address only. `sleep`, `jitter` and
    `now` are for tests.
    """

    def __init__(
        self,
        settings: Rerank,
        *,
        environ: Mapping[str, str],
        sleep: Callable[[float], object] | None = None,
        jitter: Callable[[], float] = random.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        import httpx

        if not settings.base_url:
            raise ConfigError(
                "rerank.provider is 'hosted', but rerank.base_url is empty: set it to https://api.cohere.com/v2, "
                "https://api.jina.ai/v1, https://api.voyageai.com/v1 or the address of your own server"
            )
        self.name = f"hosted {required_model(settings)}"
        self._settings = settings
        self._key = api_key(settings, environ)
        self._url = f"{settings.base_url}/rerank"
        self._sleep, self._jitter, self._now = sleep, jitter, now
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._client = httpx.Client(headers=headers, follow_redirects=False)

    def scores(self, question: str, hits: Sequence[SearchHit]) -> list[float]:
        body = {
            "model": self._settings.model,
            "query": encodable(question),
            "documents": [passage_of(hit) for hit in hits],
        }
        return patiently(
            lambda left_s: self._ask(body, count=len(hits), timeout_s=left_s),
            settings=self._settings, sleep=self._sleep, jitter=self._jitter,
        )  # fmt: skip

    def close(self) -> None:
        self._client.close()

    def _ask(self, body: Mapping[str, object], *, count: int, timeout_s: float) -> list[float]:
        import httpx

        try:
            response = self._client.post(self._url, json=body, timeout=timeout_s)
        except httpx.TimeoutException as error:
            raise TransientError(f"{self._url} did not answer within {timeout_s:.3g} s") from error
        except httpx.HTTPError as error:
            raise TransientError(f"cannot reach {self._url}: {without_key(error, self._key)}") from error
        if response.status_code != 200:
            raise refusal(
                response.status_code, self._said(response),
                service=service_of(self._settings, url=self._url), headers=response.headers, now=self._now(),
            )  # fmt: skip
        return self._read(response, count=count)

    def _read(self, response: httpx.Response, *, count: int) -> list[float]:
        try:
            answer = parse_json(response.content)
        except ValueError as error:
            raise PermanentError(
                f"{self._url} sent something else than JSON: {self._said(response)}: check rerank.base_url"
            ) from error
        results = answer.get("results", answer.get("data")) if isinstance(answer, dict) else None
        if not isinstance(results, list):
            raise PermanentError(f"{self._url} sent no list of results: {without_key(answer, self._key)}")
        if len(results) != count:
            raise PermanentError(f"{self._url} sent {len(results)} results for {count} passages")
        scores = [math.nan] * count
        for result in results:
            index, score = self._result(result, count=count)
            if not math.isnan(scores[index]):
                raise PermanentError(f"{self._url} sent two results for passage {index}")
            scores[index] = score
        return scores

    def _result(self, result: object, *, count: int) -> tuple[int, float]:
        """The place and the score of one result, checked."""
        index, score = (
            (result.get("index"), result.get("relevance_score")) if isinstance(result, dict) else (None, None)
        )
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise PermanentError(f"{self._url} sent a result for passage {index!r}: there are 0 to {count - 1}")
        if not isinstance(score, int | float) or isinstance(score, bool) or not math.isfinite(score):
            raise PermanentError(f"{self._url} sent {score!r} as the score of passage {index}")
        return index, float(score)

    def _said(self, response: httpx.Response) -> str:
        try:
            body = parse_json(response.content)
        except ValueError:
            body = response.text
        if isinstance(body, dict):
            body = next((body[name] for name in ("message", "detail", "error") if body.get(name)), body)
        return without_key(body, self._key)
