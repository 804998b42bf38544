"""The knowledge index: where everything before it was going."""

from collections.abc import Iterator

import dagster as dg

from rag_pipeline.defs.dry_run import is_dry_run, observe_plan
from rag_pipeline.defs.failures import fail_in_the_end, quarantine, stage_errors
from rag_pipeline.defs.metadata import Metadata, Result, plot_by_day, results, table
from rag_pipeline.defs.partitions import days_of
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.embedding.stage import EmbeddingsReport
from rag_pipeline.index.database import Connection
from rag_pipeline.index.promotion import writing
from rag_pipeline.index.reporting import latest_sizes, record_growth
from rag_pipeline.index.stage import IndexReport, index_documents
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.refresh import activate_when_complete, note_progress, pipeline_fingerprint
from rag_pipeline.refresh.spaces import candidate_notes, spaces_to_feed, unreadable_note
from rag_pipeline.sources.git.stage import RawReport


def knowledge_index_asset(
    partitions: dg.PartitionsDefinition, *, freshness_policy: dg.FreshnessPolicy | None = None
) -> dg.AssetsDefinition:
    """Documents, chunks and vectors into PostgreSQL."""

    @dg.asset(
        deps=["documents", "chunks", "embeddings"], partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(), group_name="knowledge", kinds={"postgres"},
        output_required=False, owners=["team:knowledge"], tags={"stage": "index"}, code_version="1",
        freshness_policy=freshness_policy,
        description=(
            "The searchable index in PostgreSQL (schema rag): documents, chunks, postings for exact BM25, and vectors "
            "with an HNSW graph. Newer wins, deletions arrive as tombstones, a document and its chunks change "
            "together, and the same state again writes nothing."
        ),
    )  # fmt: skip
    def knowledge_index(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> Iterator[Result]:
        if is_dry_run(context):
            observe_plan(context, pipeline)
            return
        days = days_of(context)
        settings = pipeline.settings
        with stage_errors(context), pipeline.stage("knowledge_index") as connection, writing(connection):
            # Asked again: since this run embedded, another space may have been promoted.
            feed = spaces_to_feed(connection, pipeline.models)
            space = feed.space
            embedded = pipeline.reports.get("embeddings")
            report = index_documents(
                pipeline.lake(), days, connection=connection, space=space, now=pipeline.clock(),
                fingerprint=pipeline_fingerprint(settings), progress=pipeline.progress(context),
                pg_search=settings.retrieval.lexical == "pg_search",
                kept_from=settings.retention.kept_from(pipeline.clock()), connect=pipeline.connection,
                left_aside=embedded.left_aside if isinstance(embedded, EmbeddingsReport) else (),
            )  # fmt: skip
            failed = quarantine(
                pipeline, connection, report.failures, stage="knowledge_index", days=days,
                items=report.items, left_aside=report.left_aside,
            )  # fmt: skip
            now = pipeline.clock()
            read = pipeline.reports.get("raw")
            git = read if isinstance(read, RawReport) else None
            note_progress(
                settings, pipeline.lake(), days, connection=connection, space=space, now=now, git=git,
                readings=pipeline.readings,
            )  # fmt: skip
            activate_when_complete(settings, pipeline.lake(), connection=connection, space=space, now=now)
            if report.changed:
                record_growth(connection, now.date(), report.written.growth, changed=report.changed)
            metadata = _metadata(report, connection, space) | failed
            notes = candidate_notes(connection, feed)
        if notes:
            metadata["other_embedding_spaces"] = dg.MetadataValue.text("\n".join(notes))
        unread = unreadable_note(report.unreadable, space)
        pipeline.reports |= {"knowledge_index": report, "embedding_spaces": notes, "without_vector": unread}
        yield from results(
            context, days, {"knowledge_index": metadata}, {"knowledge_index": report.documents_by_day},
            fingerprints={"knowledge_index": report.fingerprints},
        )  # fmt: skip
        fail_in_the_end(context, pipeline)

    return knowledge_index


def _metadata(report: IndexReport, connection: Connection, space: EmbeddingSpace) -> Metadata:
    written = report.written
    # As on record: to count all chunks would take the longer the larger the index is.
    held = [
        (size.tenant, size.repository, size.source_type, size.documents, size.chunks, size.tokens)
        for size in latest_sizes(connection)
    ]
    note = unreadable_note(report.unreadable, space)
    return {
        "rows_written": dg.MetadataValue.int(written.rows),
        "documents_written": dg.MetadataValue.int(written.documents),
        "tombstones_written": dg.MetadataValue.int(written.tombstones),
        "chunks_written": dg.MetadataValue.int(written.chunks),
        "chunks_removed": dg.MetadataValue.int(written.chunks_removed),
        "documents_unchanged": dg.MetadataValue.int(written.unchanged),
        "documents_superseded": dg.MetadataValue.int(written.superseded),
        "unchanged_parts": dg.MetadataValue.int(report.fresh),
        "graph": dg.MetadataValue.text("built in this run" if report.graph_built else "kept up row by row"),
        "postings": dg.MetadataValue.text(
            "all written again" if report.postings_rebuilt else "written with their chunks"
        ),
        "segments_merged": dg.MetadataValue.int(report.segments_merged),
        "embedding_space": dg.MetadataValue.text(f"{space.space_id}: {space.model}"),
        **({"chunks_without_vector": dg.MetadataValue.text(f"{report.unreadable:,}: {note}")} if note else {}),
        "index_holds": table(("tenant", "repository", "source type", "documents", "chunks", "tokens"), held),
        "changed": table(("document",), [(name,) for name in written.documents_changed]),
        **plot_by_day("documents written per day", report.documents_by_day),
    }
