"""What must be true of chunks: bounds, identities, and that together they are their documents, no more and no less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

import pyarrow as pa

from rag_pipeline.chunking.stage import STAGE
from rag_pipeline.lake.derive import combine, is_partial
from rag_pipeline.lake.schemas import CHUNKS
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import chunk_parts, stable_digest, text_parts
from rag_pipeline.quality.expectations import Rule
from rag_pipeline.quality.parts import SCHEMA, Measured, PartSuite, about, at_most, none_of, wrong_columns
from rag_pipeline.settings import Settings

_VERSION: Final = "chunks/1"
_COLUMNS: Final = (
    "tenant", "document_id", "chunk_id", "position", "text", "text_hash", "start_char", "end_char", "tokens", "context",
)  # fmt: skip
_COUNTS: Final = (
    "repeated", "misnamed", "elsewhere", "orphans", "too_long", "empty", "out_of_order", "wrong_spans", "uncovered",
    "uncut",
)  # fmt: skip
_AGAIN: Final = "delete the file and materialize chunks for these days again; if it comes back, report it"


def chunks_suite(settings: Settings) -> PartSuite:
    """The suite of the chunks stage under these settings; it reads the documents beside them."""
    limits = settings.chunking

    def measure(lake: Lake, part: Part) -> Measured:
        found = Measured()
        if wrong_columns(lake, part, found, stage=STAGE, schema=CHUNKS, optional=("anchor", "context")):
            return found
        reading = _Reading(lake, part, found, max_tokens=limits.max_tokens, min_tokens=limits.min_tokens)
        reading.run()
        found.figures |= reading.counts
        found.figures["small_share"] = reading.small / max(found.rows, 1) if found.rows > _FEW else 0.0
        if is_partial(lake.fingerprint(STAGE, part)):
            # What could not be cut is on record, with its reason.
            found.figures["uncut"] = None
        return found

    bounds = (str(limits.max_tokens), str(limits.min_tokens))
    return PartSuite(
        stage=STAGE, inputs=("documents",), rules=_rules(settings), measure=measure, version=combine(_VERSION, *bounds)
    )


_FEW: Final = 50
"""So few chunks may all be small."""


def _rules(settings: Settings) -> tuple[Rule, ...]:
    limits, quality = settings.chunking, settings.quality
    return (
        *SCHEMA,
        none_of(
            "repeated", name="chunk_unique", check="identities",
            expects="no chunk occurs twice in a day of a repository", remedy=_AGAIN,
        ),
        none_of(
            "misnamed", name="ids_follow_text", check="identities",
            expects="chunk_id and text_hash are the hashes of what they name", remedy=_AGAIN,
        ),
        none_of(
            "elsewhere", name="tenant", check="identities",
            expects="every chunk is of the tenant whose file it is in",
            remedy=f"it would be shown to another tenant: {_AGAIN}",
        ),
        none_of(
            "orphans", name="no_orphan", check="coverage",
            expects="every chunk's document lives in the same day of the repository", remedy=_AGAIN,
        ),
        none_of(
            "too_long", name="max_tokens", check="tokens",
            expects=f"no chunk has more than chunking.max_tokens ({limits.max_tokens}) tokens",
            remedy=(
                f"a model cuts off what is longer: {_AGAIN}. To accept longer chunks raise chunking.max_tokens, and "
                "all is cut again"
            ),
        ),
        none_of(
            "empty", name="not_empty", check="tokens",
            expects="every chunk has a word and a token", remedy=_AGAIN,
        ),
        at_most(
            "small_share", quality.max_small_chunk_share, name="min_tokens", check="tokens", severity="warn",
            expects=(
                f"of more than {_FEW} chunks at most {quality.max_small_chunk_share:.0%} are below "
                f"chunking.min_tokens ({limits.min_tokens})"
            ),
            remedy="look at what is so short; lower chunking.min_tokens or raise quality.max_small_chunk_share",
        ),
        none_of(
            "out_of_order", name="positions", check="coverage",
            expects="the chunks of a document are numbered from 0 without a gap", remedy=_AGAIN,
        ),
        none_of(
            "wrong_spans", name="spans", check="coverage",
            expects="a chunk's text is what stands in its document between start_char and end_char", remedy=_AGAIN,
        ),
        none_of(
            "uncovered", name="covered", check="coverage",
            expects="every character of a document that is not white space lies in a chunk",
            remedy=f"what lies in no chunk can never be found: {_AGAIN}",
        ),
        none_of(
            "uncut", name="all_cut", check="coverage",
            expects="every living document with words has chunks, unless its failure is on record",
            remedy=_AGAIN,
        ),
    )  # fmt: skip


class _Chunk(NamedTuple):
    document: bytes
    id: bytes
    position: int
    text: str
    text_hash: bytes
    start: int
    end: int


_POSITION: Final = attrgetter("position")


def values_of(batch: pa.RecordBatch, name: str) -> list[Any]:
    """A column as Python's values; numbers by way of NumPy, which takes a tenth of the time."""
    column = batch.column(name)
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy().tolist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


class _Reading:
    """Counts over the chunks of one part, beside its documents; one batch of each in memory when they are in order."""

    def __init__(self, lake: Lake, part: Part, found: Measured, *, max_tokens: int, min_tokens: int) -> None:
        self._lake = lake
        self._part = part
        self._found = found
        self._max_tokens = max_tokens
        self._min_tokens = min_tokens
        self._seen: set[bytes] = set()
        self.small = 0
        self.counts: dict[str, int] = dict.fromkeys(_COUNTS, 0)

    def run(self) -> None:
        """Look at every chunk, then at what was in none."""
        documents = _Documents(self._lake, self._part)
        cut: set[bytes] = set()
        for document, group in groupby(self._chunks(), key=itemgetter(0)):
            chunks = list(group)
            text = documents.text_of(document)
            if text is None:
                self._note("no_orphan", "orphans", chunks[0], times=len(chunks))
                continue
            if document in cut:
                # Its chunks do not stand together: what was said of its positions and its coverage is not true.
                self._note("positions", "out_of_order", chunks[0])
                continue
            cut.add(document)
            self._document(chunks, text)
        for identity, source_id in documents.with_words():
            if identity not in cut:
                self.counts["uncut"] += 1
                self._found.add("all_cut", [about(self._part) | {"source_id": source_id}])

    def _note(self, rule: str, count: str, chunk: _Chunk, *, times: int = 1, **more: object) -> None:
        self.counts[count] += times
        row = about(self._part) | {"chunk_id": str(UUID(bytes=chunk.id)), "position": chunk.position, **more}
        self._found.add(rule, [row | {"text": chunk.text}])

    def _chunks(self) -> Iterator[_Chunk]:
        for batch in self._lake.read(STAGE, self._part, columns=_COLUMNS):
            self._found.rows += batch.num_rows
            named = ("document_id", "chunk_id", "position", "text", "text_hash", "start_char", "end_char")
            chunks = list(map(_Chunk._make, zip(*(values_of(batch, name) for name in named), strict=True)))
            self._alone(chunks, batch)
            yield from chunks

    def _alone(self, chunks: Sequence[_Chunk], batch: pa.RecordBatch) -> None:
        """What can be told of chunks without their documents."""
        seen, part = self._seen, self._part
        for chunk in chunks:
            if chunk.id in seen:
                self._note("chunk_unique", "repeated", chunk)
            seen.add(chunk.id)
            if not chunk.text or chunk.text.isspace():
                self._note("not_empty", "empty", chunk)
        for chunk, tenant in zip(chunks, values_of(batch, "tenant"), strict=True):
            if tenant != part.tenant:
                self._note("tenant", "elsewhere", chunk, belongs_to=tenant)
        for chunk, context in zip(chunks, self._contexts(batch), strict=True):
            if stable_digest(*text_parts(context + chunk.text if context else chunk.text)) != chunk.text_hash:
                self._note("ids_follow_text", "misnamed", chunk, wrong="text_hash")
        for chunk, tokens in zip(chunks, values_of(batch, "tokens"), strict=True):
            # A single character that makes many tokens cannot be cut any further.
            if tokens > self._max_tokens and len(chunk.text) > 1:
                self._note("max_tokens", "too_long", chunk, tokens=tokens)
            self.small += tokens < self._min_tokens

    @staticmethod
    def _contexts(batch: pa.RecordBatch) -> Sequence[str | None]:
        return values_of(batch, "context") if "context" in batch.schema.names else [None] * batch.num_rows

    def _document(self, chunks: Sequence[_Chunk], text: str) -> None:
        """What can be told of all chunks of a document together."""
        occurrences: dict[str, int] = {}
        document = str(UUID(bytes=chunks[0].document))
        ordered = sorted(chunks, key=_POSITION)
        for place, chunk in enumerate(ordered):
            if chunk.position != place:
                self._note("positions", "out_of_order", chunk, expected=place)
            if text[chunk.start : chunk.end] != chunk.text:
                self._note("spans", "wrong_spans", chunk, start_char=chunk.start, end_char=chunk.end)
            times = occurrences.get(chunk.text, 0)
            if stable_digest(*chunk_parts(document, chunk.text, times)) != chunk.id:
                self._note("ids_follow_text", "misnamed", chunk, wrong="chunk_id")
            occurrences[chunk.text] = times + 1
        for start, end in _gaps([(chunk.start, chunk.end) for chunk in chunks], len(text)):
            left = text[start:end]
            if not left.isspace():
                self.counts["uncovered"] += len("".join(left.split()))
                row = {"document_id": document, "start_char": start, "text": left.strip()}
                self._found.add("covered", [about(self._part) | row])


def _gaps(spans: Sequence[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    """What no span covers, of 0 to `length`."""
    reached = 0
    for start, end in sorted(spans):
        if start > reached:
            yield reached, min(start, length)
        reached = max(reached, end)
    if reached < length:
        yield reached, length


class _Documents:
    """The living documents of a part, read on as they are asked for, which is in their order."""

    def __init__(self, lake: Lake, part: Part) -> None:
        self._batches = lake.read("documents", part, columns=("document_id", "source_id", "text", "deleted"))
        self._wanted = {
            row["document_id"]
            for batch in lake.read("documents", part, columns=("document_id", "deleted"))
            for row in _dicts(batch)
            if not row["deleted"]
        }
        self._texts: dict[bytes, str] = {}
        self._with_words: dict[bytes, str] = {}

    def text_of(self, identity: bytes) -> str | None:
        """A living document's text; None: there is none."""
        if identity not in self._wanted:
            return None
        while identity not in self._texts and self._read_on():
            pass
        return self._texts.get(identity)

    def with_words(self) -> Iterator[tuple[bytes, str]]:
        """Id and source id of every living document that has a word."""
        while self._read_on():
            self._texts.clear()
        yield from self._with_words.items()

    def _read_on(self) -> bool:
        batch = next(self._batches, None)
        if batch is None:
            return False
        # Chunks are in the order of their documents: of the batches before, only the last can still be asked for.
        self._texts = dict(list(self._texts.items())[-_KEPT:])
        for row in _dicts(batch):
            if not row["deleted"]:
                self._texts[row["document_id"]] = row["text"] or ""
                if (row["text"] or "").strip():
                    self._with_words[row["document_id"]] = row["source_id"]
        return True


_KEPT: Final = 1024
"""Documents of earlier batches that stay in memory."""


def _dicts(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return batch.to_pylist()  # type: ignore[no-any-return]
