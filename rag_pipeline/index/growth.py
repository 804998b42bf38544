"""By how much a write makes the index grow, source by source: whoever knows that need not count all of it again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from rag_pipeline.model import Chunk, Document

Source: TypeAlias = tuple[str, str, str]
"""Tenant, repository, source type."""


class Amount(NamedTuple):
    """Of living documents; negative when there are fewer than before."""

    documents: int = 0
    chunks: int = 0
    tokens: int = 0


@dataclass(slots=True, kw_only=True)
class Growth:
    """What came and went, by source."""

    by_source: defaultdict[Source, Amount] = field(default_factory=lambda: defaultdict(Amount))

    def count(self, source: Source, amount: Sequence[int], *, times: int = 1) -> None:
        """`times` is -1 for what is gone."""
        self.by_source[source] = Amount(
            *(old + times * new for old, new in zip(self.by_source[source], amount, strict=True))
        )

    def add(self, other: Growth) -> None:
        """Count what another write did too."""
        for source, amount in other.by_source.items():
            self.count(source, amount)


def growth_of(
    written: Iterable[tuple[Document, Sequence[Chunk]]], *, before: Sequence[Sequence[Any]],
    held: Sequence[Sequence[Any]],
) -> Growth:  # fmt: skip
    """What it means that these documents were accepted with these chunks.

    `before`: (document, tenant, repository, source type, deleted) of those that were there; `held`: (document, chunks,
    tokens) of those that were accepted, as they were before. One that is not accepted changes nothing.
    """
    growth = Growth()
    accepted = {row[0]: (int(row[1]), int(row[2])) for row in held}
    for document, tenant, repository, source_type, deleted in before:
        if document in accepted and not deleted:
            growth.count((tenant, repository, source_type), (1, *accepted[document]), times=-1)
    for d, chunks in written:
        if d.document_id in accepted and not d.deleted:
            # As the index keeps them: a chunk has one row, however often it was handed over.
            tokens = {chunk.chunk_id: chunk.tokens for chunk in chunks}
            growth.count((d.tenant, d.repository, d.source_type), (1, len(tokens), sum(tokens.values())))
    return growth
