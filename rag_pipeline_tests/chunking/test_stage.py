"""The chunks stage: one process or several, the file is the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rag_pipeline.chunking import count_words
from rag_pipeline.chunking.stage import Rules, chunk_documents
from rag_pipeline.isolation import SMALL_CHARS
from rag_pipeline.lake.derive import DeriveReport
from rag_pipeline.lake.schemas import DOCUMENTS, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Document, document_id
from rag_pipeline.progress import silent
from rag_pipeline.settings import Chunking, Documents

PACKAGE = Path(__file__).resolve().parents[2]
RULES = Rules(settings=Chunking(), count_tokens=count_words, counting="words")


@pytest.fixture
def lake(tmp_path: Path, make_document: Callable[..., Document]) -> Lake:
    """Our own modules and pages, a long document, an empty one and a tombstone."""
    paths = sorted([*PACKAGE.glob("rag_pipeline/chunking/**/*.py"), *PACKAGE.glob("*.md")])
    texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
    texts |= {"long.md": "A sentence of many. " * (SMALL_CHARS // 10), "empty.md": ""}
    documents = [
        make_document(
            text, path, source_type="code" if path.endswith(".py") else "docs", source_id=path,
            document_id=document_id(tenant="acme", source_type="any", source_id=path),
        )
        for path, text in texts.items()
    ]  # fmt: skip
    documents.insert(3, make_document("", "gone.md", deleted=True, source_id="gone.md"))
    lake, first = Lake(str(tmp_path)), documents[0]
    part = Part(tenant=first.tenant, repository=first.repository, day=first.day)
    with lake.writer("documents", part, schema=DOCUMENTS) as writer:
        for batch in to_batches(documents, DOCUMENTS):
            writer.add(batch)
        writer.fingerprint = "made"
    return lake


def cut(lake: Lake, make_document: Callable[..., Document], **options: int) -> tuple[DeriveReport, bytes]:
    one = make_document("")
    part = Part(tenant=one.tenant, repository=one.repository, day=one.day)
    lake.remove("chunks", part)
    days = DayRange(first=part.day, last=part.day)
    report = chunk_documents(lake, days, rules=RULES, limits=Documents(), progress=silent, **options)
    return report, Path(lake.path("chunks", part)).read_bytes()


def test_several_processes_write_the_same_file(
    lake: Lake, make_document: Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    report, alone = cut(lake, make_document, processes=1)
    assert report.rows > 500
    monkeypatch.setattr("rag_pipeline.chunking.stage._Cutting.worth", 50_000)
    beside, together = cut(lake, make_document, processes=2)
    assert together == alone
    assert (beside.rows, beside.failures, report.failures) == (report.rows, [], [])
