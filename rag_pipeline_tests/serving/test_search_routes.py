"""`GET /v1/search` and `GET /v1/sources`: what is found, by whom, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.errors import ConfigError, TransientError
from rag_pipeline.index.database import connected
from rag_pipeline.index.forgetting import remove_documents
from rag_pipeline.index.spaces import activate
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.knowledge import entry, space_of, thread_entry
from rag_pipeline_tests.serving.apps import Service, index, service
from rag_pipeline_tests.serving.asked import ACME, ANN, GLOBEX, asking_as

HOSTILE = (
    "'; DROP TABLE rag.documents; --", '" OR 1=1 --', "%s %(tenant)s {vectors}", "<script>alert(1)</script>",
    "../../etc/passwd", "\\'; SELECT pg_sleep(10); --", "{{7*7}}", "\u202eabc", "%00", "a" * 400,
)  # fmt: skip


def search(service: Service, **parameters: Any) -> dict[str, Any]:
    answer = service.client.get("/v1/search", params={"q": "how to deploy"} | parameters)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def texts(found: dict[str, Any]) -> list[str]:
    return [hit["text"] for hit in found["hits"]]


def test_hits_say_where_they_stand_and_why_they_are_there(varied: Service):
    found = search(varied)
    first = found["hits"][0]
    assert first["text"] == "deploy with make deploy"
    assert (first["rank"], first["location"], first["url"]) == (
        1, "deploy.md:1-1", "https://example.org/deploy.md#L1-L1",
    )  # fmt: skip
    assert [leg["leg"] for leg in first["legs"]] == ["lexical", "vector"]
    assert first["matched_terms"] == ["deploy"]
    assert [first["text"][start:end] for start, end in first["highlights"]] == ["deploy", "deploy"]
    assert found["degraded"] == "" and found["query_id"]


@pytest.fixture(scope="module")
def varied(
    server: EmbeddedPostgres, corpus_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service that only reads, over the corpus and two documents more."""
    with new_database(server, "serving_varied", template=corpus_template) as url:
        index(
            url,
            entry("src/app.py", "deploy def main", source_type="code", language="python", repository="app", at=6),
            thread_entry(7, "deploy fails", kind="issue", author="bob", state="open", labels=["bug", "ci"], at=30),
        )
        with service(url, tmp_path_factory.mktemp("varied")) as running:
            yield running


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"repository": "app"}, {"deploy def main"}),
        ({"source_type": "code"}, {"deploy def main"}),
        ({"language": "python"}, {"deploy def main"}),
        ({"path_prefix": "src/"}, {"deploy def main"}),
        ({"author": "bob"}, {"deploy fails"}),
        ({"state": "open"}, {"deploy fails"}),
        ({"label": "bug"}, {"deploy fails"}),
        ({"label": ["bug", "ci"]}, {"deploy fails"}),
        ({"label": ["bug", "docs"]}, set()),
        ({"updated_from": "2024-05-02"}, {"deploy fails"}),
        ({"updated_to": "2024-04-30"}, set()),
        ({"min_score": "1e9"}, set()),
    ],
)
def test_filters_leave_out_what_does_not_fit(varied: Service, parameters: dict[str, Any], expected: set[str]):
    assert set(texts(search(varied, **parameters))) == expected


def test_the_other_parameters_do_what_they_say(varied: Service):
    assert len(search(varied, k=1)["hits"]) == 1
    assert {leg["leg"] for hit in search(varied, legs="lexical")["hits"] for leg in hit["legs"]} == {"lexical"}
    assert {leg["leg"] for hit in search(varied, legs="vector")["hits"] for leg in hit["legs"]} == {"vector"}
    stitched = search(varied, q="pip HOME", repository="handbook", stitch=True)
    assert "install with pip install tool\n\nset HOME before the first start" in texts(stitched)
    for options in ({"rerank": False}, {"diversity": 0.5}, {"linked": True}):
        assert texts(search(varied, **options))[0]


@pytest.mark.parametrize(
    "parameters",
    [
        {}, {"q": ""}, {"q": "x" * 4001}, {"q": "a\0b"}, {"q": "x", "k": 0}, {"q": "x", "k": 201},
        {"q": "x", "k": "many"}, {"q": "x", "legs": "both"}, {"q": "x", "min_score": "nan"},
        {"q": "x", "diversity": 2}, {"q": "x", "unknown": 1},
        {"q": "x", "updated_from": "yesterday"}, {"q": "x", "updated_from": "1700000000"},
        {"q": "x", "updated_from": "2024-02-02", "updated_to": "2024-02-01"}, {"q": "x", "repository": ""},
        {"q": "x", "repository": "r" * 501}, {"q": "x", "label": ["l"] * 51}, {"q": "x", "scope": ["s\0"]},
        {"q": "x", "rerank": "perhaps"},
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_and_said_why(varied: Service, parameters: dict[str, Any]):
    answer = varied.client.get("/v1/search", params=parameters)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "invalid" and answer.json()["error"]["details"]


def test_a_question_of_blanks_is_refused(varied: Service):
    answer = varied.client.get("/v1/search", params={"q": "  \x1c "})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")


@pytest.mark.parametrize("name", ["repository", "source_type", "language", "path_prefix", "author", "state", "label"])
def test_sql_and_html_in_any_field_find_nothing_and_break_nothing(varied: Service, name: str):
    for hostile in HOSTILE:
        if name in ("repository", "source_type"):
            assert varied.client.get("/v1/search", params={"q": "how to deploy", name: hostile}).status_code == 422
        else:
            assert search(varied, **{name: hostile})["hits"] == []


def test_sql_and_html_in_the_question_are_words_like_others(varied: Service):
    for hostile in HOSTILE:
        search(varied, q=hostile)
    with varied.services.pool.connection() as connection:
        assert connection.execute("SELECT count(*) FROM rag.documents").fetchone() == (6,)


def test_each_sees_the_own_tenant_and_scopes_alone(varied: Service):
    def seen(**parameters: Any) -> set[str]:
        return {
            text for q in ("rota of ann", "vault plans", "deploy") for text in texts(search(varied, q=q, **parameters))
        }

    with asking_as(varied, ACME):
        everybody = seen()
        assert not {text for text in everybody if "rota" in text or "vault" in text}
        assert varied.client.get("/v1/search", params={"q": "x", "scope": "user:ann"}).status_code == 403
    with asking_as(varied, ANN):
        assert seen() == everybody  # a scope counts where it is named
        mine = seen(scope="user:ann")
        assert mine - everybody == {"who is on call is written in the rota of ann"}
        assert varied.client.get("/v1/search", params={"q": "x", "scope": "user:bob"}).status_code == 403
    with asking_as(varied, GLOBEX):
        assert seen(scope="user:ann") == {"globex keeps its plans in the vault"}


def test_sources_are_those_that_the_caller_may_see(varied: Service):
    def sources(**parameters: Any) -> list[tuple[str, str, int, int]]:
        answer = varied.client.get("/v1/sources", params=parameters).json()["sources"]
        return [(s["repository"], s["source_type"], s["documents"], s["chunks"]) for s in answer]

    app, issue = ("app", "code", 1, 1), ("handbook", "github_issue", 1, 1)
    with asking_as(varied, ANN):
        for _ in range(2):  # the second time from the cache
            assert sources() == [app, ("handbook", "docs", 2, 4), issue]
            assert sources(scope="user:ann") == [app, ("handbook", "docs", 3, 5), issue]
        assert varied.client.get("/v1/sources", params={"scope": "user:bob"}).status_code == 403
        assert varied.client.get("/v1/sources", params={"scopes": "x"}).status_code == 422
    with asking_as(varied, GLOBEX):
        assert sources() == [("handbook", "docs", 1, 1)]
    with asking_as(varied, replace(ACME, tenant="nobody")):
        assert sources() == []


def look_ups(service: Service) -> dict[tuple[str, str], float]:
    """How often each cache was asked, by its name and what came of it."""
    text = service.client.get("/metrics").text
    lines = [line for line in text.splitlines() if line.startswith("rag_cache_lookups_total{")]
    found = {}
    for line in lines:
        labels, _, value = line.partition("}")
        parts = dict(part.split("=") for part in labels.partition("{")[2].split(","))
        found[parts["cache"].strip('"'), parts["result"].strip('"')] = float(value)
    return found


def test_the_same_search_is_done_once_until_something_is_written(running: Service, indexed: str):
    first = search(running)
    again = search(running)
    assert again["hits"] == first["hits"] and again["query_id"] != first["query_id"]
    assert look_ups(running)["results", "hit"] == 1
    assert "deploy by hand" not in texts(again)
    index(indexed, entry("new.md", "deploy by hand", at=9))
    assert "deploy by hand" in texts(search(running))
    assert look_ups(running)["results", "hit"] == 1
    # The question itself was embedded once.
    assert look_ups(running)["embedding", "miss"] == 1


def test_what_was_deleted_is_not_found_any_more(running: Service, indexed: str):
    assert "deploy with make deploy" in texts(search(running))
    with connected(indexed) as connection:
        remove_documents(connection, [entry("deploy.md").document.document_id])
    assert "deploy with make deploy" not in texts(search(running))


def test_what_others_write_leaves_the_cache_alone(running: Service, indexed: str):
    search(running)
    index(indexed, entry("theirs.md", "deploy theirs", tenant="initech", at=9))
    # Making the space ready for another tenant is no promotion: it was active before.
    search(running)
    assert look_ups(running)["results", "hit"] == 1


def test_another_space_is_searched_from_the_moment_it_is_promoted(running: Service, indexed: str):
    search(running)
    with connected(indexed) as connection:
        other = space_of(connection, model="other", dimensions=64)
        activate(connection, other)
    found = search(running)
    assert {leg["rank"] for hit in found["hits"] for leg in hit["legs"] if leg["leg"] == "vector"} <= {None}
    assert ("results", "hit") not in look_ups(running) or look_ups(running)["results", "hit"] == 0


def test_without_the_model_the_words_are_searched_and_that_is_said_and_not_remembered(running: Service):
    model = running.services.embedders
    real, broken = model.of, TransientError("https://internal:8080 refused the key sk-123")

    def fail(space: object) -> Any:
        raise broken

    object.__setattr__(model, "of", fail)
    found = search(running)
    assert texts(found)[0] == "deploy with make deploy"
    assert found["degraded"].startswith("searched by words alone")
    assert "internal" not in str(found) and "sk-123" not in str(found)
    alone = running.client.get("/v1/search", params={"q": "deploy", "legs": "vector"})
    assert (alone.status_code, alone.headers["retry-after"]) == (503, "1")
    assert "internal" not in alone.text
    broken = ConfigError("set OPENAI_API_KEY")  # type: ignore[assignment]
    alone = running.client.get("/v1/search", params={"q": "deploy", "legs": "vector"})
    assert alone.status_code == 503 and "OPENAI" not in alone.text
    object.__setattr__(model, "of", real)
    assert search(running)["degraded"] == ""


def test_a_connection_that_was_lost_is_replaced(running: Service, indexed: str):
    search(running)
    with psycopg.connect(indexed, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )
    assert texts(search(running, q="roll back"))[0] == "roll back with make rollback"


def test_without_a_database_it_is_unavailable_for_now(tmp_path, impatient):
    with service("postgresql://nobody@127.0.0.1:9/none", tmp_path) as running:
        for path in ("/v1/search?q=deploy", "/v1/sources"):
            answer = running.client.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
            assert answer.headers["retry-after"] and "127.0.0.1" not in answer.text


def test_before_anything_is_indexed_that_is_what_is_said(database: str, tmp_path):
    with service(database, tmp_path) as running:
        answer = running.client.get("/v1/search", params={"q": "deploy"})
        assert answer.status_code == 503 and "nothing is indexed yet" in answer.json()["error"]["message"]
        assert running.client.get("/v1/sources").json() == {"sources": []}
