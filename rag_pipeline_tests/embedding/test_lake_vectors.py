"""What the embeddings stage writes to the lake: one vector for each text of a part, however often the text comes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from uuid import UUID

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rag_pipeline.embedding.stage import embed_chunks, lake_stage
from rag_pipeline.lake.schemas import CHUNKS, ids_of, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import Chunk, DayRange, EmbeddingSpace, chunk_id, document_id, text_hash
from rag_pipeline.progress import silent
from rag_pipeline_tests.bench.stages import InstantEmbedder

DAY = date(2024, 1, 2)
PART = Part(tenant="acme", repository="handbook", day=DAY)
SPACE = EmbeddingSpace(
    space_id=1, provider="local", model="instant", recipe="hash/v1", dimensions=64, status="active", config=None
)


class Stored:
    """Vectors and parts in memory."""

    def __init__(self) -> None:
        self.vectors: dict[UUID, NDArray[np.float16]] = {}
        self.parts: dict[Part, str] = {}

    def known(self, hashes: Sequence[UUID]) -> set[UUID]:
        return {one for one in hashes if one in self.vectors}

    def fetch(self, hashes: Sequence[UUID]) -> dict[UUID, NDArray[np.float16]]:
        return {one: self.vectors[one] for one in hashes if one in self.vectors}

    def store(self, hashes: Sequence[UUID], vectors: NDArray[np.floating]) -> int:
        self.vectors |= dict(zip(hashes, vectors.astype(np.float16), strict=True))
        return len(hashes)

    def fingerprint(self, part: Part) -> str | None:
        return self.parts.get(part)

    def record(self, part: Part, fingerprint: str) -> None:
        self.parts[part] = fingerprint


def chunks(texts: Sequence[str]) -> list[Chunk]:
    owner = document_id(tenant="acme", source_type="docs", source_id="handbook:a.md")
    return [
        Chunk(
            tenant="acme", document_id=owner, chunk_id=chunk_id(owner, text, number), position=number, text=text,
            text_hash=text_hash(text), heading_path=(), start_char=0, end_char=len(text), start_line=1, end_line=1,
            tokens=1,
        )
        for number, text in enumerate(texts)
    ]  # fmt: skip


@given(texts=st.lists(st.sampled_from("abcdefghij"), max_size=30), rows=st.integers(1, 7))
@settings(deadline=None, max_examples=30)
def test_each_text_has_one_vector_in_the_order_of_its_first_chunk(tmp_path_factory, texts, rows):
    lake, stored = Lake(str(tmp_path_factory.mktemp("lake"))), Stored()
    made = chunks(texts)
    with lake.writer("chunks", PART, schema=CHUNKS) as writer:
        for start in range(0, len(made), rows):
            for batch in to_batches(made[start : start + rows], CHUNKS):
                writer.add(batch)
        writer.fingerprint = "chunks"
    report = embed_chunks(
        lake, DayRange(first=DAY, last=DAY), space=SPACE, embedder=InstantEmbedder(), progress=silent, stored=stored,
        vectors_of=lambda _: stored,
    )  # fmt: skip
    written = [one for batch in lake.read(lake_stage(SPACE), PART) for one in ids_of(batch.column("text_hash"))]
    assert written == [text_hash(text) for text in dict.fromkeys(texts)]
    assert report.embedded == len(written)
    assert Path(lake.path("chunks", PART)).exists() == bool(texts)
