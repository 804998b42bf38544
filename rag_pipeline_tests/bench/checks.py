"""How long the data-quality checks take over a lake of so many chunks, made up part by part, stage by stage."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from random import Random
from typing import Any, Final

from rag_pipeline.lake.schemas import CHUNKS, DOCUMENTS, ITEMS, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import Chunk, DayRange, Document, SourceItem, chunk_id, document_id, text_hash
from rag_pipeline.progress import silent
from rag_pipeline.quality import check_parts
from rag_pipeline.quality.suites import part_suites
from rag_pipeline.settings import Settings
from rag_pipeline_tests.bench.index_checks import bench_index_checks
from rag_pipeline_tests.bench.report import Report

_SECTION: Final = "data-quality checks"
_FIRST: Final = date(2024, 1, 1)
_PARTS: Final = 20
_CHUNKS_PER_DOCUMENT: Final = 10
_CHUNK_CHARS: Final = 500
_LIMIT_S: Final = 30.0
"""Of a stage's checks, over a million chunks at most."""


def bench_checks(repository: str, report: Report, *, start_date: date | None, chunks: Sequence[int]) -> None:
    """Seconds of each stage's suite over a lake of so many chunks; the repository is of no matter."""
    del repository, start_date
    started, busy = time.perf_counter(), time.process_time()
    import great_expectations  # noqa: F401  # once a process, whatever there is to check

    note = f"{time.process_time() - busy:.1f} s of processor time, once a process"
    report.figure(_SECTION, "loading Great Expectations", time.perf_counter() - started, "s", note=note)
    for size in chunks:
        with tempfile.TemporaryDirectory() as folder:
            _bench_size(Lake(folder), size, report)
    report.show(_SECTION)


def _bench_size(lake: Lake, size: int, report: Report) -> None:
    settings = Settings.model_validate({
        "repositories": [{"source": "/bench", "name": "bench", "tenant": "bench"}], "start_date": _FIRST,
    })  # fmt: skip
    days = _fill(lake, size)
    suites, total = part_suites(settings), 0.0
    limit = _LIMIT_S if size <= 1_000_000 else None
    for stage in ("raw_docs", "documents", "chunks"):
        started, busy = time.perf_counter(), time.process_time()
        checked = check_parts(lake, days, suites[stage], known={}, progress=silent)
        seconds = time.perf_counter() - started
        total += seconds
        busy = time.process_time() - busy
        note = f"{checked.outcome.rows:,} rows in {checked.parts} parts; {busy:.1f} s of processor time"
        report.figure(_SECTION, f"{size:,} chunks: {stage}", seconds, "s", note=note, at_most=limit)
        failed = [f"{f.rule.name}: {f.observed}" for f in checked.outcome.failed]
        report.check(_SECTION, f"{size:,} chunks: {stage} pass", not failed, "; ".join(failed))
        again = check_parts(lake, days, suites[stage], known=checked.passed, progress=silent)
        report.check(_SECTION, f"{size:,} chunks: {stage} are not looked at again", again.parts == 0)
    total += bench_index_checks(lake, days, size, report, section=_SECTION, limit=limit)
    report.figure(_SECTION, f"{size:,} chunks: all stages", total, "s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report.figure(
        _SECTION, f"{size:,} chunks: peak memory", peak, "MB", note="of the process, Great Expectations loaded"
    )


def _fill(lake: Lake, size: int) -> DayRange:
    documents = max(1, size // _CHUNKS_PER_DOCUMENT)
    words = _words()
    made = (_document(number, words) for number in range(documents))
    each = -(-documents // _PARTS)
    for n in range(_PARTS):
        day = _FIRST + timedelta(days=n + 1)
        held = [_on(document, day) for document in islice(made, each)]
        part = Part(tenant="bench", repository="bench", day=day)
        _write(lake, "raw_docs", part, (_item(document) for document in held), ITEMS)
        _write(lake, "documents", part, held, DOCUMENTS)
        _write(lake, "chunks", part, (chunk for document in held for chunk in _chunks(document)), CHUNKS)
    return DayRange(first=_FIRST, last=_FIRST + timedelta(days=_PARTS))


def _write(lake: Lake, stage: str, part: Part, nouns: Any, schema: Any) -> None:
    with lake.writer(stage, part, schema=schema) as writer:
        for batch in to_batches(nouns, schema):
            writer.add(batch)
        writer.fingerprint = "bench"


def _words() -> list[str]:
    """Made-up words, so that the detector of secrets has something to look at that is none."""
    random = Random(7)
    return ["".join(random.choices("abcdefghilmnoprstuv", k=random.randint(2, 9))) for _ in range(5000)]


def _document(number: int, words: Sequence[str]) -> Document:
    random = Random(number)
    paragraphs = []
    for _ in range(_CHUNKS_PER_DOCUMENT):
        paragraph = " ".join(random.choices(words, k=_CHUNK_CHARS // 6))
        paragraphs.append(f"{paragraph[:_CHUNK_CHARS].strip()}.")
    source_id = f"bench:{number}.md"
    return Document(
        tenant="bench", document_id=document_id(tenant="bench", source_type="docs", source_id=source_id),
        source_type="docs", source_id=source_id, repository="bench", day=_FIRST, language="markdown",
        source_updated_at=datetime(2024, 1, 1, tzinfo=UTC), observed_at=datetime(2024, 6, 1, tzinfo=UTC),
        text="\n\n".join(paragraphs), markup="markdown", title=f"Document {number}",
    )  # fmt: skip


def _on(document: Document, day: date) -> Document:
    return replace(document, day=day, source_updated_at=datetime(day.year, day.month, day.day, 12, tzinfo=UTC))


def _item(document: Document) -> SourceItem:
    shared = ("tenant", "source_type", "source_id", "repository", "day", "source_updated_at", "observed_at", "language")
    return SourceItem(**{name: getattr(document, name) for name in shared}, content=document.text.encode())


def _chunks(document: Document) -> Iterator[Chunk]:
    start = 0
    for position, text in enumerate(document.text.split("\n\n")):
        yield Chunk(
            tenant="bench", document_id=document.document_id, chunk_id=chunk_id(document.document_id, text, 0),
            position=position, text=text, text_hash=text_hash(text), heading_path=(), start_char=start,
            end_char=start + len(text), start_line=2 * position + 1, end_line=2 * position + 1, tokens=120,
        )  # fmt: skip
        start += len(text) + 2
