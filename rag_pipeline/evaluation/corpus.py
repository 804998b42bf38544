"""The documents of a labelled set into an empty database, through the same stages that everything else goes through.

Cleaned, cut, embedded and written by the code and the settings of the pipeline, so that what is measured on such a set
is the pipeline. Batch after batch: only the set itself is held in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from rag_pipeline.chunking.stage import Rules
from rag_pipeline.documents import clean
from rag_pipeline.embedding import Embedder, EmbeddingProgress, Text, embed_missing
from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.labelled import LabelledDocument, LabelledSet, is_python
from rag_pipeline.evaluation.labels import LabelSet, question_of
from rag_pipeline.index.database import Connection
from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.index.segments import merge_segments
from rag_pipeline.index.spaces import SpaceVectors, activate, create_space, numbered_space
from rag_pipeline.index.writer import Entry, IndexWriter
from rag_pipeline.isolation import SMALL_CHARS, Isolated
from rag_pipeline.model import EmbeddingSpace, SourceItem
from rag_pipeline.progress import Progress
from rag_pipeline.settings import Settings
from rag_pipeline.sources.git.file_kinds import kind_of

TENANT: Final = "evaluation"
_BATCH = 500


@dataclass(slots=True, kw_only=True)
class CorpusReport:
    """What a set was made into."""

    space: EmbeddingSpace
    documents: int = 0
    chunks: int = 0
    embedded: int = 0
    """Distinct texts; a text that comes again is not embedded again."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Id of each document that could not be indexed, and why."""


def label_set_of(labelled: LabelledSet, *, limit: int | None = None) -> LabelSet:
    """The questions of a set whose documents were indexed by `index_corpus`; `limit`: only the first ones."""
    return LabelSet(name=labelled.name, questions=[question_of(query) for query in labelled.queries[:limit]])


def index_corpus(
    connection: Connection, labelled: LabelledSet, *, settings: Settings, rules: Rules, embedder: Embedder,
    now: datetime, progress: Progress,
) -> CorpusReport:  # fmt: skip
    """Bring the documents of a set into a database that holds nothing else; its space is active afterwards.

    A document that cannot be read, cut or embedded is in the report's failures; the others are indexed.

    Raises:
        ConfigError: none of the documents could be indexed; and what the embedder raises.
    """
    dimensions = embedder.dimensions or len(embedder.embed_query("How long are your vectors?"))
    space = create_space(
        connection, provider=embedder.provider, model=embedder.model, recipe=embedder.recipe, dimensions=dimensions
    )
    report = CorpusReport(space=space)
    limits = settings.documents
    with Isolated(timeout_s=limits.timeout_s, memory_bytes=limits.memory_bytes) as isolated:
        cutter = _Cutter(settings=settings, rules=rules, isolated=isolated, set_=labelled, now=now)
        writer = IndexWriter(connection, fingerprint=rules.fingerprint, now=now)
        vectors = SpaceVectors(connection, space, tenant=TENANT)
        total = len(labelled.documents)
        for start in range(0, total, _BATCH):
            entries = cutter.cut(labelled.documents[start : start + _BATCH], report)
            _write(entries, report, embedder=embedder, vectors=vectors, writer=writer, progress=progress)
            progress("documents", done=min(start + _BATCH, total), total=total, unit="documents")
    if not report.documents:
        reason = f"the first one: {report.failures[0][1]}" if report.failures else "there are none"
        raise ConfigError(f"{labelled.name}: none of its documents could be indexed; {reason}")
    merge_segments(connection)
    ensure_graph(connection, space)
    activate(connection, space)
    report.space = numbered_space(connection, space.space_id)
    return report


def _write(
    entries: Sequence[Entry], report: CorpusReport, *, embedder: Embedder, vectors: SpaceVectors, writer: IndexWriter,
    progress: Progress,
) -> None:  # fmt: skip
    before = report.embedded

    def tell(so_far: EmbeddingProgress) -> None:
        progress("texts", done=before + so_far.embedded, total=None, unit="texts embedded")

    texts = (Text(chunk.text_hash, chunk.context + chunk.text) for entry in entries for chunk in entry.chunks)
    embedded = embed_missing(texts, embedder=embedder, vectors=vectors, on_progress=tell)
    report.embedded += embedded.embedded
    refused = dict(embedded.failures)
    complete = []
    for entry in entries:
        reasons = [refused[chunk.text_hash] for chunk in entry.chunks if chunk.text_hash in refused]
        if reasons:
            report.failures.append((entry.document.source_id, reasons[0]))
        else:
            complete.append(entry)
    writer.write(complete)
    report.documents += len(complete)
    report.chunks += sum(len(entry.chunks) for entry in complete)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cutter:
    """Documents of a set to what stands in the index."""

    settings: Settings
    rules: Rules
    isolated: Isolated
    set_: LabelledSet
    now: datetime

    def cut(self, documents: Sequence[LabelledDocument], report: CorpusReport) -> list[Entry]:
        code = is_python(self.set_.documents)
        entries = []
        for document in documents:
            try:
                entries.append(self._entry(self._item(document, code=code)))
            except Exception as error:
                # Whatever one document does to a parser must not stop the others.
                report.failures.append((document.id, f"{type(error).__name__}: {error}"[:500]))
        return entries

    def _entry(self, item: SourceItem) -> Entry:
        threads, redaction = self.settings.threads, self.settings.redaction
        if len(item.content) <= SMALL_CHARS:
            document = clean(item, threads=threads, redaction=redaction)
            return Entry(document=document, chunks=self.rules.chunks_of(document))
        document = self.isolated.call(clean, item, threads=threads, redaction=redaction)
        return Entry(document=document, chunks=self.isolated.call(Rules.chunks_of, self.rules, document))

    def _item(self, document: LabelledDocument, *, code: bool) -> SourceItem:
        path = _path(document.id) or ("document.py" if code else "document.md")
        kind = kind_of(path)
        source_type = kind.source_type if kind else "docs"
        text, title = document.text, document.title.strip()
        if title and source_type == "docs" and not text.lstrip("# \n").startswith(title):
            text = f"# {title}\n\n{text}"  # as BEIR does: what is searched is title and text
        return SourceItem(
            tenant=TENANT, source_type=source_type, source_id=document.id, repository=self.set_.name,
            day=self.now.date(), source_updated_at=self.now, observed_at=self.now, path=path, title=title or None,
            language=kind.language if kind else None, content=text.encode("utf-8", "replace"),
        )  # fmt: skip


def _path(id_: str) -> str | None:
    """The id, where it is the path of a file of a kind that is indexed."""
    return id_ if "://" not in id_ and PurePosixPath(id_).suffix and kind_of(id_) else None
