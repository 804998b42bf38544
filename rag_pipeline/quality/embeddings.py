"""What must be true of a part's vectors: one of the right length for each text, finite, and telling texts apart.

A text that the model cannot read has a row without a vector.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rag_pipeline.embedding.stage import EmbeddingsReport, lake_stage
from rag_pipeline.lake.derive import combine, is_fresh, is_partial
from rag_pipeline.lake.schemas import embeddings_schema, id_bytes
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.quality.expectations import SAMPLE_ROWS, Outcome, Row, Rule, validate
from rag_pipeline.quality.parts import SCHEMA, Measured, PartSuite, about, at_most, none_of, wrong_columns
from rag_pipeline.settings import Settings
from rag_pipeline.settings.index_checks import EmbeddingChecks

_VERSION: Final = "embeddings/3"
_JUDGED_FROM: Final = 10
"""Texts: fewer may well be alike."""
_WORD: Final = re.compile(r"\w+|[^\w\s]")
_LONGEST_WORD: Final = 100
_MINUS_ZERO: Final = np.uint16(0x8000)
_REUSE_JUDGED_FROM: Final = 100  # texts
_LEAST_SPREAD: Final = 1e-3
"""Of unit vectors of real texts the spread is between .3 and .9."""
_AGAIN: Final = "delete the file in lake/embeddings and materialize embeddings for these days again"
_MODEL: Final = (
    "the model or its server answered wrongly: DELETE these text_hashes FROM the space's rag.vectors_N, mend the "
    f"model, then {_AGAIN}"
)


def embeddings_rules(settings: Settings) -> tuple[Rule, ...]:
    """What is expected of every part, whichever space it is of."""
    quality = settings.quality.embeddings
    return (
        *SCHEMA,
        none_of(
            "wrong_dimensions", name="dimensions", check="vectors",
            expects="vectors have the dimensions of their embedding space",
            remedy=f"the file is of another space: {_AGAIN}",
        ),
        none_of("not_finite", name="finite", check="vectors", expects="no value is NaN or infinite", remedy=_MODEL),
        none_of(
            "off_length", name="length", check="vectors",
            expects=f"vectors are of length (L2 norm) 1 within {quality.norm_tolerance}; those of models that do not "
            "normalise are not of length 0", remedy=f"{_MODEL}; quality.embeddings.norm_tolerance tolerates more",
        ),
        none_of(
            "constant", name="not_constant", check="vectors",
            expects="vectors of different texts point in different directions", remedy=_MODEL,
        ),
        at_most(
            "identical_share", quality.max_identical_share, name="identical", check="vectors",
            expects=f"at most {quality.max_identical_share:.0%} of the texts have the very vector of another text",
            remedy=f"{_MODEL}; quality.embeddings.max_identical_share tolerates more",
        ),
        none_of("repeated", name="one_vector", check="coverage", expects="a text has one vector", remedy=_AGAIN),
        none_of(
            "of_no_chunk", name="no_orphan", check="coverage", expects="every vector is of a text of the part's chunks",
            remedy=_AGAIN,
        ),
        none_of(
            "lacking", name="every_text", check="coverage",
            expects="every text of the part's chunks has a vector, unless the model refused or cannot read it",
            remedy=_AGAIN,
        ),
        *reuse_rules(settings),
    )  # fmt: skip


def reuse_rules(settings: Settings) -> tuple[Rule, ...]:
    """What is expected of a run, rather than of a part."""
    least = settings.quality.embeddings.min_reused_share
    return (
        Rule(
            name="reused", check="reuse", severity="warn",
            expects=f"of parts that had their vectors before, at least {least:.0%} of the texts are embedded already",
            expectation="ExpectColumnValuesToBeBetween",
            arguments={"column": "reused_share", "min_value": least},
            remedy="after a change of chunking or of the embedding context this is as it should be; otherwise "
            "something in each text changes with every run: compare two versions of a chunk in the lake; "
            "quality.embeddings.min_reused_share tolerates less",
        ),
    )  # fmt: skip


def embeddings_suite(space: EmbeddingSpace, rules: Sequence[Rule], settings: EmbeddingChecks) -> PartSuite:
    """The suite over the lake's vectors of one space, judged by these of the rules that are about parts."""
    tolerance = settings.norm_tolerance if is_normalised(space) else None
    return PartSuite(
        stage=lake_stage(space), inputs=("chunks",), rules=[rule for rule in rules if rule.check != "reuse"],
        version=combine(_VERSION, str(space.dimensions), str(tolerance)),
        measure=lambda lake, part: _measure(
            lake, part, space, tolerance=tolerance, most_identical=settings.max_identical_share
        ),
    )  # fmt: skip


def is_normalised(space: EmbeddingSpace) -> bool:
    """Whether a space's model is known to give vectors of length 1: not where another server's model is asked."""
    config = space.config or {}
    return space.provider != "fastembed" and not config.get("base_url")


def check_reuse(report: EmbeddingsReport, rules: Sequence[Rule]) -> Outcome:
    """Judge what a run embedded against what it found embedded already; there is no outcome of too few texts."""
    texts = report.embedded + report.reused
    # New parts are new texts: only a run over parts that were all known says something of reuse.
    if report.known_parts < report.parts - report.fresh or texts < _REUSE_JUDGED_FROM:
        return Outcome(findings=(), rows=0, seconds=0.0)
    import pandas as pd  # not for a run with nothing new, of which it would be a fifth

    frame = pd.DataFrame(
        [{"embedded": report.embedded, "reused": report.reused, "reused_share": report.reused / texts}]
    )
    return validate(frame, [rule for rule in rules if rule.check == "reuse"], rows=texts)


class _Vectors:
    """Running figures of one part's vectors."""

    def __init__(self, part: Part, tolerance: float | None) -> None:
        self._part = part
        self._tolerance = tolerance
        self._hashes: list[NDArray[np.bytes_]] = []
        self._with_vector: list[NDArray[np.bytes_]] = []
        self._digests: list[NDArray[np.uint64]] = []
        self._sum: NDArray[np.float64] | None = None
        self._directions = 0
        self.found = Measured()
        self.not_finite = 0
        self.off_length = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._hashes.append(id_bytes(batch.column("text_hash")))
        # The others are texts that the model cannot read.
        batch = batch.filter(batch.column("embedding").is_valid())
        if not batch.num_rows:
            return
        hashes = id_bytes(batch.column("text_hash"))
        column = batch.column("embedding")
        halves = column.flatten().to_numpy(zero_copy_only=False).astype(np.float16, copy=False).reshape(len(column), -1)
        values = halves.astype(np.float32)
        # Half precision squared fits into single precision: the sum is finite when every value is.
        norms = np.sqrt(np.einsum("ij,ij->i", values, values))
        finite = np.isfinite(norms)
        off = norms < 1e-6 if self._tolerance is None else np.abs(norms - 1) > self._tolerance
        off &= finite
        self.found.add("finite", [self._row(hashes[n]) for n in np.flatnonzero(~finite)[:SAMPLE_ROWS]])
        self.found.add(
            "length",
            [self._row(hashes[n]) | {"length": round(float(norms[n]), 4)} for n in np.flatnonzero(off)[:SAMPLE_ROWS]],
        )
        self.not_finite += int((~finite).sum())
        self.off_length += int(off.sum())
        directed = finite & (norms > 0)
        if not directed.all():
            values, norms = values[directed], norms[directed]
        # The sum of all directions, without making each of them.
        total = ((1 / norms) @ values).astype(np.float64)
        self._sum = total if self._sum is None else self._sum + total
        self._directions += len(values)
        self._with_vector.append(hashes)
        self._digests.append(digests(halves))

    @property
    def hashes(self) -> NDArray[np.bytes_]:
        return _joined(self._hashes)

    @property
    def constant(self) -> int | None:
        """1: all directions are as good as one; None: there are too few to tell."""
        if self._sum is None or self._directions < _JUDGED_FROM:
            return None
        # The mean squared distance of directions from their mean, 0 to 1.
        return int(1 - np.linalg.norm(self._sum / self._directions) ** 2 < _LEAST_SPREAD)

    @property
    def identical_share(self) -> float | None:
        """Of these texts; None: there are too few to tell."""
        digests = np.concatenate(self._digests) if self._digests else np.empty(0, dtype=np.uint64)
        if len(digests) < _JUDGED_FROM:
            return None
        return 1 - len(np.unique(digests)) / len(digests)

    @property
    def identical(self) -> list[Row]:
        """Texts whose vector others have, too: those of the most first."""
        digests = np.concatenate(self._digests) if self._digests else np.empty(0, dtype=np.uint64)
        _, first, times = np.unique(digests, return_index=True, return_counts=True)
        hashes = _joined(self._with_vector)
        return [
            self._row(hashes[at]) | {"texts with this vector": int(count)}
            for at, count in sorted(zip(first, times, strict=True), key=lambda pair: -pair[1])[:SAMPLE_ROWS]
            if count > 1
        ]

    def _row(self, text_hash: bytes) -> dict[str, object]:
        return about(self._part) | {"text_hash": _name(text_hash)}


def digests(halves: NDArray[np.float16]) -> NDArray[np.uint64]:
    """A number per vector: equal for equal ones, and for others as good as never."""
    bits = halves.view(np.uint16)
    bits = np.where(bits == _MINUS_ZERO, np.uint16(0), bits)  # -0 is 0
    # Four halves make one word.
    words = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 4))).view(np.uint64)
    return np.asarray(words @ _factors(words.shape[1]), dtype=np.uint64)


@cache
def _factors(words: int) -> NDArray[np.uint64]:
    drawn = np.random.default_rng(0).integers(1, 2**63, words, dtype=np.uint64)
    return drawn * np.uint64(2) + np.uint64(1)


def _measure(
    lake: Lake, part: Part, space: EmbeddingSpace, *, tolerance: float | None, most_identical: float
) -> Measured:
    stage = lake_stage(space)
    vectors = _Vectors(part, tolerance)
    found = vectors.found
    schema = lake.schema(stage, part)
    if schema is None:
        # All of its texts were refused, or it was not embedded yet: then the index lacks it, and says so.
        return found
    kind = schema.field("embedding").type if "embedding" in schema.names else pa.null()
    dimensions = kind.list_size if pa.types.is_fixed_size_list(kind) else space.dimensions
    found.figures["wrong_dimensions"] = int(dimensions != space.dimensions)
    if wrong_columns(lake, part, found, stage=stage, schema=embeddings_schema(dimensions)):
        return found
    if dimensions != space.dimensions:
        found.add("dimensions", [about(part) | {"found": dimensions, "expected": space.dimensions}])
    for batch in lake.read(stage, part):
        found.rows += batch.num_rows
        vectors.add(batch)
    told_apart = vectors
    if vectors.constant or (vectors.identical_share or 0) > most_identical:
        told_apart = _of_texts_apart(lake, part, stage, tolerance)
    found.figures |= {
        "not_finite": vectors.not_finite, "off_length": vectors.off_length, "constant": told_apart.constant,
        "identical_share": told_apart.identical_share,
    }  # fmt: skip
    found.add("identical", told_apart.identical)
    _compare_with_chunks(lake, part, stage, vectors)
    return found


def _of_texts_apart(lake: Lake, part: Part, stage: str, tolerance: float | None) -> _Vectors:
    """The vectors of one text for each sequence of words: that a model gives other texts the same one says nothing.

    Words of over a hundred letters are one unknown word to some models, so that a commit of test vectors may be one
    text to them, over and over.
    """
    hashes: list[bytes] = []
    known: set[tuple[str, ...]] = set()
    for batch in lake.read("chunks", part, columns=["text_hash", "context", "text"]):
        names, contexts, texts = (batch.column(name).to_pylist() for name in ("text_hash", "context", "text"))
        for name, context, text in zip(names, contexts, texts, strict=True):
            words = tuple(
                word for word in _WORD.findall(((context or "") + text).lower()) if len(word) <= _LONGEST_WORD
            )
            if words not in known:
                known.add(words)
                hashes.append(bytes(name))
    wanted = pa.array(hashes, type=embeddings_schema(1).field("text_hash").type)
    vectors = _Vectors(part, tolerance)
    for batch in lake.read(stage, part):
        vectors.add(batch.filter(pc.is_in(batch.column("text_hash"), value_set=wanted)))
    return vectors


def _compare_with_chunks(lake: Lake, part: Part, stage: str, vectors: _Vectors) -> None:
    hashes, times = np.unique(vectors.hashes, return_counts=True)
    vectors.found.figures["repeated"] = int((times > 1).sum())
    vectors.found.add("one_vector", _named(part, hashes[times > 1]))
    own = lake.fingerprint(stage, part)
    if not is_fresh(own, combine(stage, str(lake.fingerprint("chunks", part)))):
        return  # its chunks changed, and no run has embedded them yet
    texts = [id_bytes(batch.column("text_hash")) for batch in lake.read("chunks", part, columns=["text_hash"])]
    wanted = np.unique(_joined(texts))
    lacking = other = np.empty(0, dtype="S16")
    if not np.array_equal(wanted, hashes):
        lacking, other = (np.setdiff1d(*two, assume_unique=True) for two in ((wanted, hashes), (hashes, wanted)))
    vectors.found.figures["of_no_chunk"] = len(other)
    vectors.found.add("no_orphan", _named(part, other))
    # What the model refuses is on record, and asked again by the next run.
    vectors.found.figures["lacking"] = None if is_partial(own) else len(lacking)
    vectors.found.add("every_text", _named(part, lacking))


def _named(part: Part, hashes: NDArray[np.bytes_]) -> list[Row]:
    return [about(part) | {"text_hash": _name(text_hash)} for text_hash in hashes[:SAMPLE_ROWS]]


def _name(text_hash: bytes) -> str:
    # NumPy drops zeros at the end of bytes.
    return bytes(text_hash).ljust(16, b"\0").hex()


def _joined(parts: Sequence[NDArray[np.bytes_]]) -> NDArray[np.bytes_]:
    return np.concatenate(parts) if parts else np.empty(0, dtype="S16")
