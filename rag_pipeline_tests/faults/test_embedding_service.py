"""An embedding service that refuses, hangs or talks nonsense: for a moment, or for good."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from rag_pipeline.defs import failures
from rag_pipeline_tests.embedding.fake_service import DIMENSIONS, Reply, embeddings, error, vector_of
from rag_pipeline_tests.embedding.fake_service import Request as Asked
from rag_pipeline_tests.faults.conftest import Record, Script
from rag_pipeline_tests.faults.forked import fork
from rag_pipeline_tests.faults.site import index_of, rows_in
from rag_pipeline_tests.faults.test_database import converges

__all__ = ["fork"]

pytestmark = pytest.mark.faults
_PAGE = "<html><head><title>Gateway</title></head><body><h1>Bad gateway</h1></body></html>"


def with_vectors(change: Callable[[list[np.ndarray]], list[object]]) -> Callable[[Asked], Reply]:
    """A right answer but for its vectors."""
    return lambda request: embeddings(request, vectors=change([vector_of(text) for text in request.texts]))


def filled(number: float) -> Callable[[Asked], Reply]:
    """Every vector holds this number, once."""
    return with_vectors(lambda vectors: [np.concatenate([[number], vector[1:]]) for vector in vectors])


FAULTS: dict[str, tuple[Callable[[Asked], Reply], str]] = {
    "429": (lambda _: error(429, "Slow down."), "answered 429 for model .*Slow down"),
    "429, Retry-After 1 s": (
        lambda _: error(429, "Slow down.", headers={"Retry-After": "0.2"}), "answered 429 for model .*Slow down"
    ),
    "429, Retry-After 1 h": (
        lambda _: error(429, "Come back later.", headers={"Retry-After": "3600"}),
        "Come back later.*; it asks to be left alone for 3600 s",
    ),
    "429, quota spent": (
        lambda _: error(429, "You ran out.", code="insufficient_quota"), "quota is spent: add credit or raise the limit"
    ),
    "401": (lambda _: error(401, "Incorrect API key"), "answered 401 .*check the key in the environment variable"),
    "404": (lambda _: error(404, "No such model"), "answered 404 .*check embedding.model and embedding.base_url"),
    "400 to everything": (lambda _: error(400, "Bad."), "refuses every request .*check embedding.model"),
    "500": (lambda _: error(500, "Oh no."), "answered 500 for model .*Oh no"),
    "time-out": (lambda r: Reply(body=embeddings(r).body, delay_s=4.0), r"did not answer within 1\.5 s"),
    "too few vectors": (with_vectors(lambda vectors: vectors[:-1]), r"returned \d+ vectors for \d+ texts"),
    "too many vectors": (with_vectors(lambda v: [*v, v[0]]), r"returned \d+ vectors for \d+ texts"),
    "NaN": (filled(math.nan), "with NaN, infinity or only zeros .*check the model"),
    "infinity": (filled(math.inf), "with NaN, infinity or only zeros .*check the model"),
    "only zeros": (with_vectors(lambda v: [np.zeros(DIMENSIONS) for _ in v]), "NaN, infinity or only zeros"),
    "wrong dimensions": (
        lambda request: embeddings(request, dimensions=5), "returned 5 dimensions, expected 8: set embedding.dimensions"
    ),
    "vectors of two lengths": (
        with_vectors(lambda v: [np.ones(3 + (n % 2)) for n, _ in enumerate(v)]), "malformed embeddings"
    ),
    "HTML with status 200": (lambda _: Reply(body=_PAGE), "something else than embeddings|cannot be read"),
    "HTML with status 502": (lambda _: Reply(status=502, body=_PAGE), "answered 502"),
    "JSON cut off": (
        lambda _: Reply(body='{"object": "list", "data": [{"embed', headers={"Content-Type": "application/json"}),
        "cannot be read|something else than embeddings",
    ),
    "connection cut off": (lambda r: Reply(body=embeddings(r).body, cut=True), "cannot reach|cannot be read"),
    "an empty answer": (lambda _: Reply(body="", headers={"Content-Type": "application/json"}), "answer|embeddings"),
}  # fmt: skip
PASSING = (
    "429", "429, Retry-After 1 s", "500", "too few vectors", "NaN", "HTML with status 200", "HTML with status 502",
    "JSON cut off", "connection cut off", "too many vectors", "infinity", "an empty answer",
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_service_that_fails_from_the_third_request_on(
    fault, site, script: Script, monkeypatch, undisturbed, outcome: Record
):
    monkeypatch.setattr(failures, "_LONGEST_WAIT_S", 0.05)
    wrong, words = FAULTS[fault]
    asked: list[Asked] = []

    def reply(request: Asked) -> Reply:
        asked.append(request)
        return embeddings(request) if len(asked) <= 2 else wrong(request)

    script.reply = reply
    said = site.fails("materialize", saying=words)
    kept = len(index_of(site.database)["vectors"])
    script.reply = embeddings
    site.service.requests.clear()
    rows = converges(site, undisturbed)
    # What was paid for is not asked for again.
    again = set(site.service.texts) & {text for request in asked[:2] for text in request.texts}
    assert not again or fault == "400 to everything", (kept, again)
    outcome(f"embedding: {fault}", "embeddings", f"failed: {said[:90]}", rows=rows)


def test_a_service_that_fails_at_every_other_request_costs_nothing_but_time(
    site, script: Script, undisturbed, outcome: Record
):
    seen = 0

    def reply(request: Asked) -> Reply:
        nonlocal seen
        seen += 1
        return embeddings(request) if seen % 2 == 0 else FAULTS[PASSING[seen // 2 % len(PASSING)]][0](request)

    script.reply = reply
    site.refresh()
    assert seen >= 12
    index = index_of(site.database)
    assert index == undisturbed
    outcome(f"embedding: {len(PASSING)} passing faults in turn", "embeddings", "converged", rows=rows_in(index))


def test_one_text_that_the_model_cannot_handle_is_quarantined_and_heals(site, script, undisturbed, outcome: Record):
    """Its document keeps its former state, all others are indexed."""

    def reply(request: Asked) -> Reply:
        vectors: list[object] = [
            np.full(DIMENSIONS, math.nan) if "Page 3 of day 2 says in section 1" in text else vector_of(text)
            for text in request.texts
        ]
        return embeddings(request, vectors=vectors)

    script.reply = reply
    site.refresh()
    index = index_of(site.database)
    assert [name for name, _ in index["failures"]] == ["project:docs/page_2_3.md"]
    assert len(index["documents"]) == len(undisturbed["documents"]) - 1
    script.reply = embeddings
    outcome(
        "embedding: NaN for one text", "embeddings", "quarantined, then converged", rows=converges(site, undisturbed)
    )
