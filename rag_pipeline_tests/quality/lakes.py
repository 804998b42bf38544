"""Parts of a lake as the stages write them, and with whatever a defect would have left there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_pipeline.chunking import chunk_document
from rag_pipeline.chunking.tokens import count_words
from rag_pipeline.documents.clean import clean
from rag_pipeline.documents.redaction import engine
from rag_pipeline.lake.schemas import CHUNKS, DOCUMENTS, ITEMS, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import Chunk, DayRange, Document, SourceItem
from rag_pipeline.progress import silent
from rag_pipeline.quality import Checked, Finding, PartSuite, check_parts
from rag_pipeline.settings import Settings

DAY = date(2024, 5, 2)
FIRST_DAY = date(2024, 4, 22)
DAYS = DayRange(first=FIRST_DAY, last=date(2024, 5, 3))
PART = Part(tenant="acme", repository="handbook", day=DAY)
NOON = datetime(2024, 5, 2, 12, tzinfo=UTC)
TEXTS = {
    "guide.md": "# Guide\n\n" + "\n\n".join(f"Paragraph {n} tells of topic {n} in a sentence." for n in range(40)),
    "note.md": "A short note.\n",
}


def settings(**more: Any) -> Settings:
    return Settings.model_validate({
        "repositories": [{"source": "/x", "name": "handbook", "tenant": "acme"}], "start_date": FIRST_DAY,
        "chunking": {"max_tokens": 40, "min_tokens": 4}, **more,
    })  # fmt: skip


def item(name: str = "guide.md", **more: Any) -> SourceItem:
    return SourceItem(**{
        "tenant": "acme", "source_type": "docs", "source_id": f"handbook:{name}", "repository": "handbook", "day": DAY,
        "source_updated_at": NOON, "observed_at": NOON, "content": TEXTS.get(name, "Some words.").encode(),
        "path": name, "language": "markdown", **more,
    })  # fmt: skip


def documents(*names: str) -> list[Document]:
    """As cleaning makes them.

    Tests ask for them while they are imported, and a process that has looked for secrets could not be forked any more
    (`faults.forked`): nobody looks, and there are none.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_engine", lambda: lambda *_, **__: [])
        return [clean(item(name)) for name in names or TEXTS]


def chunks(of: Sequence[Document]) -> list[Chunk]:
    cut = settings().chunking
    return [chunk for d in of for chunk in chunk_document(d, settings=cut, count_tokens=count_words)]


def store(
    folder: Path | Lake, stage: str, nouns: Iterable[Any], *, part: Part = PART, fingerprint: str = "v1"
) -> Lake:  # fmt: skip
    lake = folder if isinstance(folder, Lake) else Lake(str(folder))
    schema = {"documents": DOCUMENTS, "chunks": CHUNKS}.get(stage, ITEMS)
    with lake.writer(stage, part, schema=schema) as writer:
        for batch in to_batches(nouns, schema):
            writer.add(batch)
        writer.fingerprint = fingerprint
    return lake


def check(lake: Lake, suite: PartSuite, *, known: dict[Part, str] | None = None) -> Checked:
    return check_parts(lake, DAYS, suite, known=known or {}, progress=silent)


def failed(lake: Lake, suite: PartSuite) -> dict[str, Finding]:
    return {finding.rule.name: finding for finding in check(lake, suite).outcome.failed}
