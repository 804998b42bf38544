"""Vectors that would spoil the index are found in the lake, with the texts they are of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rag_pipeline.embedding.stage import EmbeddingsReport, lake_stage
from rag_pipeline.lake.derive import as_partial, combine
from rag_pipeline.lake.schemas import CHUNKS, embeddings_schema, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace, text_hash
from rag_pipeline.progress import silent
from rag_pipeline.quality import Checked, check_parts
from rag_pipeline.quality.embeddings import check_reuse, digests, embeddings_rules, embeddings_suite
from rag_pipeline.settings import Settings
from rag_pipeline_tests.knowledge import entry

PART = Part(tenant="acme", repository="handbook", day=date(2024, 5, 1))
DAYS = DayRange(first=PART.day, last=PART.day)
TEXTS = [f"text number {n}" for n in range(20)]
SPACE = EmbeddingSpace(space_id=1, provider="local", model="words", dimensions=8, recipe="v1", status="active")
SETTINGS = Settings()
Vectors = dict[bytes, np.ndarray]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A part of twenty chunks."""
    lake = Lake(str(tmp_path))
    with lake.writer("chunks", PART, schema=CHUNKS) as writer:
        for batch in to_batches(entry("a.md", *TEXTS).chunks, CHUNKS):
            writer.add(batch)
        writer.fingerprint = "of-chunks"
    return lake


def good() -> Vectors:
    random = np.random.default_rng(4)
    vectors = random.normal(size=(len(TEXTS), 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {text_hash(text).bytes: vector for text, vector in zip(TEXTS, vectors, strict=True)}


def embed(lake: Lake, rows: list[tuple[bytes, np.ndarray]], *, partial: bool = False, dimensions: int = 8) -> None:
    stage = lake_stage(SPACE)
    values = np.concatenate([vector for _, vector in rows]).astype(np.float16)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float16()), dimensions)
    schema = embeddings_schema(dimensions)
    batch = pa.RecordBatch.from_arrays([pa.array([name for name, _ in rows], pa.binary(16)), lists], schema=schema)
    with lake.writer(stage, PART, schema=schema) as writer:
        writer.add(batch)
        fingerprint = combine(stage, str(lake.fingerprint("chunks", PART)))
        writer.fingerprint = as_partial(fingerprint) if partial else fingerprint


def check(lake: Lake, space: EmbeddingSpace = SPACE) -> Checked:
    suite = embeddings_suite(space, embeddings_rules(SETTINGS), SETTINGS.quality.embeddings)
    return check_parts(lake, DAYS, suite, known={}, progress=silent)


def failed(lake: Lake, space: EmbeddingSpace = SPACE) -> dict[str, str]:
    """Findings by name, with what is shown of them."""
    return {f.rule.name: f"{f.observed} {f.sample}" for f in check(lake, space).outcome.failed}


def test_good_vectors_pass_and_are_remembered(lake):
    embed(lake, list(good().items()))
    checked = check(lake)
    assert checked.outcome.passed, checked.outcome.failed
    assert (checked.outcome.rows, checked.passed.keys()) == (20, {PART})


def first_becomes(value: Callable[[np.ndarray], np.ndarray]) -> Callable[[Vectors], Vectors]:
    def change(vectors: Vectors) -> Vectors:
        name = text_hash(TEXTS[0]).bytes
        return vectors | {name: value(vectors[name])}

    return change


@pytest.mark.parametrize(
    ("change", "finding", "shows"),
    [
        (first_becomes(lambda v: np.where(np.arange(8) == 3, np.nan, v)), "finite", text_hash(TEXTS[0]).hex),
        (first_becomes(lambda v: np.where(np.arange(8) == 3, np.inf, v)), "finite", text_hash(TEXTS[0]).hex),
        (first_becomes(lambda v: v * 2), "length", "'length': '2"),
        (first_becomes(lambda v: v * 0), "length", text_hash(TEXTS[0]).hex),
        (lambda vs: {name: vector * 0 + 8**-0.5 for name, vector in vs.items()}, "not_constant", "1"),
        (lambda vs: {name: np.eye(8)[n % 8] for n, name in enumerate(vs)}, "identical", "texts with this vector"),
        (lambda vs: dict(list(vs.items())[1:]), "every_text", text_hash(TEXTS[0]).hex),
        (lambda vs: vs | {text_hash("x").bytes: np.eye(8)[0]}, "no_orphan", text_hash("x").hex),
    ],
    ids=["nan", "infinite", "too long", "zero", "constant", "identical", "one is missing", "of no chunk"],
)
def test_a_bad_vector_is_found_with_the_text_it_is_of(lake, change, finding, shows):
    embed(lake, list(change(good()).items()))
    checked = check(lake)
    found = {f.rule.name: f"{f.observed} {f.sample}" for f in checked.outcome.failed}
    assert finding in found and shows in found[finding], found
    assert checked.passed == {}


def test_a_text_with_two_vectors_and_a_part_of_another_length_are_found(lake):
    rows = list(good().items())
    embed(lake, [*rows, rows[0]])
    assert failed(lake).keys() == {"one_vector"}
    embed(lake, [(name, np.concatenate([vector, vector]) / 2**0.5) for name, vector in rows], dimensions=16)
    assert "'found': '16', 'expected': '8'" in failed(lake)["dimensions"]


def test_what_the_model_refused_is_not_missing(lake):
    embed(lake, list(good().items())[1:], partial=True)
    assert failed(lake) == {}


def test_vectors_of_other_servers_models_need_a_direction_and_no_length(lake):
    other = EmbeddingSpace(
        space_id=1, provider="local", model="words", dimensions=8, recipe="v1", status="active",
        config={"base_url": "https://models.example.org"},
    )  # fmt: skip
    embed(lake, [(name, vector * 5) for name, vector in good().items()])
    assert failed(lake, other) == {}
    embed(lake, [(name, vector * 0) for name, vector in good().items()])
    assert failed(lake, other).keys() == {"length", "identical"}


def test_a_few_texts_may_be_alike(lake, tmp_path):
    lake = Lake(str(tmp_path / "small"))
    with lake.writer("chunks", PART, schema=CHUNKS) as writer:
        writer.add(next(to_batches(entry("a.md", *TEXTS[:5]).chunks, CHUNKS)))
        writer.fingerprint = "of-chunks"
    embed(lake, [(text_hash(text).bytes, np.eye(8)[0]) for text in TEXTS[:5]])
    assert failed(lake) == {}


@pytest.mark.parametrize(
    ("texts", "findings"),
    [
        ([f"digest: {f'{n:02x}' * 80}" for n in range(20)], set()),
        ([f"digest {n}: {f'{n:02x}' * 80}" for n in range(20)], {"identical", "not_constant"}),
    ],
    ids=["one text to a model that knows no such words", "texts that it can tell apart"],
)
def test_texts_of_words_that_no_model_knows_may_all_have_one_vector(tmp_path, texts, findings):
    lake = Lake(str(tmp_path))
    with lake.writer("chunks", PART, schema=CHUNKS) as writer:
        writer.add(next(to_batches(entry("vectors.md", *texts).chunks, CHUNKS)))
        writer.fingerprint = "of-chunks"
    embed(lake, [(text_hash(text).bytes, np.eye(8)[0]) for text in texts])
    assert failed(lake).keys() == findings


def test_a_run_that_embeds_known_parts_anew_is_warned_of():
    rules = embeddings_rules(SETTINGS)
    (finding,) = check_reuse(EmbeddingsReport(parts=3, known_parts=3, embedded=500), rules).findings
    assert (finding.passed, finding.blocks) == (False, False)
    assert "compare two versions of a chunk" in finding.rule.remedy
    assert check_reuse(EmbeddingsReport(parts=3, known_parts=3, embedded=50, reused=450), rules).passed
    # New parts are new texts, and of a few texts nothing is told.
    assert check_reuse(EmbeddingsReport(parts=3, known_parts=2, embedded=500), rules).findings == ()
    assert check_reuse(EmbeddingsReport(parts=3, known_parts=3, embedded=50), rules).findings == ()


@pytest.mark.parametrize("dimensions", [1, 3, 7, 8])
def test_vectors_are_told_apart_by_each_of_their_values_and_not_by_the_sign_of_zero(dimensions):
    values = np.zeros((dimensions + 2, dimensions), dtype=np.float16)
    values[1] = -0.0
    for place in range(dimensions):
        values[place + 2, place] = 1
    numbers = digests(values)
    assert numbers[0] == numbers[1]
    assert len(set(numbers.tolist())) == dimensions + 1
