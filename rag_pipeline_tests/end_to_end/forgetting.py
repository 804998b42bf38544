"""What tests of forgetting share: planting words, and looking for them in every byte that an installation keeps."""

from __future__ import annotations

import json
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq

from rag_pipeline.index.database import connected
from rag_pipeline.lake.store import Lake
from rag_pipeline.refresh.forgetting import ForgetReport, apply_retention, forget, undo, verify
from rag_pipeline.refresh.forgotten_names import Target, named
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline_tests.end_to_end.installation import Installation


def forget_in(installation: Installation, kind: Any, name: str, *, tenant: str = "default") -> ForgetReport:
    """What `rag-pipeline forget` does once it was confirmed."""
    settings, lake = installation.settings, Lake(installation.settings.lake_url)
    with connected(installation.database) as connection:
        found = named(Target(kind=kind, name=name, tenant=tenant), settings, lake, connection)
        return forget(settings, lake, connection, [found.mark], names=found.names, now=installation.now)


def undo_in(installation: Installation, kind: Any, name: str, *, tenant: str = "default") -> int:
    """What `rag-pipeline forget --undo` does."""
    settings, lake = installation.settings, Lake(installation.settings.lake_url)
    with connected(installation.database) as connection:
        found = named(Target(kind=kind, name=name, tenant=tenant), settings, lake, connection)
        return undo(
            settings, lake, connection, [found.mark], repository=name if kind == "repository" else None
        )  # fmt: skip


def retain_in(installation: Installation) -> ForgetReport:
    """What maintenance does."""
    with connected(installation.database) as connection:
        return apply_retention(
            installation.settings, Lake(installation.settings.lake_url), connection, installation.now
        )


def verify_in(installation: Installation) -> ForgetReport:
    """What `rag-pipeline forget --verify` does."""
    with connected(installation.database) as connection:
        return verify(installation.settings, Lake(installation.settings.lake_url), connection, now=installation.now)


def places_of(installation: Installation, word: str) -> list[str]:
    """Every place that holds the word: tables, parts of the lake, mirrors of GitHub, files of the inbox."""
    return [
        *_tables(installation.database, word),
        *_parts(Path(installation.settings.lake_url), word),
        *_mirrors(installation.home / "mirrors" / "github", word),
        *(
            f"inbox {name}"
            for name in installation.inbox()
            if _holds(Path(installation.settings.inbox_url) / name, word)
        ),
    ]


def everything(database: str) -> dict[str, list[tuple[Any, ...]]]:
    """All that the index holds and that does not tell when or in which order it was written."""
    with psycopg.connect(database) as connection:
        found = {
            "documents": "SELECT to_jsonb(d) - 'indexed_at' - 'observed_at' FROM rag.documents d ORDER BY document_id",
            "chunks": "SELECT to_jsonb(c) - 'number' FROM rag.chunks c ORDER BY chunk_id",
            "links": "SELECT to_jsonb(l) FROM rag.links l ORDER BY document_id, kind, target",
            "vectors": "SELECT tenant_id, text_hash, embedding::text FROM rag.vectors_1"
            " WHERE (tenant_id, text_hash) IN (SELECT tenant_id, text_hash FROM rag.chunks) ORDER BY 1, 2",
            "failures": "SELECT source_id, stage FROM rag.ingestion_failures ORDER BY 1, 2",
            "terms": "SELECT s.tenant_id, s.scope, p.term, sum(p.chunks - p.removed) FROM rag.postings p"
            " JOIN rag.segments s USING (segment_id) GROUP BY 1, 2, 3"
            " HAVING sum(p.chunks - p.removed) <> 0 ORDER BY 1, 2, 3",
            "sizes": "SELECT tenant_id, sum(chunks - removed_chunks), sum(terms - removed_terms) FROM rag.segments"
            " GROUP BY 1 HAVING sum(chunks - removed_chunks) <> 0 ORDER BY 1",
        }
        return {name: connection.execute(query).fetchall() for name, query in found.items()}


def scores(installation: Installation, question: str, *, tenant: str = "default") -> list[tuple[str, str, float]]:
    """What a lexical search finds, with exact BM25 scores."""
    query = SearchQuery(text=question, tenant=tenant, legs="lexical", k=50)
    hits = installation.pipeline().search(query)
    return sorted((hit.source_id, hit.text, hit.score) for hit in hits)


def _tables(database: str, word: str) -> list[str]:
    with psycopg.connect(database) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'rag' ORDER BY 1"
        ).fetchall()  # fmt: skip
        return [
            table
            for (table,) in tables
            if connection.execute(
                psycopg.sql.SQL("SELECT EXISTS (SELECT FROM rag.{} t WHERE t::text ILIKE %s)").format(
                    psycopg.sql.Identifier(table)
                ),
                (f"%{word}%",),
            ).fetchone()
            == (True,)
        ]


def _parts(lake: Path, word: str) -> list[str]:
    found = []
    for path in sorted(lake.rglob("*")):
        held = word.lower() in str(path.relative_to(lake)).lower()
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            held |= any(word.lower() in repr(column.to_pylist()).lower() for column in table.columns)
            held |= word.lower() in repr(table.schema.metadata).lower()
        if held:
            found.append(f"lake {path.relative_to(lake)}")
    return found


def _mirrors(folder: Path, word: str) -> list[str]:
    found = [str(path) for path in folder.rglob("*") if path.is_file() and _holds(path, word)]
    for path in folder.rglob("*.sqlite"):
        with sqlite3.connect(path) as store:
            for (content,) in store.execute("SELECT content FROM threads"):
                if word.lower().encode() in zlib.decompress(content).lower():
                    found.append(f"{path.name} threads")
    return found


def _holds(path: Path, word: str) -> bool:
    return word.lower().encode() in path.read_bytes().lower() or word.lower() in path.name.lower()


def delivery_words(installation: Installation, name: str) -> Any:
    """What a file of the inbox says."""
    return json.loads((Path(installation.settings.inbox_url) / name).read_text())
