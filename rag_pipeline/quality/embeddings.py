"""What must be true of a part's vectors: one of the right length for each text, finite, and telling texts apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rag_pipeline.embedding.stage import EmbeddingsReport, lake_stage
from rag_pipeline.lake.derive import is_partial
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.quality.expectations import SAMPLE_ROWS, Outcome, Row, Rule, validate
from rag_pipeline.quality.parts import READABLE, Measured, PartSuite, about
from rag_pipeline.settings.index_checks import EmbeddingChecks

_VERSION: Final = "1"
_JUDGED_FROM: Final = 10
"""Texts: fewer may well be alike."""
_REUSE_JUDGED_FROM: Final = 100  # texts
_LEAST_SPREAD: Final = 1e-3
"""Of unit vectors of real texts the spread is between .3 and .9."""
_AGAIN: Final = "remove the part's file from lake/embeddings/… and materialize `embeddings` for this day"
_MODEL: Final = "the model or its server answers wrongly: try it with `rag-pipeline search`, repair it, then "


def embeddings_suite(space: EmbeddingSpace, settings: EmbeddingChecks) -> PartSuite:
    """The suite over the lake's vectors of one space."""
    normal = is_normalised(space)
    return PartSuite(
        stage=lake_stage(space), inputs=("chunks",), version=f"{_VERSION} {space.dimensions} {normal} {settings!r}",
        rules=_rules(space, settings, normal=normal),
        measure=lambda lake, part: _measure(lake, part, space, tolerance=settings.norm_tolerance if normal else None),
    )  # fmt: skip


def is_normalised(space: EmbeddingSpace) -> bool:
    """Whether a space's model is known to give vectors of length 1: not where another server's model is asked."""
    config = space.config or {}
    return space.provider != "fastembed" and not config.get("base_url")


def _rules(space: EmbeddingSpace, settings: EmbeddingChecks, *, normal: bool) -> Sequence[Rule]:
    none, again, fixed = {"value_set": [0]}, f"{_MODEL}{_AGAIN}", "ExpectColumnValuesToBeInSet"
    length = f"within {settings.norm_tolerance} of 1" if normal else "not 0"
    return (
        READABLE,
        Rule(
            name="dimensions", check="vectors",
            expects=f"vectors have the {space.dimensions} dimensions of their space", expectation=fixed,
            arguments={"column": "dimensions", "value_set": [space.dimensions]},
            remedy=f"the file is of another space: {_AGAIN}",
        ),
        Rule(
            name="finite", check="vectors", expects="no value is NaN or infinite", expectation=fixed,
            arguments={"column": "not_finite", **none}, remedy=again,
        ),
        Rule(
            name="length", check="vectors", expects=f"the length (L2 norm) of each vector is {length}",
            expectation=fixed, arguments={"column": "off_length", **none},
            remedy=f"{again}; or accept it with quality.embeddings.norm_tolerance",
        ),
        Rule(
            name="spread", check="vectors", expects="vectors of different texts differ (spread around their mean)",
            expectation="ExpectColumnMinToBeBetween", arguments={"column": "spread", "min_value": _LEAST_SPREAD},
            remedy=again,
        ),
        Rule(
            name="identical", check="vectors",
            expects=f"at most {settings.max_identical_share:.0%} of the texts have the vector of another text",
            expectation="ExpectColumnMaxToBeBetween",
            arguments={"column": "identical_share", "max_value": settings.max_identical_share},
            remedy=f"{again}; or accept it with quality.embeddings.max_identical_share",
        ),
        Rule(
            name="unique_texts", check="coverage", expects="a text has one vector", expectation=fixed,
            arguments={"column": "repeated", **none}, remedy=_AGAIN,
        ),
        Rule(
            name="no_other_texts", check="coverage", expects="every vector is of a text of the part's chunks",
            expectation=fixed, arguments={"column": "of_no_chunk", **none}, remedy=_AGAIN,
        ),
        Rule(
            name="every_text", check="coverage",
            expects="every text of the part's chunks has a vector, unless the model refused it", expectation=fixed,
            arguments={"column": "lacking", **none}, remedy=_AGAIN,
        ),
    )  # fmt: skip


def check_reuse(report: EmbeddingsReport, settings: EmbeddingChecks) -> Outcome:
    """Judge what a run embedded against what it found embedded already; only ever a warning."""
    import pandas as pd

    texts = report.embedded + report.reused
    judged = report.known_parts and report.known_parts == report.parts - report.fresh and texts >= _REUSE_JUDGED_FROM
    share = report.reused / texts if judged else None
    rule = Rule(
        name="reused", check="reuse", severity="warn",
        expects=f"of parts that had their vectors before, at least {settings.min_reused_share:.0%} are reused",
        expectation="ExpectColumnMinToBeBetween",
        arguments={"column": "reused_share", "min_value": settings.min_reused_share},
        remedy=(
            "expected after a change of chunking or of embedding.context; otherwise something in front of each text "
            "changes with every run: compare two versions of a chunk; quality.embeddings.min_reused_share accepts it"
        ),
    )  # fmt: skip
    frame = pd.DataFrame([{"embedded": report.embedded, "reused": report.reused, "reused_share": share}])
    return validate(frame, [rule], rows=texts)


class _Vectors:
    """Running figures of one part's vectors."""

    def __init__(self, part: Part, tolerance: float | None) -> None:
        self._part = part
        self._tolerance = tolerance
        self._hashes: list[NDArray[np.bytes_]] = []
        self._digests: list[NDArray[np.uint64]] = []
        self._sum: NDArray[np.float64] | None = None
        self._squares = 0.0
        self.found = Measured()
        self.not_finite = 0
        self.off_length = 0

    def add(self, batch: pa.RecordBatch) -> None:
        hashes = _hashes(batch.column("text_hash"))
        column = batch.column("embedding")
        halves = column.flatten().to_numpy(zero_copy_only=False).astype(np.float16).reshape(len(column), -1)
        values = halves.astype(np.float32)
        finite = np.isfinite(values).all(axis=1)
        norms = np.linalg.norm(np.where(finite[:, None], values, 0.0), axis=1)
        off = norms < 1e-6 if self._tolerance is None else np.abs(norms - 1) > self._tolerance
        off &= finite
        self.found.add("finite", [self._row(hashes[n]) for n in np.flatnonzero(~finite)[:SAMPLE_ROWS]])
        self.found.add(
            "length",
            [self._row(hashes[n]) | {"length": round(float(norms[n]), 4)} for n in np.flatnonzero(off)[:SAMPLE_ROWS]],
        )
        self.not_finite += int((~finite).sum())
        self.off_length += int(off.sum())
        good = values[finite & (norms > 0)] / norms[finite & (norms > 0), None]
        self._sum = good.sum(axis=0, dtype=np.float64) + (0 if self._sum is None else self._sum)
        self._squares += len(good)
        self._hashes.append(hashes)
        self._digests.append(_digests(halves))

    @property
    def hashes(self) -> NDArray[np.bytes_]:
        return _joined(self._hashes)

    @property
    def spread(self) -> float | None:
        """Mean squared distance of the directions from their mean, 0 to 1; None: of too few."""
        if self._sum is None or self._squares < _JUDGED_FROM:
            return None
        return float(1 - np.linalg.norm(self._sum / self._squares) ** 2)

    @property
    def identical_share(self) -> float | None:
        digests = np.concatenate(self._digests) if self._digests else np.empty(0, dtype=np.uint64)
        _, first, times = np.unique(digests, return_index=True, return_counts=True)
        hashes = self.hashes
        for at, count in sorted(zip(first, times, strict=True), key=lambda pair: -pair[1])[:SAMPLE_ROWS]:
            if count > 1:
                self.found.add("identical", [self._row(hashes[at]) | {"texts with this vector": int(count)}])
        return 1 - len(times) / len(digests) if len(digests) >= _JUDGED_FROM else None

    def _row(self, text_hash: bytes) -> dict[str, object]:
        return about(self._part) | {"text_hash": _name(text_hash)}


def _digests(halves: NDArray[np.float16]) -> NDArray[np.uint64]:
    """A number per vector: equal for equal ones, and for others as good as never."""
    return np.asarray(halves.view(np.uint16).astype(np.uint64) @ _factors(halves.shape[1]), dtype=np.uint64)


@cache
def _factors(dimensions: int) -> NDArray[np.uint64]:
    drawn = np.random.default_rng(0).integers(1, 2**63, dimensions, dtype=np.uint64)
    return drawn * np.uint64(2) + np.uint64(1)


def _measure(lake: Lake, part: Part, space: EmbeddingSpace, *, tolerance: float | None) -> Measured:
    stage = lake_stage(space)
    vectors = _Vectors(part, tolerance)
    found = vectors.found
    dimensions = space.dimensions
    for batch in lake.read(stage, part):
        dimensions = batch.schema.field("embedding").type.list_size
        found.rows += batch.num_rows
        vectors.add(batch)
    hashes, times = np.unique(vectors.hashes, return_counts=True)
    wanted = np.unique(
        _joined([_hashes(b.column("text_hash")) for b in lake.read("chunks", part, columns=["text_hash"])])
    )
    lacking, other = np.setdiff1d(wanted, hashes), np.setdiff1d(hashes, wanted)
    for rule, offending in (("unique_texts", hashes[times > 1]), ("every_text", lacking), ("no_other_texts", other)):
        found.add(rule, _named(part, offending))
    found.figures = {
        "vectors": found.rows, "dimensions": dimensions, "not_finite": vectors.not_finite,
        "off_length": vectors.off_length, "spread": vectors.spread, "identical_share": vectors.identical_share,
        "repeated": int((times > 1).sum()), "of_no_chunk": len(other),
        # What the model refuses is on record, and asked again by the next run.
        "lacking": 0 if is_partial(lake.fingerprint(stage, part)) else len(lacking),
    }  # fmt: skip
    return found


def _named(part: Part, hashes: NDArray[np.bytes_]) -> list[Row]:
    return [about(part) | {"text_hash": _name(text_hash)} for text_hash in hashes[:SAMPLE_ROWS]]


def _name(text_hash: bytes) -> str:
    # NumPy drops zeros at the end of bytes.
    return bytes(text_hash).ljust(16, b"\0").hex()


def _hashes(column: pa.FixedSizeBinaryArray) -> NDArray[np.bytes_]:
    every = np.frombuffer(column.buffers()[1], dtype="S16")
    return every[column.offset : column.offset + len(column)]


def _joined(parts: Sequence[NDArray[np.bytes_]]) -> NDArray[np.bytes_]:
    return np.concatenate(parts) if parts else np.empty(0, dtype="S16")
