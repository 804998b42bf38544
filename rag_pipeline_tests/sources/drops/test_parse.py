"""What a dropped file is: a delivery, records, or a page; and what is said of the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.documents import clean
from rag_pipeline.errors import ItemError
from rag_pipeline.lake.schemas import dump_metadata
from rag_pipeline.sources.drops.github_events import GITHUB_EVENTS
from rag_pipeline.sources.drops.parse import parse_drop
from rag_pipeline_tests.sources.drops.parsing import NOW, RECORD, WRITTEN, item, parse, refusal

NAMES = [
    "a.json", "a.ndjson", "a.jsonl", "a.md", "a.markdown", "a.html", "a.htm", "a.txt", "a.ipynb", "a.rst", "a.adoc",
    "issues.0a1b.json", "a.pdf", "a",
]  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
KEYS = ["id", "tenant", "source_type", "title", "url", "content", "content_type", "updated_at", "scope", "metadata"]
RECORDS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys([*KEYS, "deleted", "event", "delivery", "payload"], JSON)
) | st.fixed_dictionaries({"id": st.text(min_size=1, max_size=9), "content": st.text(), "metadata": st.just({})})
CONTENT = (
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-16"))
    | RECORDS.map(lambda record: json.dumps(record).encode())
    | st.lists(RECORDS, max_size=4).map(lambda records: json.dumps(records, indent=1).encode())
    | st.lists(RECORDS, max_size=4).map(lambda records: "\n".join(map(json.dumps, records)).encode())
    | st.text(max_size=50).map(lambda text: f"---\n{text}\n---\nbody".encode("utf-8", "replace"))
    | st.tuples(RECORDS, st.integers(0, 99)).map(lambda cut: json.dumps(cut[0]).encode()[: cut[1]])
)


@given(content=CONTENT, name=st.sampled_from(NAMES), age_s=st.sampled_from([-90_000, -5, 0, 30, 90_000]))
def test_whatever_is_dropped_becomes_storable_items_or_a_reason(content: bytes, name: str, age_s: int) -> None:
    try:
        parsed = parse_drop(name, content, modified_at=NOW - timedelta(seconds=age_s), now=NOW, tenant="acme")
    except ItemError as error:
        assert str(error).startswith(f"{name}: ")
        return
    if parsed is None:
        assert abs(age_s) < 60
        return
    assert (parsed.delivery is None) == bool(parsed.items)
    for found in parsed.items:
        for text in (found.tenant, found.source_id, found.title or "", found.url or "", dump_metadata(found.metadata)):
            assert "\x00" not in text
            text.encode("utf-8")
        json.dumps(found.metadata, allow_nan=False)
        assert found.observed_at <= NOW
        if not name.endswith(".ipynb"):
            clean(found)
    for bad in parsed.bad_lines:
        assert bad.reason.startswith(f"{name}, line {bad.line}: ")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not valid JSON"),
        (b"\xff\xfe\x00\xd8", "is not UTF-16 text"),
        (b'{"id": "\xff"}', "is not UTF-8 text (byte 9)"),
        (b'{"id": 1, "content": "x", "id": 2}', "holds the key 'id' twice"),
        (b'{"id": 1, "content": "x", "metadata": {"n": NaN}}', "holds NaN, which is not JSON"),
        (b'{"id": 1, "content": "x", "metadata": {"n": 1e999}}', "holds a number that is too large: 1e999"),
        (b'{"id": ' + b"9" * 5_000 + b"}", "holds a number of 5,000 digits"),
        (b'{"a":' * 100_000, "is nested deeper than 100 levels"),
        (b"[" * 100_000, "is nested deeper than 100 levels"),
        (b'{"id": 1, "content": "x", "a": ' + b"[" * 150 + b"]" * 150 + b"}", "is nested deeper than 100 levels"),
        (b'{"id": 1, "content": "x"} {', "is not valid JSON: Extra data (line 1, column 27)"),
        (b'{"id": 1, "content": "\x00"}', "is not valid JSON: Invalid control character"),
        (b'"text"', "must be a JSON object, an array of objects, or one object a line"),
        (b"[]", "holds no record"),
        (b"[1, 2] x", "is not valid JSON: Extra data"),
        (b"[1 2]", "is not valid JSON: Expecting ',' delimiter"),
        (b"[1, null, {}, {}]", "no record can be taken: line 1: is not a JSON object; line 1: is not a JSON object; "
         "line 1: content is missing; and 1 more"),
    ],
)  # fmt: skip
def test_hostile_and_broken_json_is_refused_with_a_reason(content: bytes, reason: str) -> None:
    assert refusal(content).startswith(f"a.json: {reason}")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_json_is_read_in_all_its_encodings(encoding: str) -> None:
    text = json.dumps(RECORD | {"title": "Größe"}, ensure_ascii=False)
    assert item(text.encode(encoding)).title == "Größe"
    assert item(f"{text}\n".encode(encoding), "a.ndjson").title == "Größe"


def test_what_databases_refuse_in_texts_is_taken_out() -> None:
    found = item(RECORD | {"content": "a\ud83d\x00b", "title": "cut \ud83d", "metadata": {"\ud800": ["\x00\udfff"]}})
    assert (found.content, found.title) == ("a\ufffdb".encode(), "cut \ufffd")
    assert found.metadata["\ufffd"] == ["\ufffd"]


def test_a_large_content_is_taken() -> None:
    assert len(item(RECORD | {"content": "x" * 10_000_000}).content) == 10_000_000


@pytest.mark.parametrize("name", ["a.ndjson", "a.jsonl", "a.JSONL", "a.json"])
def test_of_lines_the_good_are_taken_and_the_bad_are_told(name: str) -> None:
    lines = ['{"id": 1, "content": "one"}', "", '{"id": 2}', '{"id": 3, "content": "three"}\r', '{"id": 4, "content']
    parsed = parse("\n".join(lines), name)
    assert [found.source_id for found in parsed.items] == ["1", "3"]
    assert [(bad.line, bad.content.decode()) for bad in parsed.bad_lines] == [(3, lines[2]), (5, lines[4])]
    assert parsed.bad_lines[0].reason == f"{name}, line 3: content is missing"
    assert parsed.bad_lines[1].reason.startswith(f"{name}, line 5: is not valid JSON: Unterminated string")


def test_a_line_that_is_not_text_spoils_no_other() -> None:
    parsed = parse(b'{"id": 1, "content": "x"}\n{"id": 2, "content": "\xff"}\n' + b"[" * 50_000, "a.ndjson")
    assert [found.source_id for found in parsed.items] == ["1"]
    assert [bad.line for bad in parsed.bad_lines] == [2, 3]


def test_of_an_array_the_good_are_taken_and_the_bad_are_told() -> None:
    bad = '{"id": 3,\n  "content": "x", "metadata": {"n": NaN}}'
    text = f'[\n {{"id": 1, "content": "one"}},\n "two",\n {bad},\n {{"id": 4, "content": ""}}\n]\n'
    parsed = parse(text)
    assert [found.source_id for found in parsed.items] == ["1", "4"]
    assert [(line.line, line.content) for line in parsed.bad_lines] == [
        (3, b'"two"'),
        (4, bad.encode()),
    ]
    assert parsed.bad_lines[1].reason == "a.json, line 4: holds NaN, which is not JSON"


def test_each_identity_occurs_once_in_its_newest_state() -> None:
    states = [
        RECORD | {"content": "older", "updated_at": 1}, RECORD | {"content": "newest", "updated_at": 9},
        RECORD | {"content": "old", "updated_at": 5}, RECORD | {"content": "other", "tenant": "globex"},
        {"id": 2, "content": "first"}, {"id": 2, "content": "second"},
    ]  # fmt: skip
    assert [found.content for found in parse(states).items] == [b"newest", b"other", b"second"]


@pytest.mark.parametrize("name", ["a.json", "a.ndjson", "a.ipynb"])
def test_json_that_ends_early_may_still_be_being_written_and_is_refused_when_it_is_old(name: str) -> None:
    record = {"id": "a\u00fc\\", "cells": [], "n": [1, -2.5, True, False, None], "content": "größe"}
    whole = json.dumps(record, ensure_ascii=False)
    content = whole.replace("\\\\", "\\u00fc").encode()
    for end in range(len(content)):
        fresh = parse_drop(name, content[:end], modified_at=NOW - timedelta(seconds=59), now=NOW, tenant="acme")
        assert fresh is None, content[:end]
    assert "a." in refusal(content[:-3], name, modified_at=NOW - timedelta(seconds=61))
    assert item(content, name, modified_at=NOW).source_id in ("aüü", "a.ipynb")


def test_lines_whose_last_ends_early_wait_as_a_whole() -> None:
    content = b'{"id": 1, "content": "x"}\n{"id": 2, "con'
    for name in ("a.json", "a.ndjson"):
        assert parse_drop(name, content, modified_at=NOW, now=NOW, tenant="acme") is None
        assert len(parse(content, name).items) == 1
        assert len(parse(content + b"\n", name, modified_at=NOW).bad_lines) == 1


def test_json_that_is_wrong_in_the_middle_is_refused_at_once() -> None:
    assert "is not valid JSON" in refusal(b'{"id": 1, "content" "x"}', modified_at=NOW)


@pytest.mark.parametrize("extra", [{}, {"headers": {"x": "y"}, "id": 7}])
def test_a_wrapped_delivery_is_one(extra: dict[str, object]) -> None:
    wrapped = {"event": "issues", "delivery": "0a1b-2c", "payload": {"action": "opened", "n": "\ud800"}} | extra
    parsed = parse(wrapped | {"received_at": "2024-05-01T10:00:00Z"}, "anything.json")
    assert parsed.delivery is not None
    assert (parsed.delivery.event, parsed.delivery.delivery) == ("issues", "0a1b-2c")
    assert parsed.delivery.received_at == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert parsed.delivery.payload == {"action": "opened", "n": "\ufffd"}
    assert not parsed.items
    unwrapped_time = parse(wrapped).delivery
    assert unwrapped_time is not None
    assert unwrapped_time.received_at == WRITTEN


def test_a_bare_payload_is_a_delivery_by_its_files_name() -> None:
    parsed = parse({"action": "opened", "id": 3}, "projects_v2_item.0A1b-2c.json")
    assert parsed.delivery is not None
    assert (parsed.delivery.event, parsed.delivery.delivery) == ("projects_v2_item", "0A1b-2c")
    assert parsed.delivery.payload == {"action": "opened", "id": 3}
    assert {"push", "issues", "issue_comment", "pull_request", "release", "sub_issues"} <= GITHUB_EVENTS


@pytest.mark.parametrize("name", ["release.notes.json", "issues.json", "unheard_of.0a1b.json"])
def test_knowledge_is_no_delivery_whatever_its_files_name(name: str) -> None:
    assert item(RECORD, name).source_id == "faq-1"
    assert item({"id": "faq-1", "deleted": True}, name).deleted


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"event": "Issues/.."}, "event must be the name of a GitHub event"),
        ({"delivery": None}, "delivery must be the id of a GitHub delivery"),
        ({"delivery": "a/b"}, "delivery must be the id of a GitHub delivery"),
        ({"payload": "{}"}, "payload must be an object"),
        ({"received_at": "soon"}, "received_at is not a time"),
    ],
)
def test_a_malformed_delivery_is_refused(change: dict[str, object], reason: str) -> None:
    delivery = {"event": "issues", "delivery": "0a1b", "payload": {}}
    assert refusal(delivery | change).startswith(f"a.json: {reason}")


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.json.gz", ""])
def test_other_kinds_of_files_are_refused_with_what_could_be_dropped(name: str) -> None:
    assert refusal(RECORD, name).startswith(
        f"{name}: files of this kind are not taken: drop one of .adoc .asciidoc .htm"
    )
