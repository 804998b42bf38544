"""What the catalog shows of every asset: complete, and true of what is there."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import dagster as dg
import psycopg
import pytest

from rag_pipeline.definitions import build_defs
from rag_pipeline.index.table_columns import table_columns
from rag_pipeline.lake.columns import MEANINGS, stage_schema
from rag_pipeline.settings import Settings

STAGES = ("raw_docs", "documents", "chunks", "embeddings")
NO_TABLE = {"query", "github_reconciliation", "index_maintenance", "pipeline_report"}
"""Assets that are no table: what they make is shown, or is in the tables of others."""


def specs_of(**settings: object) -> dict[str, dg.AssetSpec]:
    chosen = Settings.model_validate({"start_date": date(2024, 1, 1), **settings})
    return {spec.key.to_user_string(): spec for spec in build_defs(chosen).resolve_all_asset_specs()}


@pytest.fixture
def specs(tmp_path: Path) -> dict[str, dg.AssetSpec]:
    return specs_of(home=tmp_path)


def test_every_asset_is_complete(specs):
    for name, spec in specs.items():
        assert spec.description and spec.owners and spec.kinds and spec.tags and spec.group_name, name
        assert spec.code_version, f"{name}: without a code version nobody sees when it is made otherwise"
        (place,) = spec.metadata["dagster/code_references"].code_references
        assert Path(place.file_path).is_file() and place.line_number > 0, name
        if name not in NO_TABLE:
            assert spec.metadata["dagster/column_schema"].columns, name
            assert spec.metadata["dagster/table_name"], name


def test_every_column_of_the_lake_is_explained_and_no_other():
    schemas = [schema for stage in STAGES if (schema := stage_schema(stage)) is not None]
    assert {field.name for schema in schemas for field in schema} == set(MEANINGS)
    assert stage_schema("query") is None


def test_the_columns_of_the_index_are_those_of_the_database(specs, database):
    shown = specs["knowledge_index"].metadata["dagster/column_schema"].columns
    with psycopg.connect(database) as connection:
        for table in ("documents", "chunks", "links", "evaluations"):
            rows = connection.execute(
                "SELECT attname, attnotnull FROM pg_attribute"
                " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attname",
                (f"rag.{table}",),
            ).fetchall()
            assert sorted((c.name, not c.nullable) for c in table_columns(table)) == rows, table
    names = {column.name: column for column in shown}
    assert names["chunks.text_hash"].description == "key of its vector in every embedding space"
    assert names["documents.scope"].constraints.nullable and not names["chunks.tokens"].constraints.nullable
    assert table_columns("no_such_table") == ()


def test_code_links_lead_to_where_people_read_it(tmp_path):
    specs = specs_of(home=tmp_path, report={"code_url": "https://git.example.org/rag/blob/main"})
    (link,) = specs["chunks"].metadata["dagster/code_references"].code_references
    assert link.url.startswith("https://git.example.org/rag/blob/main/rag_pipeline/defs/assets/knowledge.py#L")


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ({"chunking": {"max_tokens": 80}}, {"chunks"}),
        ({"embedding": {"context": "headings"}}, {"chunks", "embeddings"}),
        ({"embedding": {"batch_texts": 3}}, set()),
        ({"redaction": {"emails": True}}, {"documents"}),
        ({"git": {"max_file_bytes": 10_000}}, {"raw_docs", "raw_code"}),
        ({"tenant": "acme"}, set()),
    ],
)  # fmt: skip
def test_settings_that_decide_what_is_made_are_part_of_the_code_version(tmp_path, settings, changed):
    before, after = specs_of(home=tmp_path), specs_of(home=tmp_path, **settings)
    assert {name for name in before if before[name].code_version != after[name].code_version} == changed
