"""Keys: shown once, kept as hashes, and worth nothing once they are revoked or over."""

from __future__ import annotations

import dataclasses
from datetime import date, timedelta

import pytest

from rag_pipeline.errors import ConfigError
from rag_pipeline.index.api_keys import create_key, key_of, keys, revoke_key
from rag_pipeline.index.database import Connection
from rag_pipeline.index.forgetting import memories, remembered
from rag_pipeline.index.quota import add_requests, requests_served
from rag_pipeline_tests.databases import empty
from rag_pipeline_tests.knowledge import NOW


@pytest.fixture
def database(reused_database: str) -> str:
    """A migrated database with no key in it."""
    empty(reused_database)
    return reused_database


def made(connection: Connection, **how: object) -> tuple[str, str]:
    """The id and the text of a new key."""
    key, text = create_key(connection, **({"tenant": "acme", "name": "ci", "role": "read", "now": NOW} | how))  # type: ignore[arg-type]
    return key.key_id, text


def test_a_key_is_known_by_its_text_and_kept_as_a_hash(connection: Connection) -> None:
    key, text = create_key(connection, tenant="acme", name="ci", role="write", scopes=["user:*", "user:*"], now=NOW)
    found = key_of(connection, text, now=NOW)
    assert found == key
    assert (found.tenant, found.role, found.scopes) == ("acme", "write", ("user:*",))
    kept = connection.execute("SELECT to_jsonb(k)::text FROM rag.api_keys AS k").fetchone()
    assert kept is not None
    assert text.removeprefix(f"rag_{key.key_id}_") not in kept[0]
    assert text.removeprefix(f"rag_{key.key_id}_") not in repr(keys(connection))


def test_two_keys_have_nothing_in_common(connection: Connection) -> None:
    (first_id, first), (second_id, second) = made(connection), made(connection)
    assert first_id != second_id
    mixed = f"rag_{first_id}_{second.split('_', 2)[2]}"
    assert key_of(connection, mixed, now=NOW) is None
    assert key_of(connection, first, now=NOW) is not None


def test_a_text_that_is_no_key_opens_nothing(connection: Connection) -> None:
    key_id, text = made(connection)
    secret = text.split("_", 2)[2]
    wrong_end = "A" if text[-1] != "A" else "B"
    damaged = (
        text[:-1] + wrong_end, text + "A", text[:-1], text.upper(), " " + text, text + "\n", "", "rag__", text[4:],
        f"rag_0{key_id}_{secret}", f"rag_000000000000_{secret}", f"rag_{key_id}_", "\0", "é" * 60, "\ud800",
        "' OR 1=1 --",
    )  # fmt: skip
    assert [other for other in damaged if key_of(connection, other, now=NOW)] == []
    assert key_of(connection, text, now=NOW)


def test_a_revoked_key_opens_nothing_from_then_on(connection: Connection) -> None:
    key_id, text = made(connection)
    assert revoke_key(connection, key_id, now=NOW)
    assert key_of(connection, text, now=NOW) is None
    assert not revoke_key(connection, key_id, now=NOW + timedelta(days=1))
    (kept,) = keys(connection)
    assert (kept.state(NOW), kept.revoked_at) == ("revoked", NOW)
    with pytest.raises(ConfigError, match=r"there is no key 'nobody': `rag-pipeline keys list`"):
        revoke_key(connection, "nobody", now=NOW)


def test_a_key_ends_at_its_moment(connection: Connection) -> None:
    _, text = made(connection, expires_at=NOW + timedelta(hours=1))
    assert key_of(connection, text, now=NOW + timedelta(minutes=59)) is not None
    assert key_of(connection, text, now=NOW + timedelta(hours=1)) is None
    with pytest.raises(ConfigError, match="which is over"):
        made(connection, expires_at=NOW)


def test_its_use_is_written_down_once_a_minute(connection: Connection) -> None:
    _, text = made(connection)
    written = []
    for seconds in (0, 1, 59, 60, 61, 119, 120):
        key_of(connection, text, now=NOW + timedelta(seconds=seconds))
        written.append(keys(connection)[0].last_used_at)
    assert [(at - NOW).total_seconds() for at in written if at] == [0, 0, 0, 60, 60, 60, 120]


def test_what_no_key_can_be_is_refused(connection: Connection) -> None:
    for how in (
        {"tenant": ""}, {"name": "a\0b"}, {"name": "x" * 201}, {"tenant": "\ud800"}, {"scopes": [""]},
        {"scopes": ["user ann"]}, {"scopes": ["*user"]}, {"scopes": ["a*b"]}, {"scopes": ["\0"]},
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            made(connection, **how)
    assert keys(connection) == []


def test_requests_add_up_by_tenant_and_month(connection: Connection) -> None:
    may, june = date(2024, 5, 1), date(2024, 6, 1)
    assert requests_served(connection, tenant="acme", month=may) == 0
    assert add_requests(connection, tenant="acme", month=may, requests=3) == 3
    assert add_requests(connection, tenant="acme", month=may, requests=4) == 7
    assert add_requests(connection, tenant="acme", month=june, requests=1) == 1
    assert add_requests(connection, tenant="globex", month=may, requests=1) == 1
    assert requests_served(connection, tenant="acme", month=may) == 7


def test_a_forgotten_tenant_leaves_no_key_and_no_count(connection: Connection) -> None:
    for tenant in ("acme", "globex"):
        made(connection, tenant=tenant)
        add_requests(connection, tenant=tenant, month=date(2024, 5, 1), requests=1)
    assert {tenant for tenant, _ in remembered(connection)} == {"acme", "globex"}
    # A repository of that name has neither.
    of_repository = memories(connection, "acme", "handbook", remove=True)
    assert (of_repository["api_keys"], of_repository["requests_served"]) == (0, 0)
    found = memories(connection, "acme", None, remove=True)
    assert (found["api_keys"], found["requests_served"]) == (1, 1)
    assert {tenant for tenant, _ in remembered(connection)} == {"globex"}
    assert [key.tenant for key in keys(connection)] == ["globex"]


def test_what_is_shown_of_a_key_has_no_place_for_its_secret(connection: Connection) -> None:
    key, _ = create_key(connection, tenant="acme", name="ci", role="read", now=NOW)
    assert not [name for name in dataclasses.asdict(key) if "secret" in name or "hash" in name]
