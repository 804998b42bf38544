"""The receiver over a real socket: only what GitHub signed reaches the inbox, and every answer says why."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from rag_pipeline.serving.webhooks import webhook_app
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline.sources.drops.parse import parse_drop
from rag_pipeline_tests.serving.receivers import DELIVERY, MAX_BODY_BYTES, NOW, PAYLOAD, SECRET, Running, signed


def test_a_signed_delivery_becomes_a_drop_that_can_be_read(receiver: Running) -> None:
    answer = receiver.post(PAYLOAD)
    assert (answer.status_code, answer.json()) == (202, {"status": "accepted"})
    name = f"issues.{DELIVERY}.json"
    assert receiver.drops == [name]
    content = receiver.inbox.read(name, max_bytes=10_000)
    assert json.loads(content) == {
        "event": "issues", "delivery": DELIVERY, "received_at": NOW.isoformat(), "payload": PAYLOAD,
    }  # fmt: skip
    parsed = parse_drop(name, content, modified_at=NOW, now=NOW, tenant="acme")
    assert parsed is not None
    assert parsed.delivery is not None
    assert (parsed.delivery.payload, parsed.delivery.received_at) == (PAYLOAD, NOW)


@pytest.mark.parametrize(
    "signature",
    [
        "", "sha256=", "sha256=" + "0" * 64, "sha1=" + "0" * 40, "sha256=größe",
        "sha256=" + hmac.new(b"another secret", json.dumps(PAYLOAD).encode(), hashlib.sha256).hexdigest(),
        hmac.new(SECRET.encode(), json.dumps(PAYLOAD).encode(), hashlib.sha256).hexdigest(),
    ],
)  # fmt: skip
def test_a_wrong_signature_is_refused_and_leaves_nothing(receiver: Running, signature: str) -> None:
    body = json.dumps(PAYLOAD).encode()
    headers = [(name.encode(), value.encode()) for name, value in signed(body).items() if "Signature" not in name]
    headers.append((b"X-Hub-Signature-256", signature.encode()))
    answer = receiver.client.post("/webhooks/github", content=body, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["status"] == "refused"
    assert receiver.drops == []


def test_a_missing_signature_is_refused_and_leaves_nothing(receiver: Running) -> None:
    assert receiver.post(PAYLOAD, drop="X-Hub-Signature-256").status_code == 401
    assert receiver.drops == []


def test_a_changed_body_is_refused_before_it_is_read_as_anything(receiver: Running) -> None:
    for body in (b'{"action": "closed"}', b"{broken", b""):
        answer = receiver.client.post("/webhooks/github", content=body, headers=signed(json.dumps(PAYLOAD).encode()))
        assert answer.status_code == 401
    assert receiver.drops == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X_GitHub_Event": ""}, 400),
        ({"X_GitHub_Event": "../../etc/passwd"}, 400),
        ({"X_GitHub_Event": "Issues"}, 400),
        ({"X_GitHub_Event": "x" * 65}, 400),
        ({"X_GitHub_Delivery": ""}, 400),
        ({"X_GitHub_Delivery": "../x"}, 400),
        ({"X_GitHub_Delivery": "a.b"}, 400),
        ({"X_GitHub_Delivery": "x" * 101}, 400),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": ""}, 415),
        ({"Content_Type": "application/json; charset=utf-8"}, 202),
        ({"X_GitHub_Event": "projects_v2_item", "X_GitHub_Delivery": "x" * 100}, 202),
    ],
)
def test_headers_that_name_no_delivery_are_refused(receiver: Running, headers: dict[str, str], status: int) -> None:
    assert receiver.post(PAYLOAD, **headers).status_code == status
    assert len(receiver.drops) == (status == 202)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"\xff",
        b'{"n": NaN}',
        b'{"a": 1, "a": 2}',
        b'{"a":' * 9_000,
        b'{"n": 1e999}',
    ],
)
def test_a_payload_that_is_no_json_object_is_refused(receiver: Running, body: bytes) -> None:
    answer = receiver.post(body)
    assert answer.status_code == 400
    assert answer.json()["reason"].startswith("the payload ")
    assert receiver.drops == []


def test_a_form_holds_the_payload_in_a_field(receiver: Running) -> None:
    form = urlencode({"payload": json.dumps(PAYLOAD)}).encode()
    assert receiver.post(form, Content_Type="application/x-www-form-urlencoded").status_code == 202
    content = receiver.inbox.read(f"issues.{DELIVERY}.json", max_bytes=10_000)
    assert json.loads(content)["payload"] == PAYLOAD
    for bad in (b"", b"payload=", b"other=1", b"payload={}&payload={}", b"\xff", b"&".join([b"a=1"] * 50)):
        assert receiver.post(bad, Content_Type="application/x-www-form-urlencoded").status_code == 400
    assert len(receiver.drops) == 1


def test_a_body_over_the_limit_is_refused_whether_or_not_it_says_so(receiver: Running) -> None:
    largest = b'{"a":"' + b"x" * (MAX_BODY_BYTES - 8) + b'"}'
    too_large = largest[:-2] + b'x"}'
    assert receiver.post(largest).status_code == 202
    assert receiver.post(too_large, X_GitHub_Delivery="2").status_code == 413
    pieces = (too_large[at : at + 1_000] for at in range(0, len(too_large), 1_000))
    headers = signed(too_large, X_GitHub_Delivery="3")
    assert receiver.client.post("/webhooks/github", content=pieces, headers=headers).status_code == 413
    assert receiver.drops == [f"issues.{DELIVERY}.json"]


def test_a_ping_is_answered_and_leaves_nothing(receiver: Running) -> None:
    answer = receiver.post({"zen": "Design for failure."}, X_GitHub_Event="ping")
    assert (answer.status_code, answer.json()) == (200, {"status": "pong"})
    assert receiver.post({}, X_GitHub_Event="ping", drop="X-Hub-Signature-256").status_code == 401
    assert receiver.drops == []


def test_only_the_two_addresses_and_their_methods_are_answered(receiver: Running) -> None:
    assert receiver.client.get("/health").status_code == 200
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        answer = receiver.client.request(method, "/webhooks/github")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert receiver.client.post("/health").status_code == 405
    assert receiver.client.get("/").status_code == 404
    assert receiver.client.get("/docs").json()["status"] == "refused"


@pytest.mark.parametrize("more", [-1, 0, 1, 500])
@pytest.mark.parametrize("filling", ["x", "é", "\\u00e9", "1e9,"])
def test_what_is_answered_with_accepted_is_taken_by_the_inbox(tmp_path: Path, more: int, filling: str) -> None:
    most, inbox = 3_000, Inbox(str(tmp_path / "inbox"))
    app = webhook_app(secret=SECRET, inbox=inbox, max_body_bytes=most, max_drop_bytes=most, clock=lambda: NOW)
    for length in range(most - 700 + more, most + 2 + more, 50):
        shell = b'{"a": ["%s1"]}' if "," not in filling else b'{"a": [%s1]}'
        room = length - len(shell) + 2
        content = filling * (room // len(filling.encode()))
        body = (shell.replace(b"%s", content.encode())).ljust(length)
        delivery = f"d-{length}"
        answer = TestClient(app).post(
            "/webhooks/github", content=body, headers=signed(body, X_GitHub_Delivery=delivery)
        )
        name = f"issues.{delivery}.json"
        assert answer.status_code in (202, 413)
        assert (answer.status_code == 202) == inbox.knows(name)
        assert length <= most or answer.status_code == 413
        if answer.status_code == 202:
            assert inbox.read(name, max_bytes=most)


def test_by_default_a_delivery_of_the_largest_size_is_taken() -> None:
    settings = Settings()
    assert settings.drops.max_drop_bytes - settings.webhooks.max_body_bytes > 1_000
