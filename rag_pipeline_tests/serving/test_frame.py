"""What surrounds all routes: one shape of errors, and the way to the services."""

from __future__ import annotations

import httpx

from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline_tests.serving.apps import Service


def test_what_runs_is_live(running: Service, address: str) -> None:
    assert running.client.get("/health/live").json() == {"status": "ok", "live": True}
    assert httpx.get(f"{address}/health/live", trust_env=False).status_code == 200


def test_the_services_search_the_index_as_the_tenant_that_is_named(running: Service) -> None:
    found = running.services.search(SearchQuery(text="how to deploy", tenant="acme"))
    assert found.degraded == ""
    assert found.hits[0].text == "deploy with make deploy"
    assert not [hit for hit in found.hits if "rota" in hit.text or "vault" in hit.text]


def test_addresses_and_methods_that_do_not_exist_are_refused_in_one_shape(running: Service) -> None:
    missing = running.client.get("/v1/nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    wrong = running.client.delete("/health/live")
    assert (wrong.status_code, wrong.json()["error"]["code"], wrong.headers["allow"]) == (
        405, "method_not_allowed", "GET",
    )  # fmt: skip
