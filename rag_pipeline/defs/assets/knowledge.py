"""Documents, chunks and embeddings: knowledge on its way from the sources to the index."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from uuid import UUID

import dagster as dg

from rag_pipeline.chunking.chunk import CHUNKING_VERSION
from rag_pipeline.chunking.stage import chunk_documents
from rag_pipeline.defs.dry_run import is_dry_run, observe_plan
from rag_pipeline.defs.failures import fail_in_the_end, quarantine, stage_errors, too_many_failures
from rag_pipeline.defs.metadata import Metadata, Result, cost, plot_by_name, plot_lengths, results, size, table
from rag_pipeline.defs.partitions import days_of
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.documents.clean import CLEANING_VERSION
from rag_pipeline.documents.stage import DocumentsReport, clean_items
from rag_pipeline.embedding.spaces import settings_of
from rag_pipeline.embedding.stage import EmbeddingsReport
from rag_pipeline.lake.derive import DeriveReport, parts_in
from rag_pipeline.lake.store import Lake, whole_batches
from rag_pipeline.model import DayRange, EmbeddingSpace
from rag_pipeline.refresh import RAW_STAGES, chunking_rules
from rag_pipeline.refresh.spaces import embed_space, feed_candidates, spaces_to_feed, unreadable_note
from rag_pipeline.settings import price_of

_OWNERS = ["team:knowledge"]


def documents_asset(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """Source items to cleaned documents."""

    @dg.asset(
        deps=list(RAW_STAGES), partitions_def=partitions, backfill_policy=dg.BackfillPolicy.single_run(),
        group_name="knowledge", kinds={"parquet"}, owners=_OWNERS, tags={"stage": "documents"},
        output_required=False, code_version=CLEANING_VERSION,
        description=(
            "Clean text with title, link and metadata, one document per source item: decoded, normalised, notebooks "
            "and HTML reduced to their text, secrets redacted. Tombstones pass through, so that deletions reach the "
            "index."
        ),
    )  # fmt: skip
    def documents(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> Iterator[Result]:
        if is_dry_run(context):
            observe_plan(context, pipeline)
            return
        days = days_of(context)
        with stage_errors(context), pipeline.stage("documents") as connection:
            lake = pipeline.lake()
            report = clean_items(
                lake, days, inputs=RAW_STAGES, threads=pipeline.settings.threads,
                redaction=pipeline.settings.redaction, limits=pipeline.settings.documents,
                progress=pipeline.progress(context),
                too_many=too_many_failures(pipeline, connection, stage="documents"),
            )  # fmt: skip
            failed = quarantine(
                pipeline, connection, report.failures, stage="documents", days=days, items=report.items,
                left_aside=report.left_aside,
            )  # fmt: skip
        pipeline.reports["documents"] = report
        metadata = _derived(report) | _cleaned(report) | failed
        if report.rows:
            metadata |= plot_by_name("documents of these days by language", _languages(lake, days))
            metadata |= _preview(lake, "documents", days, ("title", "source_type", "path", "deleted"))
        yield from results(
            context, days, {"documents": metadata}, {"documents": report.rows_by_day},
            fingerprints={"documents": report.fingerprints},
        )  # fmt: skip
        fail_in_the_end(context, pipeline)

    return documents


def chunks_asset(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """Documents to chunks."""

    @dg.asset(
        deps=["documents"], partitions_def=partitions, backfill_policy=dg.BackfillPolicy.single_run(),
        group_name="knowledge", kinds={"parquet"}, owners=_OWNERS, tags={"stage": "chunks"},
        output_required=False, code_version=CHUNKING_VERSION,
        description=(
            "Documents cut into spans that can stand alone: prose along headings and paragraphs, code along "
            "definitions. Cuts are anchored in the structure, so that an edit changes only the chunks it touches."
        ),
    )  # fmt: skip
    def chunks(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> Iterator[Result]:
        if is_dry_run(context):
            observe_plan(context, pipeline)
            return
        days = days_of(context)
        settings = pipeline.settings
        with stage_errors(context), pipeline.stage("chunks") as connection:
            lake = pipeline.lake()
            report = chunk_documents(
                lake, days, rules=chunking_rules(settings), limits=settings.documents,
                progress=pipeline.progress(context),
                too_many=too_many_failures(pipeline, connection, stage="chunks"),
            )  # fmt: skip
            failed = quarantine(
                pipeline, connection, report.failures, stage="chunks", days=days, items=report.items,
                left_aside=report.left_aside,
            )  # fmt: skip
        pipeline.reports["chunks"] = report
        metadata = _derived(report) | failed
        if report.rows:
            lengths = _tokens(lake, days)
            metadata |= {
                "tokens": dg.MetadataValue.int(sum(lengths)),
                "tokens_per_chunk": dg.MetadataValue.float(round(sum(lengths) / max(1, len(lengths)), 1)),
                **plot_lengths("chunk lengths", lengths, unit="tokens"),
                **_preview(lake, "chunks", days, ("heading_path", "start_line", "end_line", "tokens", "text")),
            }
        yield from results(
            context, days, {"chunks": metadata}, {"chunks": report.rows_by_day},
            fingerprints={"chunks": report.fingerprints},
        )  # fmt: skip
        fail_in_the_end(context, pipeline)

    return chunks


def embeddings_asset(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """Chunk texts to vectors."""

    @dg.asset(
        deps=["chunks"], partitions_def=partitions, backfill_policy=dg.BackfillPolicy.single_run(),
        group_name="knowledge", kinds={"parquet", "postgres"}, owners=_OWNERS, tags={"stage": "embeddings"},
        output_required=False, code_version="1", pool="embedding",
        description=(
            "A vector for every chunk text. A text that ever had one in this embedding space, whatever document, "
            "repository or day it came in by, is not embedded again; each finished batch is stored before the next. "
            "Embedding spaces that are being built beside the active one are fed with the same texts."
        ),
    )  # fmt: skip
    def embeddings(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> Iterator[Result]:
        if is_dry_run(context):
            observe_plan(context, pipeline)
            return
        days = days_of(context)
        lake, models, progress = pipeline.lake(), pipeline.models, pipeline.progress(context)
        with stage_errors(context), pipeline.stage("embeddings") as connection:
            feed = spaces_to_feed(connection, models)
            now, account = pipeline.clock(), pipeline.account(context.run_id)
            report = embed_space(
                lake, days, feed.space, models=models, connection=connection, account=account, now=now,
                progress=progress,
            )  # fmt: skip
            # A part that was left aside is not fresh: where all are, nothing is to be noted or settled.
            if report.fresh < report.parts:
                quarantine(
                    pipeline, connection, (), stage="embeddings", days=days, items={}, left_aside=report.left_aside
                )
            fed = feed_candidates(
                lake, days, feed, models=models, connection=connection, account=account, now=now, progress=progress
            )  # fmt: skip
        for problem in feed.problems:
            context.log.warning(problem)
        pipeline.reports["embeddings"] = report
        price = price_of(settings_of(feed.space, models.settings), pipeline.settings.prices)
        metadata = _embedded(report, feed.space, price=price)
        if fed or feed.problems:
            metadata["candidates"] = _candidates(fed, feed.problems)
        yield from results(
            context, days, {"embeddings": metadata}, {"embeddings": report.rows_by_day},
            fingerprints={"embeddings": report.fingerprints},
        )  # fmt: skip
        fail_in_the_end(context, pipeline)

    return embeddings


def _derived(report: DeriveReport) -> Metadata:
    return {
        "rows": dg.MetadataValue.int(report.rows),
        "rows_copied": dg.MetadataValue.int(report.copied),
        "parts": dg.MetadataValue.int(report.parts),
        "unchanged_parts": dg.MetadataValue.int(report.fresh),
        "size": dg.MetadataValue.text(size(report.bytes)),
    }


def _cleaned(report: DocumentsReport) -> Metadata:
    """Documents of a guessed encoding, and how many secrets they held, by kind; never a value."""
    metadata: Metadata = {
        "guessed_encodings": dg.MetadataValue.int(report.guessed_encodings),
        "redactions": dg.MetadataValue.int(report.redactions.total()),
    }
    if report.redactions:
        rows = sorted(report.redactions.items(), key=lambda entry: (-entry[1], entry[0]))
        metadata["redactions_by_kind"] = table(("kind", "values"), rows)
    if report.broken_front_matter:
        metadata["broken_front_matter"] = dg.MetadataValue.int(len(report.broken_front_matter))
        metadata["pages_with_broken_front_matter"] = table(("path", "problem"), report.broken_front_matter[:50])
    return metadata


def _embedded(report: EmbeddingsReport, space: EmbeddingSpace, *, price: float | None) -> Metadata:
    refused: list[tuple[UUID, str]] = report.refused[:20]
    metadata: Metadata = {
        "embedded": dg.MetadataValue.int(report.embedded),
        "reused": dg.MetadataValue.int(report.reused),
        "restored_from_lake": dg.MetadataValue.int(report.restored),
        "tokens": dg.MetadataValue.int(report.tokens),
        **cost(report.tokens, price),
        "model_seconds": dg.MetadataValue.float(round(report.model_seconds, 2)),
        "texts_per_second": dg.MetadataValue.float(round(report.embedded / max(report.model_seconds, 1e-3), 1)),
        "size": dg.MetadataValue.text(size(report.bytes)),
        "embedding_space": dg.MetadataValue.text(
            f"{space.space_id}: {space.provider} {space.model}, {space.dimensions} dimensions, recipe {space.recipe}"
        ),
    }
    if note := unreadable_note(report.unreadable, space):
        metadata["unreadable"] = dg.MetadataValue.int(report.unreadable)
        metadata["unreadable_texts"] = dg.MetadataValue.text(note)
    if refused:
        metadata["refused"] = table(("text", "reason"), refused)
    return metadata


def _candidates(fed: Sequence[tuple[EmbeddingSpace, EmbeddingsReport]], problems: Sequence[str]) -> dg.MetadataValue:
    """What the spaces that are being built got in this run."""
    rows: list[tuple[object, ...]] = [
        (f"{space.space_id}: {space.model}", report.embedded, report.reused, report.tokens, "") for space, report in fed
    ]
    rows += [("", "", "", "", problem) for problem in problems]
    return table(("embedding space", "embedded", "reused", "tokens", "problem"), rows)


def _tokens(lake: Lake, days: DayRange) -> list[int]:
    return [
        tokens
        for part in parts_in(lake, ["chunks"], days)
        for batch in whole_batches(lake.read("chunks", part, columns=["tokens"]))
        for tokens in batch.column("tokens").to_pylist()
    ]


def _languages(lake: Lake, days: DayRange) -> Counter[str]:
    """Living documents by language, or by source type where they have none."""
    found: Counter[str] = Counter()
    for part in parts_in(lake, ["documents"], days):
        columns = ("language", "source_type", "deleted")
        for batch in whole_batches(lake.read("documents", part, columns=columns)):
            values = (batch.column(name).to_pylist() for name in columns)
            found.update(language or kind for language, kind, deleted in zip(*values, strict=True) if not deleted)
    return found


def _preview(lake: Lake, stage: str, days: DayRange, columns: tuple[str, ...]) -> Metadata:
    rows: list[tuple[object, ...]] = []
    for part in reversed(parts_in(lake, [stage], days)):
        for batch in whole_batches(lake.read(stage, part, columns=list(columns))):
            rows += [tuple(_shown(row[name]) for name in columns) for row in islice(batch.to_pylist(), 10)]
            break
        if len(rows) >= 10:
            break
    return {"preview": table(columns, rows[:10])}


def _shown(value: object) -> object:
    return " › ".join(str(v) for v in value) if isinstance(value, list) else value
