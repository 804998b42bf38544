"""Taking what is forgotten out of the lake: each part is then as if it had never been read, down to its fingerprints.

A part is first looked at, then written: vectors, chunks, documents, and what they were made from last. So a killed run
is done again from the same findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

from rag_pipeline.embedding.stage import STAGE as EMBEDDINGS
from rag_pipeline.forgotten import Forgotten
from rag_pipeline.index.database import Connection
from rag_pipeline.index.forgetting import move_part_records
from rag_pipeline.lake.derive import again, combine, is_fresh, parts_in
from rag_pipeline.lake.rewriting import rewrite_part, rows_kept
from rag_pipeline.lake.schemas import documents_of, ids_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange
from rag_pipeline.refresh.parts import RAW_STAGES, chunking_rules, documents_fingerprint
from rag_pipeline.settings import Settings
from rag_pipeline.sources.forgetting import RawFindings, find_forgotten, remove_forgotten
from rag_pipeline.sources.git.stage import STAGES as GIT_STAGES
from rag_pipeline.sources.github.stage import STAGES as GITHUB_STAGES

_COLUMNS = ("tenant", "document_id", "source_type", "source_id", "repository", "source_updated_at", "metadata")
_STALE = "stale"  # no fingerprint that a stage could expect
_ALL_DAYS = DayRange(first=date.min, last=date.max)


@dataclass(slots=True, kw_only=True)
class PartFindings:
    """What one part holds of what is forgotten, over all stages."""

    part: Part
    raw: RawFindings
    gone: set[UUID]
    """Documents that must not be there."""
    rows: Counter[str] = field(default_factory=Counter)
    """Stage → rows that are concerned."""

    @property
    def documents(self) -> set[UUID]:
        """All that leave the part, some of them to come back without what was cut."""
        return self.gone | self.raw.cut


def stages_of(lake: Lake) -> list[str]:
    """Every stage that the lake holds, spaces that were dropped included."""
    return [*RAW_STAGES, "documents", "chunks", *lake.substages(EMBEDDINGS)]


def find_parts(lake: Lake, forgotten: Forgotten) -> Iterator[PartFindings]:
    """The parts that hold something; changes nothing."""
    for part in parts_in(lake, stages_of(lake), _ALL_DAYS):
        raw = find_forgotten(lake, part, RAW_STAGES, forgotten)
        found = PartFindings(part=part, raw=raw, gone=set(raw.gone), rows=Counter(raw.rows))
        ids: set[UUID] = set()
        for batch in lake.read_or_give_up("documents", part, columns=_COLUMNS):
            covered = {document.document_id for document in documents_of(batch) if forgotten.covers(document)}
            found.gone |= covered
            ids |= set(ids_of(batch.column("document_id")))
        found.rows["documents"] = len(ids & found.documents)
        for batch in lake.read_or_give_up("chunks", part, columns=["document_id"]):
            # A chunk whose document is not in the part belongs to what was taken out of it.
            there = ids_of(batch.column("document_id"))
            found.rows["chunks"] += sum(id_ in found.documents or id_ not in ids for id_ in there)
        if found.gone or raw.rows or found.rows.total():
            yield found


def held_texts(lake: Lake, tenant: str, without: Mapping[Part, Collection[UUID]]) -> set[UUID]:
    """Hashes of the texts that the lake holds of this tenant, but for those of the documents that leave a part."""
    held: set[UUID] = set()
    for part in parts_in(lake, ["chunks"], _ALL_DAYS):
        if part.tenant != tenant:
            continue
        leaving = without.get(part, ())
        for batch in lake.read_or_give_up("chunks", part, columns=["document_id", "text_hash"]):
            pairs = zip(ids_of(batch.column("document_id")), ids_of(batch.column("text_hash")), strict=True)
            held |= {text for document, text in pairs if document not in leaving}
    return held


def remove_from_part(
    settings: Settings, lake: Lake, connection: Connection, found: PartFindings, forgotten: Forgotten
) -> None:
    """Write all files of the part again without it."""
    part = found.part
    kept = {
        id_
        for batch in lake.read_or_give_up("documents", part, columns=["document_id"])
        for id_ in ids_of(batch.column("document_id"))
    } - found.documents
    new = _Fingerprints(settings, lake, found, is_empty=not kept)
    texts = _texts_of(lake, part, kept)
    for stage in lake.substages(EMBEDDINGS):
        rewrite_part(
            lake, stage, part, lambda batch: rows_kept(batch, [h in texts for h in ids_of(batch.column("text_hash"))]),
            fingerprint=new.vectors(stage),
        )  # fmt: skip
    for stage, fingerprint in (("chunks", new.chunks), ("documents", new.documents)):
        rewrite_part(
            lake, stage, part, lambda batch: rows_kept(batch, [i in kept for i in ids_of(batch.column("document_id"))]),
            fingerprint=fingerprint,
        )  # fmt: skip
    move_part_records(connection, part, new.records(lake.substages(EMBEDDINGS), is_empty=not kept, no_text=not texts))
    remove_forgotten(lake, part, found.raw, forgotten)


def _texts_of(lake: Lake, part: Part, documents: Collection[UUID]) -> set[UUID]:
    texts: set[UUID] = set()
    for batch in lake.read_or_give_up("chunks", part, columns=["document_id", "text_hash"]):
        pairs = zip(ids_of(batch.column("document_id")), ids_of(batch.column("text_hash")), strict=True)
        texts |= {text for document, text in pairs if document in documents}
    return texts


class _Fingerprints:
    """What a part's files are called when they hold no more than what is left, as the stages would call them.

    Where something was cut out of a document, the stages have to make it again: they get one that no stage expects.
    """

    def __init__(self, settings: Settings, lake: Lake, found: PartFindings, *, is_empty: bool) -> None:
        part, self._has_cut = found.part, bool(found.raw.cut)
        raw = {stage: lake.fingerprint(stage, part) for stage in RAW_STAGES}
        left = raw | found.raw.fingerprints
        self._lake, self._part = lake, part
        self._old_documents, self._old_chunks = (lake.fingerprint(stage, part) for stage in ("documents", "chunks"))
        made = documents_fingerprint(settings)
        self.documents = self._next(self._old_documents, _made(made, raw), _made(made, left))
        rules = chunking_rules(settings).fingerprint
        before = {"documents": self._old_documents}
        after = {"documents": None if is_empty else self.documents}
        self.chunks = self._next(self._old_chunks, _made(rules, before), _made(rules, after))

    def vectors(self, stage: str) -> str:
        """Of an embedding space."""
        old = self._lake.fingerprint(stage, self._part)
        return self._next(old, combine(stage, str(self._old_chunks)), combine(stage, str(self.chunks)))

    def records(self, stages: list[str], *, is_empty: bool, no_text: bool) -> dict[tuple[str, str], str | None]:
        """(stage, old fingerprint) → the new one, of what the database has noted of the part; None: nothing is left."""
        if self._has_cut:
            return {}
        chunks = None if no_text else self.chunks
        moved: dict[tuple[str, str], str | None] = {
            ("knowledge_index", combine(str(self._old_documents), str(self._old_chunks))): (
                None if is_empty else combine(str(self.documents), str(chunks))
            )
        }
        for stage in stages:
            new = combine(stage, str(self.chunks))
            moved[EMBEDDINGS, combine(stage, str(self._old_chunks))] = None if no_text else new
        return moved

    def _next(self, old: str | None, expected: str, new: str) -> str:
        if self._has_cut:
            return _STALE
        if not is_fresh(old, expected):
            return old or ""
        return again(old, new)


def _made(stage_fingerprint: str, inputs: dict[str, str | None]) -> str:
    """As `expected_fingerprint`, of inputs that are not written yet."""
    return combine(stage_fingerprint, *(f"{stage}={value}" for stage, value in sorted(inputs.items()) if value))


def unread_parts(lake: Lake, tenant: str, repository: str | None) -> None:
    """Remove the raw parts that their sources can give again; with None, of all repositories of the tenant."""
    for stage in (*GIT_STAGES.values(), *GITHUB_STAGES.values()):
        for part in parts_in(lake, [stage], _ALL_DAYS):
            if part.tenant == tenant and repository in (None, part.repository):
                lake.remove(stage, part)
