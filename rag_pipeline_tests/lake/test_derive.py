"""Derived parts: left alone while what they are made from is the same, made again when it is not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from rag_pipeline.lake.derive import (
    DeriveReport,
    again,
    combine,
    derive,
    expected_fingerprint,
    is_fresh,
    is_partial,
    parts_in,
)
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Failure
from rag_pipeline.progress import Advance, silent
from rag_pipeline_tests.knowledge import DAY, moment

SCHEMA = pa.schema([("text", pa.string())])
DAYS = DayRange(first=DAY, last=DAY + timedelta(days=2))


def part(repository: str = "a", day: date = DAY) -> Part:
    return Part(tenant="acme", repository=repository, day=day)


class Pipeline:
    """Two inputs and a stage that writes their texts in capitals, and cannot process what starts with `!`."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake(str(folder))
        self.made: list[Part] = []
        self.mended: set[str] = set()
        """What can be processed after all, though it starts with `!`."""

    def _fails(self, text: str) -> bool:
        return text.startswith("!") and text not in self.mended

    def put(self, *texts: str, part: Part, stage: str = "docs") -> None:
        with self.lake.writer(stage, part, schema=SCHEMA) as writer:
            writer.add(pa.record_batch([list(texts)], schema=SCHEMA))
            writer.fingerprint = combine(*texts)

    def run(self, *, code: str = "v1", days: DayRange = DAYS) -> DeriveReport:
        self.made.clear()
        return derive(
            self.lake, days, stage="loud", inputs=["docs", "code"], schema=SCHEMA, stage_fingerprint=code,
            transform=self._transform, progress=silent, report=DeriveReport(),
        )  # fmt: skip

    def _transform(self, part: Part, failures: list[Failure], advance: Advance) -> Iterator[pa.RecordBatch]:
        self.made.append(part)
        for stage in ("docs", "code"):
            for batch in self.lake.read(stage, part):
                texts = batch.column("text").to_pylist()
                advance(len(texts))
                failures += [
                    Failure(
                        tenant=part.tenant, source_type="docs", source_id=text, stage="loud",
                        repository=part.repository, day=part.day, source_updated_at=moment(1), reason="too loud",
                    )
                    for text in texts
                    if self._fails(text)
                ]  # fmt: skip
                loud = [text.upper() for text in texts if not self._fails(text)]
                yield pa.record_batch([loud], schema=SCHEMA)
                if "BREAK" in loud:
                    raise RuntimeError("killed")

    def texts(self, part: Part) -> list[str]:
        return [text for batch in self.lake.read("loud", part) for text in batch.column("text").to_pylist()]

    def stamp(self, part: Part) -> tuple[int, int]:
        found = Path(self.lake.path("loud", part)).stat()
        return found.st_mtime_ns, found.st_ino


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline(tmp_path)


def test_a_fresh_part_is_neither_made_nor_written_again(pipeline):
    pipeline.put("one", part=part())
    pipeline.put("two", part=part("b", DAY + timedelta(days=1)), stage="code")
    report = pipeline.run()
    assert (report.parts, report.fresh, report.rows, report.removed) == (2, 0, 2, 0)
    assert report.rows_by_day == {"2024-05-01": 1, "2024-05-02": 1}
    before = pipeline.stamp(part())
    again = pipeline.run()
    assert (again.parts, again.fresh, again.rows, pipeline.made) == (2, 2, 0, [])
    assert pipeline.stamp(part()) == before


def test_only_the_part_whose_input_changed_is_made_again(pipeline):
    for name in "ab":
        pipeline.put("one", part=part(name))
    pipeline.run()
    pipeline.put("two", part=part("a"))
    assert pipeline.run().fresh == 1
    assert (pipeline.made, pipeline.texts(part("a")), pipeline.texts(part("b"))) == ([part("a")], ["TWO"], ["ONE"])


def test_another_version_of_the_stage_makes_every_part_again(pipeline):
    pipeline.put("one", part=part())
    pipeline.run(code="v1")
    assert pipeline.run(code="v2").fresh == 0
    assert pipeline.run(code="v2").fresh == 1


def test_a_second_input_that_comes_or_goes_makes_the_part_stale(pipeline):
    pipeline.put("one", part=part())
    pipeline.run()
    pipeline.put("two", part=part(), stage="code")
    pipeline.run()
    assert pipeline.texts(part()) == ["ONE", "TWO"]
    pipeline.lake.remove("docs", part())
    pipeline.run()
    assert pipeline.texts(part()) == ["TWO"]


def test_a_part_without_inputs_is_removed(pipeline):
    pipeline.put("one", part=part())
    pipeline.run()
    pipeline.lake.remove("docs", part())
    report = pipeline.run()
    assert (report.parts, report.removed) == (0, 1)
    assert pipeline.lake.days("loud", tenant="acme", repository="a") == []


def test_days_outside_the_run_are_left_alone(pipeline):
    outside = part(day=DAY - timedelta(days=1))
    pipeline.put("one", part=outside)
    assert pipeline.run().parts == 0
    assert pipeline.lake.tags("loud", outside) is None


def test_a_part_with_failures_is_partial_and_tried_again_by_every_run(pipeline):
    pipeline.put("one", "!two", part=part())
    for _ in range(2):
        report = pipeline.run()
        assert ([f.source_id for f in report.failures], report.fresh) == (["!two"], 0)
        assert pipeline.texts(part()) == ["ONE"]
    expected = expected_fingerprint(pipeline.lake, part(), inputs=["docs", "code"], stage_fingerprint="v1")
    found = pipeline.lake.fingerprint("loud", part())
    assert is_partial(found)
    # For those who only ask whether it is up to date, it is.
    assert is_fresh(found, expected)
    assert not is_fresh("partial:other", expected)
    assert not is_fresh(None, None)
    pipeline.put("one", "two", part=part())
    assert (pipeline.run().failures, pipeline.run().fresh) == ([], 1)


def test_a_part_of_which_one_of_two_failures_is_mended_is_another_part(pipeline):
    """Or the stages after this one would take it for the one that they have seen."""
    pipeline.put("one", "!two", "!three", part=part())
    pipeline.run()
    before = pipeline.lake.fingerprint("loud", part())
    pipeline.mended = {"!two"}
    pipeline.run()
    after = pipeline.lake.fingerprint("loud", part())
    assert pipeline.texts(part()) == ["ONE", "!TWO"]
    assert is_partial(before) and is_partial(after) and before != after
    assert is_fresh(again(after, "elsewhere"), "elsewhere") and is_partial(again(after, "elsewhere"))


def test_a_part_of_which_nothing_could_be_processed_is_tried_again(pipeline):
    pipeline.put("!one", part=part())
    assert len(pipeline.run().failures) == len(pipeline.run().failures) == 1


def test_a_run_that_breaks_keeps_the_old_part_and_what_was_made_before(pipeline):
    for name in "ab":
        pipeline.put("old", part=part(name))
    pipeline.run()
    pipeline.put("new", part=part("a"))
    pipeline.put("break", part=part("b"))
    with pytest.raises(RuntimeError, match="killed"):
        pipeline.run()
    assert (pipeline.texts(part("a")), pipeline.texts(part("b"))) == (["NEW"], ["OLD"])
    pipeline.put("mended", part=part("b"))
    assert pipeline.run().fresh == 1
    assert pipeline.texts(part("b")) == ["MENDED"]


def test_a_damaged_part_is_made_again(pipeline):
    pipeline.put("one", part=part())
    pipeline.run()
    Path(pipeline.lake.path("loud", part())).write_bytes(b"")
    pipeline.run()
    assert pipeline.texts(part()) == ["ONE"]


def test_parts_are_named_once_and_in_order(pipeline):
    later = DAY + timedelta(days=1)
    for stage in ("docs", "code"):
        for each in (part("b"), part("a", later), part("a")):
            pipeline.put("x", part=each, stage=stage)
    assert parts_in(pipeline.lake, ["docs", "code", "none"], DAYS) == [part("a"), part("a", later), part("b")]


def test_progress_is_told_part_by_part_and_then_row_by_row(pipeline):
    seen = []
    pipeline.put("one", "two", part=part("a"))
    pipeline.put("one", part=part("b"))
    derive(
        pipeline.lake, DAYS, stage="loud", inputs=["docs"], schema=SCHEMA, stage_fingerprint="v",
        transform=pipeline._transform, report=DeriveReport(),
        progress=lambda stage, *, done, total, unit: seen.append((stage, done, total, unit)),
    )  # fmt: skip
    assert seen == [("loud", 1, 2, "parts"), ("loud", 2, 2, "parts"), ("loud", 2, 3, "items"), ("loud", 3, 3, "items")]
