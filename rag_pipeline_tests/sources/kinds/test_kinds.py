"""Further kinds of sources: what listings mean, what is not believed, and that order and repetition do not matter."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.errors import ConfigError, ItemError, PermanentError, SourceNotFound
from rag_pipeline.lake.schemas import items_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, SourceItem
from rag_pipeline.progress import silent
from rag_pipeline.settings import Settings
from rag_pipeline.sources.kinds import Content, Listed, Outside, SourceBlock, registry
from rag_pipeline.sources.kinds.memory import Memory
from rag_pipeline.sources.kinds.stage import KindReport, read_kind

NOW = datetime(2024, 1, 10, 12, tzinfo=UTC)
OUTSIDE = Outside(base=Path(), environ={})


@dataclass
class Notes:
    """A kind whose blocks hold what a test says, by the block's name: version, time and text by identity."""

    held: dict[str, dict[str, tuple[str, datetime, str]]]
    name: str = "notes"
    description: str = "Notes."
    version: str = "1"
    block: type[SourceBlock] = SourceBlock
    read_ids: list[str] = field(default_factory=list)

    def list(self, block: SourceBlock, outside: Outside) -> Iterator[Listed]:
        for source_id, (version, changed_at, text) in self.held[block.name].items():
            if text == "unlistable":
                raise SourceNotFound("the shelf fell down")
            yield Listed(source_id=source_id, version=version, changed_at=changed_at)

    def read(self, block: SourceBlock, outside: Outside, listed: Listed) -> Content:
        self.read_ids.append(listed.source_id)
        version, _, text = self.held[block.name][listed.source_id]
        assert version == listed.version
        if text == "unreadable":
            raise ItemError("ink spilled: write it again")
        return Content(content=text.encode(), content_type="text/markdown", title=listed.source_id)


def settings(home: Path, *names: str) -> Settings:
    blocks = tuple({"name": name} for name in names)
    return Settings.model_validate({"home": home, "start_date": date(2024, 1, 1), "sources": {"notes": blocks}})


def read(kind: Notes, home: Path, first: int, last: int, *, now: datetime = NOW, lake: str = "lake") -> KindReport:
    return read_kind(
        kind, settings(home, *kind.held), Lake(str(home / lake)), outside=OUTSIDE, clock=lambda: now, progress=silent,
        days=DayRange(first=date(2024, 1, first), last=date(2024, 1, last)),
    )  # fmt: skip


def items(home: Path, day: int, *, name: str = "shelf", lake: str = "lake") -> list[SourceItem]:
    part = Part(tenant="default", repository=name, day=date(2024, 1, day))
    return [item for batch in Lake(str(home / lake)).read("raw_notes", part) for item in items_of(batch)]


def on(day: int, *, month: int = 1) -> datetime:
    return datetime(2024, month, day, 9, tzinfo=UTC)


def test_an_item_is_on_the_day_of_its_last_change_between_the_first_partition_and_today(tmp_path):
    old, ahead = datetime(2019, 5, 5, tzinfo=UTC), on(1, month=3)
    kind = Notes({"shelf": {"a": ("1", on(3), "A"), "old": ("1", old, "O"), "ahead": ("1", ahead, "F")}})
    read(kind, tmp_path, 1, 10)
    assert {day: [item.source_id for item in items(tmp_path, day)] for day in (1, 3, 10)} == {
        1: ["shelf:old"], 3: ["shelf:a"], 10: ["shelf:ahead"],
    }  # fmt: skip
    (a,) = items(tmp_path, 3)
    assert (a.source_type, a.repository, a.content, a.title) == ("notes", "shelf", b"A", "a")
    assert (a.source_updated_at, a.as_of, a.metadata) == (on(3), NOW, {"content_type": "text/markdown"})


def test_nothing_new_reads_nothing_and_only_days_with_a_change_are_read(tmp_path):
    kind = Notes({"shelf": {"a": ("1", on(3), "A"), "b": ("1", on(4), "B"), "c": ("1", on(4), "C")}})
    read(kind, tmp_path, 1, 10)
    kind.read_ids.clear()
    report = read(kind, tmp_path, 1, 10)
    assert (kind.read_ids, report.written_parts, report.fresh_parts) == ([], 0, 2)
    kind.held["shelf"]["b"] = ("2", on(5), "B2")
    read(kind, tmp_path, 1, 10, now=NOW + timedelta(hours=1))
    assert set(kind.read_ids) == {"b", "c"}
    assert [item.source_id for item in items(tmp_path, 4)] == ["shelf:c"]
    kind.read_ids.clear()
    kind.version = "2"
    read(kind, tmp_path, 1, 10)
    assert set(kind.read_ids) == {"a", "b", "c"}


def test_a_memory_that_is_damaged_is_named_and_stops_no_other_block(tmp_path):
    kind = Notes({"shelf": {"a": ("1", on(3), "A")}, "drawer": {"b": ("1", on(4), "B")}})
    read(kind, tmp_path, 1, 10)
    (path,) = tmp_path.rglob("shelf.sqlite")
    path.write_bytes(b"no database at all" * 100)
    kind.held["shelf"]["a"] = ("2", on(5), "A2")
    kind.held["drawer"]["b"] = ("2", on(5), "B2")
    report = read(kind, tmp_path, 1, 10, now=NOW + timedelta(hours=1))
    (failure,) = report.failures
    assert (failure.repository, failure.reason.partition(": ")[0]) == ("shelf", f"{path} is damaged")
    assert [item.content for item in items(tmp_path, 5, name="drawer")] == [b"B2"]
    assert [item.content for item in items(tmp_path, 3)] == [b"A"], "what was read before stays"
    path.unlink()
    assert read(kind, tmp_path, 1, 10, now=NOW + timedelta(hours=2)).failures == []
    assert [item.content for item in items(tmp_path, 5)] == [b"A2"]


def test_what_is_gone_is_a_tombstone_of_today_and_may_come_back_as_it_was(tmp_path):
    kind = Notes({"shelf": {"a": ("1", on(3), "A"), "b": ("1", on(4), "B")}})
    read(kind, tmp_path, 1, 10)
    b = kind.held["shelf"].pop("b")
    read(kind, tmp_path, 10, 10)
    (tombstone,) = items(tmp_path, 10)
    assert (tombstone.source_id, tombstone.deleted, tombstone.as_of) == ("shelf:b", True, NOW)
    kind.held["shelf"]["b"] = b
    later = NOW + timedelta(hours=1)
    read(kind, tmp_path, 1, 10, now=later)
    assert items(tmp_path, 10) == []
    (back,) = items(tmp_path, 4)
    # Newer than its tombstone, although the source shows its old time.
    assert (back.deleted, back.source_updated_at, back.as_of) == (False, on(4), later)


def test_a_listing_that_lacks_too_much_is_not_believed_until_that_is_accepted(tmp_path):
    kind = Notes({"shelf": {f"n{i}": ("1", on(3), "N") for i in range(20)}})
    read(kind, tmp_path, 1, 10)
    kind.held["shelf"] = {"n0": ("1", on(3), "N")}
    report = read(kind, tmp_path, 1, 10)
    (failure,) = report.failures
    assert failure.source_type == "repository"
    assert "19 known items are no longer listed" in failure.reason
    assert "max_removed_share = 1" in failure.reason
    memory = Memory(tmp_path / "guard.sqlite")
    many = [Listed(source_id=str(i), version="1", changed_at=on(3)) for i in range(20)]
    memory.observe(many, block=SourceBlock(name="x"), now=NOW)
    assert memory.observe(many[:9], block=SourceBlock(name="x"), now=NOW).withheld == 11
    assert memory.observe(many[:9], block=SourceBlock(name="x", max_removed_share=1), now=NOW).removed == 11


def test_a_block_that_cannot_be_listed_and_an_item_that_cannot_be_read_stop_nothing(tmp_path):
    kind = Notes({
        "fallen": {"x": ("1", on(3), "X"), "y": ("1", on(3), "unlistable")},
        "shelf": {"a": ("1", on(3), "unreadable"), "b": ("1", on(3), "B")},
    })  # fmt: skip
    report = read(kind, tmp_path, 1, 10)
    assert [(f.source_type, f.source_id, f.reason) for f in report.failures] == [
        ("repository", "fallen", "the shelf fell down"), ("notes", "shelf:a", "ink spilled: write it again"),
    ]  # fmt: skip
    # Half a listing is none.
    assert items(tmp_path, 3, name="fallen") == []
    assert [item.source_id for item in items(tmp_path, 3)] == ["shelf:b"]
    kind.held["shelf"]["a"] = ("1", on(3), "A")
    assert [f.source_id for f in read(kind, tmp_path, 1, 10).failures] == ["fallen"]
    assert [item.source_id for item in items(tmp_path, 3)] == ["shelf:a", "shelf:b"]
    kind.read_ids.clear()
    read(kind, tmp_path, 1, 10)
    assert kind.read_ids == []


def test_days_may_be_read_in_any_order_and_twice(tmp_path):
    held = {"shelf": {f"n{i}": ("1", on(2 + i), f"N{i}") for i in range(4)}}
    read(Notes(held), tmp_path, 1, 10, lake="whole")
    for number, order in enumerate(itertools.permutations((2, 3, 4, 5))):
        for day in (*order, order[0]):
            read(Notes(held), tmp_path, day, day, lake=f"lake{number}")
        for day in range(1, 11):
            assert items(tmp_path, day, lake=f"lake{number}") == items(tmp_path, day, lake="whole")


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ([("a", datetime(2024, 1, 1))], "changed_at of 'a' has no time zone"),  # noqa: DTZ001
        ([("a", on(1)), ("a", on(2))], "'a' is listed twice"),
    ],
)
def test_a_listing_that_makes_no_sense_is_refused_whole(tmp_path, listed, said):
    memory = Memory(tmp_path / "x.sqlite")
    listing = [Listed(source_id=source_id, version="1", changed_at=at) for source_id, at in listed]
    with pytest.raises(PermanentError, match=said):
        memory.observe(listing, block=SourceBlock(name="x"), now=NOW)
    assert memory.items() == []


LISTINGS = st.lists(st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4), min_size=1, max_size=5)


# A file each: what the machine's disk is busy with is no matter of this test.
@hypothesis.settings(deadline=None, max_examples=30)
@given(listings=LISTINGS)
def test_the_memory_is_the_last_listing_and_counts_every_change_once(listings: Sequence[dict[str, str]]):
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(Path(folder) / "x.sqlite")
        changes, before = 0, {}
        for hour, listing in enumerate(listings):
            listed = [Listed(source_id=key, version=version, changed_at=on(1)) for key, version in listing.items()]
            for _ in range(2):
                memory.observe(listed, block=SourceBlock(name="x"), now=NOW + timedelta(hours=hour))
            changes += sum(before.get(key) != listing.get(key) for key in {*before, *listing})
            before = listing
            assert {i.source_id: i.version for i in memory.items() if not i.deleted} == listing
            numbers = [item.seq for item in memory.items()]
            assert len(set(numbers)) == len(numbers)
            assert max(numbers, default=0) == changes
        memory.close()


def test_a_kind_whose_name_is_taken_or_none_is_refused(monkeypatch):
    for name, said in (("docs", "already"), ("git", "already"), ("Notes", "lower-case"), ("", "lower-case")):
        monkeypatch.setattr(registry, "OWN", (Notes({}, name=name),))
        with pytest.raises(ConfigError, match=said):
            registry.kinds.__wrapped__()
    monkeypatch.setattr(registry, "OWN", (Notes({}), Notes({})))
    with pytest.raises(ConfigError, match="there is a kind of source 'notes' already"):
        registry.kinds.__wrapped__()


def test_blocks_are_checked_by_their_kind_and_named_once(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "kinds", lambda: (Notes({}),))
    values = {"home": tmp_path, "repositories": [{"source": "/x", "name": "x", "tenant": "default"}]}

    def wrong(**sources: object) -> list[tuple[str, str]]:
        found = registry.complaints(Settings.model_validate({**values, "sources": sources}))
        return [(complaint.key, complaint.message) for complaint in found]

    assert wrong(notes=[{"name": "y"}]) == []
    ((key, message),) = wrong(notes=[{"name": "x"}])
    assert (key, message.endswith("named 'x': give it another `name`")) == ("sources.notes.0.name", True)
    ((key, message),) = wrong(notes=[{"name": "y", "tennant": "z"}])
    assert (key, message) == ("sources.notes.0.tennant", "unknown key: did you mean 'tenant'?")
    ((key, message),) = wrong(blog=[{"name": "y"}])
    assert (key, message.startswith("unknown kind of source: there are notes")) == ("sources.blog", True)
