"""A source that falls silent or loses most of itself is noticed; weekends and quiet repositories are not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange
from rag_pipeline.quality import Checked
from rag_pipeline.quality.volume import check_volume, comparable_days, volume_rules
from rag_pipeline.settings import Quality
from rag_pipeline_tests.quality.lakes import PART, item, store

THURSDAY = date(2024, 5, 2)
WEEKDAYS = [THURSDAY - timedelta(days=n) for n in range(1, 30) if (THURSDAY - timedelta(days=n)).weekday() < 5]


def part(day: date) -> Part:
    return Part(tenant="acme", repository="handbook", day=day)


def history(folder: Path, rows: Mapping[date, int]) -> Lake:
    """A repository that began long before, with so many items a day."""
    lake = store(folder, "raw_docs", [item()], part=part(date(2024, 1, 1)))
    for day, count in rows.items():
        store(lake, "raw_docs", [item(f"{n}.md", day=day) for n in range(count)], part=part(day))
    return lake


def volume(
    lake: Lake, *, days: DayRange | None = None, today: date = THURSDAY + timedelta(days=1), living: int = 0,
    known: Mapping[Part, str] | None = None, **quality: object,
) -> Checked:  # fmt: skip
    limits = Quality.model_validate(quality)
    return check_volume(
        lake, "raw_docs", days or DayRange(first=THURSDAY, last=today), today=today, settings=limits,
        rules=volume_rules(limits), known=known or {}, living=lambda tenant, repository: living,
    )  # fmt: skip


def test_a_repository_that_gave_something_every_working_day_and_now_nothing_is_reported(tmp_path):
    lake = history(tmp_path, dict.fromkeys(WEEKDAYS, 10))
    checked = volume(lake)
    (finding,) = checked.outcome.failed
    assert finding.rule.name == "no_sudden_drop"
    assert not finding.blocks
    assert finding.observed == "1 (1 of 1)"
    (row,) = finding.sample
    assert (row["day"], row["items"], row["usual_items"]) == ("2024-05-02", "0", "10.0")
    assert "quality.max_drop_share" in finding.rule.remedy
    assert checked.passed == {}
    assert volume(lake, max_drop_share=1.0).outcome.passed


def test_a_drop_to_a_few_is_reported_and_half_is_not(tmp_path):
    lake = history(tmp_path, dict.fromkeys(WEEKDAYS, 10))
    store(lake, "raw_docs", [item()], part=part(THURSDAY))
    assert [f.rule.name for f in volume(lake).outcome.failed] == ["no_sudden_drop"]
    store(lake, "raw_docs", [item(f"{n}.md") for n in range(5)], part=part(THURSDAY))
    assert volume(lake).outcome.passed


def test_a_repository_that_is_quiet_now_and_then_is_not_reported(tmp_path):
    rows = dict.fromkeys(WEEKDAYS, 10) | {WEEKDAYS[3]: 0}
    assert volume(history(tmp_path, rows)).outcome.passed


def test_weekends_are_compared_with_weekends(tmp_path):
    lake = history(tmp_path, dict.fromkeys([*WEEKDAYS, THURSDAY, THURSDAY + timedelta(days=1)], 10))
    saturday = THURSDAY + timedelta(days=2)
    days = DayRange(first=saturday, last=saturday)
    assert volume(lake, days=days, today=saturday + timedelta(days=1)).outcome.passed


def test_too_little_history_says_nothing_and_today_is_not_over(tmp_path):
    lake = history(tmp_path, dict.fromkeys(WEEKDAYS[:5], 10))
    assert volume(lake).outcome.passed
    assert [f.rule.name for f in volume(lake, min_history=4).outcome.failed] == ["no_sudden_drop"]
    assert volume(lake, days=DayRange(first=THURSDAY, last=THURSDAY), today=THURSDAY).parts == 0


def test_many_deletions_at_once_are_reported_when_they_are_much_of_what_is_indexed(tmp_path):
    gone = [item(f"{n}.md", deleted=True, content=b"") for n in range(120)]
    lake = store(tmp_path, "raw_docs", gone, part=PART)
    (finding,) = volume(lake, living=200).outcome.failed
    assert finding.rule.name == "no_mass_delete"
    assert finding.observed == "0.6 (1 of 1)"
    assert volume(lake, living=5000).outcome.passed
    assert volume(lake, living=0).outcome.passed
    assert volume(lake, living=200, max_deleted_items=120).outcome.passed


def test_what_was_only_moved_is_not_gone(tmp_path):
    moved = [item(f"{n}.md", deleted=True, content=b"") for n in range(120)] + [item(f"new/{n}.md") for n in range(120)]
    assert volume(store(tmp_path, "raw_docs", moved, part=PART), living=200).outcome.passed


def test_a_day_that_passed_is_not_judged_again_until_something_changes(tmp_path):
    lake = history(tmp_path, dict.fromkeys([*WEEKDAYS, THURSDAY], 10))
    first = volume(lake)
    assert list(first.passed) == [part(THURSDAY)]
    assert (volume(lake, known=first.passed).parts, volume(lake, known=first.passed).unchanged) == (0, 1)
    store(lake, "raw_docs", [item()], part=part(THURSDAY), fingerprint="v2")
    assert volume(lake, known=first.passed).parts == 1


def test_the_first_partition_is_no_measure_of_a_usual_day():
    known = [date(2024, 4, 1), date(2024, 4, 29)]
    assert comparable_days(THURSDAY, known) == [date(2024, 5, 1), date(2024, 4, 30), date(2024, 4, 29)]
    assert comparable_days(THURSDAY, known[:1]) == []
