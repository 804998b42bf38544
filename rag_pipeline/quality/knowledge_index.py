"""What must be true of the index as a whole: it agrees with the lake, nothing in it is orphaned, every living chunk can
be found by words and by meaning, and nobody sees or writes what is not theirs.

PostgreSQL does the looking (`index.inspection`, `.catalog`, `.posted`, `.against_lake`, `retrieval.recall`) and hands
over a row of figures, a column per rule.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import nan
from typing import Final
from uuid import UUID

from rag_pipeline.index.against_lake import Comparison, compare_with_lake
from rag_pipeline.index.catalog import inspect_catalog
from rag_pipeline.index.database import Connection
from rag_pipeline.index.inspection import Offences, Sizes, inspect_rows, inspecting, sizes, vectors_off_length
from rag_pipeline.index.posted import inspect_postings
from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange, EmbeddingSpace, stable_id
from rag_pipeline.quality.embeddings import is_normalised
from rag_pipeline.quality.expectations import Outcome, Rule, Severity, validate
from rag_pipeline.quality.parts import at_most
from rag_pipeline.retrieval.recall import GraphRecall, graph_recall
from rag_pipeline.settings import Settings, fingerprint
from rag_pipeline.settings.index_checks import IndexChecks

VERSION: Final = "1"
_ORPHANS_JUDGED_FROM: Final = 1_000  # vectors
_REBUILD: Final = "TRUNCATE rag.segments, rag.postings; the next run of `knowledge_index` writes them all again"
_REWRITE: Final = (
    "UPDATE rag.documents SET state_hash = '00000000-0000-0000-0000-000000000000' for these documents, DELETE FROM "
    "rag.stored_parts WHERE stage = 'knowledge_index' for these days, then materialize `knowledge_index` for them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything that was found, to be judged."""

    offences: Mapping[str, Offences]
    """By rule."""
    sizes: Sizes | None
    """None: not everything was looked at, because tables are missing or only the run's days were asked for."""
    comparison: Comparison | None
    """None: there is no embedding space yet, so nothing is indexed."""
    recall: GraphRecall | None
    seconds: float
    whole: bool = True
    """Whether the whole index was to be looked at."""

    @property
    def notes(self) -> list[str]:
        """What was not looked at, and why, for people."""
        if self.offences["missing_tables"].count:
            return ["tables are missing: nothing but the catalog was looked at"]
        if not self.whole:
            return ["only what the run's days hold was looked at, and the catalog: the index is large, and all of it "
                    "was looked at not long ago (quality.knowledge_index.max_age_hours)"]  # fmt: skip
        if self.comparison is None or self.recall is None:
            return ["there is no embedding space yet: neither vectors nor the lake were looked at"]
        if self.recall.recall is None:
            return ["recall was not measured: every search is exact, because no tenant has so many chunks that the "
                    "graph is walked"]  # fmt: skip
        return []


def inspect_index(
    connection: Connection, lake: Lake, days: DayRange, space: EmbeddingSpace | None, *, settings: Settings,
    now: datetime, whole: bool = True,
) -> Inspection:  # fmt: skip
    """Look at the whole index, and at what the lake holds of these days; `space` is the one that documents wait for.

    Without `whole`, only at the latter: at what does not grow with the index. Which chunks and vectors are sampled
    changes with the day of `now`. Takes seconds for a million chunks, and writes nothing.

    """
    started = time.perf_counter()
    quality = settings.quality
    with inspecting(connection):
        found = inspect_catalog(connection)
        complete = not found["missing_tables"].count
        if complete and whole:
            found |= _inspect_all(connection, space, settings=settings, now=now)
        comparison = None
        if complete and space is not None:
            comparison = compare_with_lake(connection, lake, days, space, kept_from=settings.retention.kept_from(now))
            found |= _against_lake(comparison)
        measured = sizes(connection, space) if complete and whole else None
    recall = None
    if complete and whole and space is not None:
        questions = quality.knowledge_index.recall_questions
        recall = graph_recall(
            connection, space, settings=settings.retrieval, questions=questions, start=_start(now)
        )  # fmt: skip
        found["graph_recall"] = Offences(count=len(recall.worst), sample=[
            {"tenant": one.tenant, "text_hash": one.text_hash, "recall": round(one.recall, 2)}
            for one in recall.worst[:10]
        ])  # fmt: skip
    return Inspection(
        offences=found, sizes=measured, comparison=comparison, recall=recall, seconds=time.perf_counter() - started,
        whole=whole,
    )  # fmt: skip


def _inspect_all(
    connection: Connection, space: EmbeddingSpace | None, *, settings: Settings, now: datetime
) -> dict[str, Offences]:
    """The looks that read whole tables."""
    quality = settings.quality
    found = inspect_rows(connection, space)
    found |= inspect_postings(connection, sample=quality.knowledge_index.analyzed_chunks, seed=now.toordinal())
    if space is not None:
        tolerance = quality.embeddings.norm_tolerance if is_normalised(space) else None
        found["vectors_off_length"] = vectors_off_length(connection, space, tolerance=tolerance)
    return found


def judge_index(inspection: Inspection, rules: Sequence[Rule]) -> Outcome:
    """Judge what was found; rules of what was not looked at are left out."""
    import pandas as pd

    figures: dict[str, object] = {name: found.count for name, found in inspection.offences.items()}
    recall = inspection.recall.recall if inspection.recall else None
    # Not a number: no rule about it fails.
    figures["orphan_vector_share"], figures["recall_at_10"] = (
        _orphan_share(inspection),
        nan if recall is None else recall,
    )
    return validate(
        pd.DataFrame([figures]), [rule for rule in rules if rule.name in inspection.offences],
        rows=inspection.sizes.rows if inspection.sizes else None,
        samples={name: found.sample for name, found in inspection.offences.items()},
    )  # fmt: skip


def expectations_fingerprint(settings: Settings, space: EmbeddingSpace | None) -> str:
    """Changes when the same index could be judged otherwise."""
    accepted = [name for name in settings.quality.accepted if name.startswith("knowledge_index.")]
    quality = (fingerprint(settings.quality.knowledge_index), fingerprint(settings.quality.embeddings))
    return combine(VERSION, *quality, *sorted(accepted), str(space.space_id if space else None))


def _against_lake(comparison: Comparison) -> dict[str, Offences]:
    return {
        "in_lake_only": comparison.missing.offences,
        "stale_documents": comparison.stale.offences,
        "other_chunks_than_lake": comparison.other_chunks.offences,
        "parts_waiting": comparison.waiting.offences,
    }


def _start(now: datetime) -> UUID:
    return stable_id("recall", str(now.toordinal()))


def _orphan_share(inspection: Inspection) -> float:
    orphans = inspection.offences.get("vectors_without_chunk", Offences()).count
    if inspection.sizes is None or orphans < _ORPHANS_JUDGED_FROM:
        return nan
    return orphans / inspection.sizes.vectors


def index_rules(settings: Settings) -> tuple[Rule, ...]:
    """What is expected of the index."""
    quality = settings.quality.knowledge_index
    return (*_agreement(), *_orphans(quality), *_findable(quality), *_catalog(), *_isolation())


def _none(name: str, *, check: str, expects: str, remedy: str, severity: Severity = "error") -> Rule:
    return at_most(name, 0, check=check, expects=expects, remedy=remedy, severity=severity)


def _agreement() -> list[Rule]:
    return [
        _none(
            "in_lake_only", check="agrees_with_lake",
            expects="every document that the lake holds of these days is in the index, unless it is quarantined",
            remedy=_REWRITE,
        ),
        _none(
            "stale_documents", check="agrees_with_lake",
            expects="the index holds each of these documents in the lake's state or a newer one",
            remedy=_REWRITE,
        ),
        _none(
            "other_chunks_than_lake", check="agrees_with_lake",
            expects="a document in the lake's state has the lake's chunks, no more, no less, and each has its vector",
            remedy=_REWRITE,
        ),
        _none(
            "parts_waiting", check="agrees_with_lake", severity="warn",
            expects="what the lake holds of these days has been indexed",
            remedy="materialize `knowledge_index` for these days",
        ),
    ]  # fmt: skip


def _orphans(settings: IndexChecks) -> list[Rule]:
    return [
        _none(
            "orphan_chunks", check="no_orphans",
            expects="every chunk belongs to a living document of its tenant and scope",
            remedy=f"DELETE FROM rag.chunks for these chunk_ids, then {_REBUILD}",
        ),
        _none(
            "orphan_links", check="no_orphans",
            expects="every link belongs to a living document of its tenant and scope",
            remedy=f"DELETE FROM rag.links for these document_ids; where the document lives: {_REWRITE}",
        ),
        _none(
            "orphan_postings", check="no_orphans", expects="every posting belongs to a segment",
            remedy="DELETE FROM rag.postings for these segment_ids",
        ),
        _none(
            "orphan_bookkeeping", check="no_orphans",
            expects="what is remembered is of embedding spaces that exist, and each has its table of vectors",
            remedy="delete these rows; a table of no space goes with DROP TABLE, a space without a table with "
            "`rag-pipeline spaces drop`",
        ),
        Rule(
            name="vectors_without_chunk", check="no_orphans", severity="warn",
            expects=f"at most {settings.max_orphan_vector_share:.0%} of the vectors are of texts that are gone",
            expectation="ExpectColumnValuesToBeBetween",
            arguments={"column": "orphan_vector_share", "max_value": settings.max_orphan_vector_share},
            remedy="launch the maintenance job, which removes them; quality.knowledge_index.max_orphan_vector_share "
            "accepts more",
        ),
    ]  # fmt: skip


def _findable(settings: IndexChecks) -> list[Rule]:
    return [
        _none(
            "chunks_without_vector", check="findable",
            expects="every living chunk has its vector in the serving space, or is known to be unreadable",
            remedy="`rag-pipeline spaces build N` with the number of that space fills them in",
        ),
        _none(
            "vectors_off_length", check="findable", expects="no stored vector is of length 0, or not of length 1",
            remedy="delete these vectors, then `rag-pipeline spaces build N`; quality.embeddings.norm_tolerance "
            "accepts other lengths",
        ),
        _none(
            "segment_sums", check="findable",
            expects="segments count as many chunks, added less removed, as each tenant and scope has",
            remedy=_REBUILD,
        ),
        _none(
            "broken_segments", check="findable", expects="segments and postings hold as many entries as they say",
            remedy=_REBUILD,
        ),
        _none(
            "chunks_without_postings", check="findable", expects="every living chunk is in exactly one segment",
            remedy=_REBUILD,
        ),
        _none(
            "postings_of_no_chunk", check="findable", expects="no segment holds a chunk that is gone", remedy=_REBUILD
        ),
        _none(
            "chunks_posted_twice", check="findable", expects="no chunk is added or taken away twice", remedy=_REBUILD
        ),
        _none(
            "wrong_postings", check="findable",
            expects=f"the terms of {settings.analyzed_chunks} sampled chunks are posted as their texts say",
            remedy=_REBUILD,
        ),
        Rule(
            name="graph_recall", check="recall",
            expects=f"the graph finds {settings.min_recall:.0%} of the ten nearest of sampled vectors, at the settings "
            "that searches use", expectation="ExpectColumnValuesToBeBetween",
            arguments={"column": "recall_at_10", "min_value": settings.min_recall},
            remedy="REINDEX INDEX CONCURRENTLY rag.vectors_N_hnsw; or look at more with retrieval.candidates; or, of a "
            "graph over codes (`rag-pipeline spaces list`), `rag-pipeline spaces partition N --graph vectors`; or "
            "accept it with quality.knowledge_index.min_recall",
        ),
    ]  # fmt: skip


def _catalog() -> list[Rule]:
    return [
        _none(
            "missing_tables", check="indexes_valid", expects="every table of sql/schema.sql is there",
            remedy="`rag-pipeline migrate`; a table of an applied migration comes back from a backup",
        ),
        _none(
            "missing_indexes", check="indexes_valid", expects="every index and key of sql/schema.sql is there",
            remedy="run the statement beside each",
        ),
        _none(
            "missing_graphs", check="indexes_valid", expects="the active embedding space has its HNSW graph",
            remedy="run the command beside each, or materialize `knowledge_index` for any day",
        ),
        _none(
            "invalid_indexes", check="indexes_valid", expects="every index is valid and kept up",
            remedy="run the statement beside each",
        ),
    ]  # fmt: skip


def _isolation() -> list[Rule]:
    return [
        _none(
            "tables_without_row_security", check="isolation", expects="row-level security is on for every table",
            remedy="run the statement beside each",
        ),
        _none(
            "policies", check="isolation", expects="the policies are those of sql/schema.sql, and there are no others",
            remedy="run the statement beside each",
        ),
        _none(
            "reader_rights", check="isolation",
            expects="rag_reader owns nothing, writes nothing, is no superuser, and reads what searches need",
            remedy="run the statement beside each",
        ),
        _none(
            "rows_without_tenant", check="isolation", expects="who names no tenant sees no row",
            remedy="mend row-level security, policies and rag.visible() as sql/schema.sql has them",
        ),
    ]  # fmt: skip
