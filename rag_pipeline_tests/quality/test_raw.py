"""Source items that could not be right are found, shown, and named with what to do."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_pipeline.lake.schemas import ITEMS
from rag_pipeline.quality.raw import raw_suite
from rag_pipeline_tests.quality.lakes import DAY, FIRST_DAY, NOON, PART, check, failed, item, store

FIRST = {("acme", "handbook"): FIRST_DAY}
DOCS = raw_suite("raw_docs", first_days=FIRST)
DROPS = raw_suite("raw_webhook_drops", first_days=FIRST, drops=True)


def test_items_as_sources_give_them_pass(tmp_path):
    lake = store(tmp_path, "raw_docs", [item("a.md"), item("b.md", deleted=True, content=b"")])
    checked = check(lake, DOCS)
    assert checked.outcome.passed
    assert checked.outcome.rows == 2
    assert list(checked.passed) == [PART]


@pytest.mark.parametrize(
    ("finding", "bad", "shows"),
    [
        ("identity_complete", item(source_id=" "), "source_id"),
        ("identity_unique", item("a.md"), "handbook:a.md"),
        ("tenant_and_repository", item(tenant="rival"), "rival"),
        ("day_of_file", item(day=DAY + timedelta(days=1)), "2024-05-03"),
        ("day_of_change", item(source_updated_at=NOON - timedelta(days=1)), "2024-05-01"),
        ("day_of_change", item(source_updated_at=NOON + timedelta(days=1), observed_at=NOON + timedelta(days=1)),
         "2024-05-03"),
    ],
)  # fmt: skip
def test_an_item_that_cannot_be_right_fails_and_blocks(tmp_path, finding, bad, shows):
    lake = store(tmp_path, "raw_docs", [item("a.md"), bad])
    found = failed(lake, DOCS)
    assert list(found) == [finding]
    assert found[finding].blocks
    assert found[finding].observed == "1 (1 of 1)"
    assert shows in str(found[finding].sample)
    assert "materialize these days again" in found[finding].rule.remedy
    store(lake, "raw_docs", [item("a.md")])
    assert failed(lake, DOCS) == {}


def test_the_first_partition_holds_what_is_older(tmp_path):
    older = item(day=FIRST_DAY, source_updated_at=NOON - timedelta(days=900))
    first = type(PART)(tenant="acme", repository="handbook", day=FIRST_DAY)
    lake = store(tmp_path, "raw_docs", [older], part=first)
    assert failed(lake, DOCS) == {}
    assert list(failed(lake, raw_suite("raw_docs", first_days={("acme", "handbook"): DAY}))) == ["day_of_change"]


def test_a_clock_at_the_source_that_is_ahead_does_not_count(tmp_path):
    lake = store(tmp_path, "raw_docs", [item(source_updated_at=NOON + timedelta(hours=13))])
    assert failed(lake, DOCS) == {}


def test_drops_are_on_the_day_they_arrived_whatever_they_tell_of(tmp_path):
    lake = store(tmp_path, "raw_webhook_drops", [item(source_updated_at=NOON - timedelta(days=400))])
    assert failed(lake, DROPS) == {}
    store(lake, "raw_webhook_drops", [item(observed_at=NOON + timedelta(days=1))])
    assert list(failed(lake, DROPS)) == ["day_of_change"]


def test_columns_of_another_type_and_missing_ones_fail(tmp_path):
    lake = store(tmp_path, "raw_docs", [item()])
    path = lake.path("raw_docs", PART)
    table = pq.read_table(path)
    table = table.set_column(table.schema.get_field_index("day"), "day", table["day"].cast(pa.string()))
    pq.write_table(table.drop_columns(["source_id"]), path)
    found = failed(lake, DOCS)
    assert list(found) == ["columns"]
    assert {(row["column"], row["found"]) for row in found["columns"].sample} == {
        ("source_id", "no such column"), ("day", "string"),
    }  # fmt: skip


def test_a_column_that_an_earlier_version_did_not_have_is_no_fault(tmp_path):
    lake = store(tmp_path, "raw_docs", [item()])
    path = lake.path("raw_docs", PART)
    pq.write_table(pq.read_table(path).drop_columns(["scope"]), path)
    assert "scope" in ITEMS.names
    assert failed(lake, DOCS) == {}


def test_a_damaged_file_fails_and_is_named(tmp_path):
    lake = store(tmp_path, "raw_docs", [item()])
    with open(lake.path("raw_docs", PART), "r+b") as file:  # noqa: PTH123
        file.truncate(100)
    found = failed(lake, DOCS)
    assert list(found) == ["readable"]
    assert "2024-05-02" in str(found["readable"].sample)


def test_only_what_passed_as_it_is_is_left_alone(tmp_path):
    lake = store(tmp_path, "raw_docs", [item()])
    other = type(PART)(tenant="acme", repository="other", day=DAY)
    store(lake, "raw_docs", [item()], part=other)
    first = check(lake, DOCS)
    assert (first.parts, first.unchanged, list(first.passed)) == (2, 0, [PART])
    again = check(lake, DOCS, known=dict(first.passed))
    assert (again.parts, again.unchanged) == (1, 1)
    assert list(failed(lake, DOCS)) == ["tenant_and_repository"]
    store(lake, "raw_docs", [item("b.md")], fingerprint="v2")
    assert check(lake, DOCS, known=dict(first.passed)).parts == 2
    stricter = raw_suite("raw_docs", first_days={})
    assert check(lake, stricter, known=dict(first.passed)).parts == 2
