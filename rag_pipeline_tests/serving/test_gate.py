"""Who gets in: keys that count, and people of this machine. Everybody else is told the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from rag_pipeline.index.api_keys import create_key, keys, revoke_key
from rag_pipeline.index.database import connected
from rag_pipeline.index.quota import requests_served
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.depends import Reader, Writer
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.embedded.servers import EmbeddedPostgres
from rag_pipeline_tests.serving.apps import NOW, Service, service


def with_doors(running: Service) -> Service:
    """The service with one route for each who may come in."""

    @running.app.get("/v1/read")
    async def read(caller: Reader) -> dict[str, object]:
        return _shown(caller)

    @running.app.put("/v1/write")
    async def write(caller: Writer) -> dict[str, object]:
        return _shown(caller)

    @running.app.get("/v1/scoped/{scope}")
    async def scoped(caller: Reader, scope: str) -> dict[str, object]:
        return {"scopes": caller.scoped([scope])}

    return running


def _shown(caller: Caller) -> dict[str, object]:
    return {"tenant": caller.tenant, "role": caller.role, "key_id": caller.key_id}


@pytest.fixture(scope="module")
def url(server: EmbeddedPostgres, corpus_template: str) -> Iterator[str]:
    with new_database(server, "serving_gate", template=corpus_template) as url:
        yield url


@pytest.fixture(scope="module")
def doors(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(url, tmp_path_factory.mktemp("home")) as running:
        yield with_doors(running)


def key(running: Service, **how: object) -> dict[str, str]:
    """The headers of a new key."""
    with running.services.pool.connection() as connection:
        _, text = create_key(connection, **({"tenant": "globex", "name": "ci", "role": "read", "now": NOW} | how))  # type: ignore[arg-type]
    return {"Authorization": f"Bearer {text}"}


def test_a_key_stands_for_its_tenant_and_role_in_either_header(doors: Service) -> None:
    sent = key(doors)
    for headers in (
        sent, {"X-API-Key": sent["Authorization"][7:]}, {"authorization": sent["Authorization"].replace("B", "b", 1)},
        # Beside what somebody else wants to know, such as a proxy's login.
        {"Authorization": "Basic dTpw", "X-API-Key": sent["Authorization"][7:]},
    ):  # fmt: skip
        answer = doors.client.get("/v1/read", headers=headers)
        assert answer.status_code == 200, headers
        assert (answer.json()["tenant"], answer.json()["role"]) == ("globex", "read")


def test_who_may_write_may_read_and_nobody_else_may_write(doors: Service) -> None:
    writer, reader = key(doors, role="write"), key(doors)
    assert doors.client.put("/v1/write", headers=writer).status_code == 200
    assert doors.client.get("/v1/read", headers=writer).status_code == 200
    refused = doors.client.put("/v1/write", headers=reader)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    nobody = doors.client.put("/v1/write")
    assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, "Bearer")


def test_what_is_wrong_with_a_key_nobody_learns(doors: Service) -> None:
    good = key(doors)["Authorization"]
    expiring = key(doors, expires_at=NOW + timedelta(seconds=1))["Authorization"]
    revoked = key(doors, name="revoked")["Authorization"]
    with doors.services.pool.connection() as connection:
        assert revoke_key(connection, revoked.split("_")[1], now=NOW)
    doors.clock.now = NOW + timedelta(seconds=1)
    wrong = (
        revoked, expiring, good[:-1] + ("B" if good[-1] == "A" else "A"), "Bearer ", "Bearer", "Bearer x", "Basic dTpw",
        good[7:],
        "Bearer rag_" + "a" * 5_000, "Bearer rag_000000000000_" + good.split("_", 2)[2], f"{good} {good}",
    )  # fmt: skip
    answers = [doors.client.get("/v1/read", headers={"Authorization": text}) for text in wrong]
    answers += [doors.client.get("/v1/read", headers={"X-API-Key": text}) for text in ("", "x", revoked[7:])]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    doors.clock.now = NOW


def test_a_key_is_refused_with_the_first_request_after_it_was_revoked(doors: Service) -> None:
    sent = key(doors, name="soon revoked")
    assert doors.client.get("/v1/read", headers=sent).status_code == 200
    with doors.services.pool.connection() as connection:
        (made,) = [k for k in keys(connection) if k.name == "soon revoked"]
        assert made.last_used_at == NOW
        revoke_key(connection, made.key_id, now=NOW)
    assert doors.client.get("/v1/read", headers=sent).status_code == 401


def test_a_key_names_its_own_scopes_and_no_others(doors: Service) -> None:
    sent = key(doors, scopes=["user:ann", "team:*"])
    for scope, status in (
        ("user:ann", 200), ("team:red", 200), ("user:bob", 403), ("user:ann2", 403), ("team:", 403), ("team", 403),
        ("user:*", 403), ("*", 403),
    ):  # fmt: skip
        assert doors.client.get(f"/v1/scoped/{scope}", headers=sent).status_code == status, scope
    assert doors.client.get("/v1/scoped/user:ann").status_code == 403, "nobody without a key names a scope"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:8080", "[::1]:8080"])
def test_people_of_this_machine_read_as_the_configured_tenant(doors: Service, host: str) -> None:
    answer = doors.client.get("/v1/read", headers={"Host": host})
    assert answer.json() == {"tenant": "acme", "role": "read", "key_id": None}


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Host": "localhost.evil.example"}, {"Host": "127.0.0.1.evil.example"},
     {"Host": "evil.example:127"}, {"Host": "localhost:80:80"}, {"Host": "127.0.0.2"}, {"Host": "10.0.0.1:8080"},
     {"X-Forwarded-For": "1.2.3.4"}, {"Forwarded": "for=1.2.3.4"}, {"Via": "1.1 proxy"}, {"X-Real-IP": "1.2.3.4"},
     {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
)  # fmt: skip
def test_others_need_a_key_even_though_they_come_by_this_machine(doors: Service, headers: dict[str, str]) -> None:
    answer = doors.client.get("/v1/read", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
    # With one, they come in from wherever they are.
    assert doors.client.get("/v1/read", headers=headers | key(doors)).status_code == 200


def test_whoever_gives_two_names_of_the_service_needs_a_key(doors: Service) -> None:
    for names in (("localhost", "evil.example"), ("evil.example", "localhost"), ("localhost", "localhost")):
        answer = doors.client.get("/v1/read", headers=[("Host", name) for name in names])
        assert answer.status_code == 401, names


def test_our_own_page_needs_no_key(doors: Service) -> None:
    headers = {"Host": "localhost:8080", "Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"}
    assert doors.client.get("/v1/read", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "how", [{"is_local": False}, {"serving": {"anonymous": "never"}}], ids=["reached from elsewhere", "told so"]
)
def test_nobody_reads_without_a_key(url: str, tmp_path, how: dict) -> None:
    with service(url, tmp_path, **how) as running:
        with_doors(running)
        assert running.client.get("/v1/read").status_code == 401
        assert running.client.get("/v1/read", headers=key(running)).status_code == 200
        paths = running.client.get("/openapi.json").json()["paths"]
        assert {} not in paths["/v1/read"]["get"]["security"]


def test_the_document_says_which_routes_need_no_key(doors: Service) -> None:
    paths = doors.client.get("/openapi.json").json()["paths"]
    assert paths["/v1/read"]["get"]["security"][0] == {}
    assert {} not in paths["/v1/write"]["put"]["security"]


def test_a_tenant_has_so_many_requests_a_minute_and_then_has_to_wait(url: str, tmp_path) -> None:
    with service(url, tmp_path, serving={"requests_per_minute": 3}) as running:
        with_doors(running)
        first, second = key(running), key(running, role="write")
        left = [
            running.client.get("/v1/read", headers=h).headers["RateLimit-Remaining"] for h in (first, second, first)
        ]
        assert left == ["2", "1", "0"]
        running.clock.now += timedelta(seconds=20)
        refused = running.client.get("/v1/read", headers=second)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limited")
        assert refused.headers["Retry-After"] == refused.headers["RateLimit-Reset"] == "40"
        assert running.client.get("/v1/read").status_code == 200, "another tenant's requests are its own"
        running.clock.now += timedelta(seconds=40)
        assert running.client.get("/v1/read", headers=first).status_code == 200


def test_a_tenant_has_so_many_requests_a_month(url: str, tmp_path) -> None:
    with service(url, tmp_path, tenant="initech", serving={"requests_per_month": 2}) as running:
        with_doors(running)
        assert [running.client.get("/v1/read").status_code for _ in range(3)] == [200, 200, 429]
        refused = running.client.get("/v1/read")
        assert refused.json()["error"]["code"] == "quota_exhausted"
        assert int(refused.headers["Retry-After"]) == 28 * 86_400 + 12 * 3_600
        running.clock.now += timedelta(days=29)
        assert running.client.get("/v1/read").status_code == 200
    # What was counted is on record once the service has ended.
    with connected(url) as connection:
        served = [
            requests_served(connection, tenant="initech", month=NOW.date().replace(month=m, day=1)) for m in (6, 7)
        ]
    assert served == [2, 1]
