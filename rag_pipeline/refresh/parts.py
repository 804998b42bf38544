"""Whether parts of the lake have gone through all stages into the index, under the settings of now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from rag_pipeline.chunking.stage import Rules
from rag_pipeline.documents import stage as documents
from rag_pipeline.embedding import counting_version, token_counter
from rag_pipeline.index.bookkeeping import stored_parts
from rag_pipeline.index.database import Connection
from rag_pipeline.index.stage import STAGE as INDEX_STAGE
from rag_pipeline.index.stage import part_fingerprint
from rag_pipeline.lake.derive import combine, expected_fingerprint, is_fresh, parts_in
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace
from rag_pipeline.settings import Settings
from rag_pipeline.sources.kinds import raw_stages

RAW_STAGES = raw_stages()
"""What documents are made from."""


def documents_fingerprint(settings: Settings) -> str:
    """Changes when the same items could give other documents."""
    return documents.fingerprint(settings.threads, settings.redaction)


def pipeline_fingerprint(settings: Settings) -> str:
    """Changes when the same items could give other chunks."""
    return combine(documents_fingerprint(settings), chunking_rules(settings).fingerprint)


def chunking_rules(settings: Settings) -> Rules:
    """How the settings want documents cut: for their model, in its tokens."""
    embedding = settings.embedding
    return Rules(
        settings=settings.chunking,
        count_tokens=token_counter(embedding),
        counting=counting_version(embedding),
        context=embedding.context,
    )


class IndexedParts:
    """What the lake and the index hold of a range of days."""

    def __init__(
        self, settings: Settings, lake: Lake, connection: Connection, space: EmbeddingSpace, days: DayRange
    ) -> None:
        self._documents = documents_fingerprint(settings)
        self._chunks = chunking_rules(settings).fingerprint
        self._lake = lake
        self._days = days
        self._stored = stored_parts(connection, space, days, stage=INDEX_STAGE)

    def of(self, tenant: str, repository: str, stages: Sequence[str]) -> list[Part]:
        """A repository's parts that any of these stages holds."""
        parts = parts_in(self._lake, stages, self._days)
        return [part for part in parts if (part.tenant, part.repository) == (tenant, repository)]

    def is_read(self, part: Part, stages: Iterable[str], inputs: Set[str]) -> bool:
        """Whether all files that these raw stages hold of the part were read from one of `inputs`."""
        found = [tags for stage in stages if (tags := self._lake.tags(stage, part))]
        return all(tags.get("inputs") in inputs for tags in found)

    def is_indexed(self, part: Part) -> bool:
        """Whether everything the raw stages hold of the part is in the index."""
        expected = expected_fingerprint(self._lake, part, inputs=RAW_STAGES, stage_fingerprint=self._documents)
        found = {stage: self._lake.fingerprint(stage, part) for stage in ("documents", "chunks")}
        if not is_fresh(found["documents"], expected):
            return False
        expected = expected_fingerprint(self._lake, part, inputs=["documents"], stage_fingerprint=self._chunks)
        # A part of tombstones only has no chunks.
        if found["chunks"] is not None and not is_fresh(found["chunks"], expected):
            return False
        return self._stored.get(part) == part_fingerprint(self._lake, part)
