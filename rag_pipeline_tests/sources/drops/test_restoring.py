"""A part that is damaged or gone is made again from the accepted files, as if nothing had happened."""

from __future__ import annotations

import json
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from rag_pipeline.forgotten import document_mark, write_marks
from rag_pipeline.lake.store import Part
from rag_pipeline.model import DayRange, SourceItem, document_id
from rag_pipeline.sources.drops.parts import STAGE, accepted_items, restore_day
from rag_pipeline.sources.raw_parts import PartsReport
from rag_pipeline_tests.sources.drops.taking import Taking

DAY = date(2024, 5, 2)
DAYS = DayRange(first=date(2024, 5, 1), last=date(2024, 5, 9))


@pytest.fixture
def taking(tmp_path: Path) -> Taking:
    """A day on which drops of every kind were taken, in several runs."""
    taking = Taking(tmp_path)
    taking.drop("one.json", {"id": "one", "content": "Words.", "scope": "user:ada"})
    taking.drop("guide.md", "# First state\n", seconds_ago=900)
    lines = [json.dumps({"id": f"line-{n}", "content": "Words."}) for n in range(3)]
    taking.drop("lines.ndjson", "\n".join([*lines, "nonsense", '{"id": "no content"}', ""]))
    taking.drop("theirs.md", "---\ntenant: globex\nscope: team:x\n---\nWords.\n")
    taking.take()
    taking.drop("guide.md", "# Second state\n", seconds_ago=300)
    taking.drop("gone.json", {"id": "line-1", "deleted": True})
    received = {"received_at": "2024-05-02T11:00:00+00:00", "repository": "wiki"}
    taking.drop("put.json", received | {"document": {"id": "put", "tenant": "acme", "content": "Words."}})
    taking.take()
    taking.drop("guide.md", "# First state\n", seconds_ago=30)
    taking.take()
    return taking


def path_of(taking: Taking, tenant: str = "acme", repository: str = "inbox") -> Path:
    return Path(taking.lake.path(STAGE, Part(tenant=tenant, repository=repository, day=DAY)))


def every_item(taking: Taking) -> list[SourceItem]:
    keys = taking.lake.repositories(STAGE)
    return [item for tenant, repo in keys for item in taking.items(tenant=tenant, repository=repo, day=DAY)]


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    changed = {
        "no Parquet": b"damaged", "cut": content[:-20], "nothing": b"",
        "a bit in a page": content[:60] + bytes([content[60] ^ 255]) + content[61:],
    }  # fmt: skip
    path.unlink() if how == "gone" else path.write_bytes(changed[how])


@pytest.mark.parametrize("how", ["no Parquet", "cut", "nothing", "a bit in a page", "gone"])
@pytest.mark.parametrize("days_later", [0, 1])
def test_a_lost_part_is_made_again_as_it_was(taking: Taking, how: str, days_later: int) -> None:
    before, parts = every_item(taking), taking.parts()
    for tenant, repository in taking.lake.repositories(STAGE):
        damage(path_of(taking, tenant, repository), how)
    taking.now += timedelta(days=days_later)
    report = taking.take(DAYS)
    assert {part.repository: rows for part, rows in report.restored.items() if part.tenant == "acme"} == {
        "inbox": 5, "wiki": 1,
    }  # fmt: skip
    assert (every_item(taking), taking.parts()) == (before, parts)
    assert taking.take(DAYS).restored == {}


def test_a_new_drop_on_a_damaged_day_loses_nothing(taking: Taking) -> None:
    before = taking.contents()
    damage(path_of(taking), "a bit in a page")
    taking.drop("more.json", {"id": "more", "content": "Words."})
    report = taking.take()
    assert report.taken == 1
    assert taking.contents() == before | {"more": "Words."}


def test_other_parts_and_other_days_are_left_alone(taking: Taking) -> None:
    others = [path_of(taking, "globex"), path_of(taking, repository="wiki")]
    times = [path.stat().st_mtime_ns for path in others]
    damage(path_of(taking), "no Parquet")
    assert taking.take(DayRange(first=date(2024, 5, 1), last=date(2024, 5, 1))).restored == {}
    assert len(taking.take(DAYS).restored) == 1
    assert [path.stat().st_mtime_ns for path in others] == times


def test_what_was_forgotten_stays_forgotten(taking: Taking) -> None:
    id_ = document_id(tenant="acme", source_type="knowledge", source_id="one")
    write_marks(taking.home, [document_mark("acme", id_)])
    damage(path_of(taking), "gone")
    taking.take(DAYS)
    assert "one" not in taking.contents(day=DAY)
    assert "guide.md" in taking.contents(day=DAY)


def test_a_damaged_part_without_accepted_files_is_left_as_it_is(taking: Taking) -> None:
    shutil.rmtree(Path(taking.settings.inbox_url, "accepted"))
    damage(path_of(taking), "no Parquet")
    assert taking.take(DAYS).restored == {}
    assert path_of(taking).read_bytes() == b"damaged"


def test_a_hostile_accepted_file_stops_nothing(taking: Taking) -> None:
    folder = Path(taking.settings.inbox_url, "accepted", DAY.isoformat())
    (folder / "deep.json").write_bytes(b"[" * 100_000)
    (folder / "broken.md").write_text("---\nscope: user:jane: x\n---\nWords.\n")
    before = taking.contents()
    damage(path_of(taking), "no Parquet")
    taking.take(DAYS)
    assert taking.contents(day=DAY) == before
    unusable = accepted_items(taking.settings, DAY, now=taking.now).unusable
    assert sorted(name for name, _ in unusable) == ["broken.md", "deep.json"]


def test_a_day_is_restored_into_another_home_once_and_again(taking: Taking, tmp_path: Path) -> None:
    before = every_item(taking)
    other = Taking(tmp_path / "restored", now=taking.now + timedelta(days=3))
    shutil.copytree(taking.settings.inbox_url, other.settings.inbox_url)
    shutil.copy(taking.home / "inbox.json", other.home / "inbox.json")
    for _ in range(2):
        restored, accepted = restore_day(
            other.settings, other.lake, DAY, tenants=(), now=other.now, report=PartsReport()
        )
        assert (len(restored), accepted.files, accepted.unusable) == (3, 7, [])
        assert every_item(other) == before
        assert other.parts() == taking.parts()


def test_only_the_tenants_that_are_named_are_restored(taking: Taking) -> None:
    for tenant, repository in taking.lake.repositories(STAGE):
        damage(path_of(taking, tenant, repository), "gone")
    restore_day(taking.settings, taking.lake, DAY, tenants=["globex"], now=taking.now, report=PartsReport())
    assert {part.split("/")[0] for part in taking.parts()} == {"globex"}


def test_files_of_another_taker_are_not_given_to_this_tenant(taking: Taking) -> None:
    other = taking.settings.model_copy(update={"tenant": "initech"})
    found = accepted_items(other, DAY, now=taking.now)
    assert {tenant for tenant, _ in found.items} == {"globex", "acme"}
    assert {item.source_id for item in found.items["acme", "wiki"]} == {"put"}
    assert ("acme", "inbox") not in found.items
    assert "names no tenant" in found.unusable[0][1]
