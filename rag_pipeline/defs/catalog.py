"""What the catalog shows of every asset beyond its own words: columns, where it lies, its code, and its code version.

A code version holds the settings that decide what an asset makes: change them, and Dagster shows the partitions that
were made otherwise as stale.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import dagster as dg
import pyarrow as pa

from rag_pipeline.chunking.chunk import CHUNKING_VERSION
from rag_pipeline.documents.clean import CLEANING_VERSION
from rag_pipeline.embedding.spaces import settings_version
from rag_pipeline.index.table_columns import table_columns
from rag_pipeline.lake.columns import MEANINGS, stage_schema
from rag_pipeline.lake.derive import combine
from rag_pipeline.refresh import chunking_rules, documents_fingerprint
from rag_pipeline.settings import Settings, fingerprint
from rag_pipeline.sources.git.file_kinds import FILE_KINDS_VERSION
from rag_pipeline.sources.git.reader import GIT_SOURCE_VERSION
from rag_pipeline.sources.git.stage import STAGES as GIT_STAGES

_CODE = "dagster/code_references"
_PACKAGE = Path(__file__).resolve().parent.parent
_TABLES = {
    "knowledge_index": ("documents", "chunks", "links"),
    "retrieval_evaluation": ("evaluations",),
}
"""The tables of schema rag that an asset is; the first gives it its name."""


def catalogued(assets: Iterable[dg.AssetsDefinition], settings: Settings) -> list[dg.AssetsDefinition]:
    """The assets with all that the catalog shows of them."""
    code = code_versions(settings)
    described = [asset.map_asset_specs(lambda spec: _described(spec, settings, code)) for asset in assets]
    referenced = dg.with_source_code_references(described)
    found = [asset for asset in referenced if isinstance(asset, dg.AssetsDefinition)]
    if not (url := settings.report.code_url):
        return found
    return [asset.map_asset_specs(lambda spec: _linked(spec, url)) for asset in found]


def code_versions(settings: Settings) -> dict[str, str]:
    """Code version of each asset whose settings decide what it makes."""
    git = f"{GIT_SOURCE_VERSION}-{combine(FILE_KINDS_VERSION, fingerprint(settings.git))[:12]}"
    return {
        **dict.fromkeys(GIT_STAGES.values(), git),
        "documents": f"{CLEANING_VERSION}-{combine(documents_fingerprint(settings))[:12]}",
        "chunks": f"{CHUNKING_VERSION}-{chunking_rules(settings).fingerprint[:12]}",
        "embeddings": f"1-{settings_version(settings.embedding)}",
    }


def _described(spec: dg.AssetSpec, settings: Settings, code: dict[str, str]) -> dg.AssetSpec:
    name = spec.key.to_user_string()
    metadata = dict(spec.metadata)
    if (schema := stage_schema(name)) is not None:
        metadata |= {
            "dagster/column_schema": _arrow_columns(schema),
            "dagster/table_name": name,
            "dagster/uri": f"{settings.lake_url}/{name}",
        }
    elif tables := _TABLES.get(name):
        metadata |= {"dagster/column_schema": _columns(tables), "dagster/table_name": f"rag.{tables[0]}"}
    return spec.replace_attributes(metadata=metadata, code_version=code.get(name, spec.code_version))


def _linked(spec: dg.AssetSpec, url: str) -> dg.AssetSpec:
    """The spec with its code where other people can read it; Dagster's own way knows only github.com and gitlab.com."""
    local = spec.metadata[_CODE].code_references
    links: list[dg.LocalFileCodeReference | dg.UrlCodeReference] = [
        dg.UrlCodeReference(url=f"{url}/{path.relative_to(_PACKAGE.parent).as_posix()}#L{place.line_number}")
        for place in local
        for path in [Path(place.file_path)]
        if path.is_relative_to(_PACKAGE.parent)
    ]
    linked = dg.CodeReferencesMetadataValue(code_references=links)
    return spec.replace_attributes(metadata={**spec.metadata, _CODE: linked})


def _arrow_columns(schema: pa.Schema) -> dg.TableSchema:
    return dg.TableSchema([
        dg.TableColumn(name=field.name, type=_type(field), description=MEANINGS[field.name]) for field in schema
    ])  # fmt: skip


def _type(field: pa.Field) -> str:
    # Its length is that of the model.
    return "list<halffloat>" if field.name == "embedding" else str(field.type)


def _columns(tables: Sequence[str]) -> dg.TableSchema:
    several = len(tables) > 1
    return dg.TableSchema([
        dg.TableColumn(
            name=f"{table}.{column.name}" if several else column.name, type=column.type,
            description=column.meaning or None, constraints=dg.TableColumnConstraints(nullable=column.nullable),
        )
        for table in tables for column in table_columns(table)
    ])  # fmt: skip
