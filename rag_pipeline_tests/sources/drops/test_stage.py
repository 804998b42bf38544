"""What waits in the inbox becomes today's part of the lake: each drop once, the newest state of each, none lost."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from rag_pipeline.model import DayRange
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline.sources.drops.parse import parse_drop
from rag_pipeline_tests.sources.drops.taking import Taking


@pytest.fixture
def taking(tmp_path: Path) -> Taking:
    return Taking(tmp_path)


def record(id_: str, content: str = "Some words.", *, hour: int = 9, **more: object) -> dict[str, object]:
    return {"id": id_, "content": content, "updated_at": f"2024-05-02T{hour:02}:00:00Z", **more}


def test_records_lines_and_plain_files_become_items_of_today(taking):
    taking.drop("one.json", record("one", title="One", url="https://example.org/one", scope="user:ada"))
    taking.drop("many.ndjson", "\n".join(json.dumps(record(f"line-{n}", f"Words {n}.")) for n in range(3)))
    taking.drop("array.json", [record("first"), {"id": "gone", "deleted": True}])
    taking.drop("guide.md", "---\ntitle: Guide\ntenant: other\n---\n# Hello\n")
    taking.drop("notes.txt", "Plain words.")
    report = taking.take()
    assert (report.taken, report.left, report.rejected) == (5, 0, [])
    assert taking.contents() == {
        "one": "Some words.", "line-0": "Words 0.", "line-1": "Words 1.", "line-2": "Words 2.",
        "first": "Some words.", "notes.txt": "Plain words.",
    }  # fmt: skip
    items = {item.source_id: item for item in taking.items()}
    one = items["one"]
    assert (one.title, one.url, one.scope) == ("One", "https://example.org/one", "user:ada")
    assert one.source_updated_at == datetime(2024, 5, 2, 9, tzinfo=UTC)
    assert {item.day for item in items.values()} == {date(2024, 5, 2)}
    assert items["gone"].deleted
    assert taking.contents(tenant="other") == {"guide.md": "# Hello\n"}
    assert (report.items.total(), report.tombstones.total(), report.written_parts) == (7, 1, 2)


def test_taken_drops_move_to_the_folder_of_the_day(taking):
    taking.drop("one.json", record("one"))
    taking.take()
    taking.now += timedelta(days=1)
    taking.drop("two.json", record("two"))
    taking.take()
    assert taking.files() == ["accepted/2024-05-02/one.json", "accepted/2024-05-03/two.json"]
    assert (set(taking.contents(day=date(2024, 5, 2))), set(taking.contents())) == ({"one"}, {"two"})


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_arrival_does_not_matter(tmp_path, seed):
    states = [record("a", f"a {hour}", hour=hour) for hour in (1, 3, 5)]
    states += [record("b", "b 2", hour=2), {**record("b", hour=4), "deleted": True}]
    states += [{**record("c", hour=2), "deleted": True}, record("c", "c 4", hour=4)]
    taking = Taking(tmp_path, drops={"max_batch": 3})
    rng = random.Random(seed)
    rng.shuffle(states)
    for number, state in enumerate(states):
        taking.drop(f"{number}.json", state, seconds_ago=rng.randint(60, 600))
    while taking.take().left:
        pass
    assert taking.contents() == {"a": "a 5", "c": "c 4"}
    ordered = Taking(tmp_path / "ordered")
    for number, state in enumerate(sorted(states, key=lambda state: str(state["updated_at"]))):
        ordered.drop(f"{number}.json", state)
    ordered.take()
    assert taking.parts() == ordered.parts()


def test_a_late_older_drop_changes_nothing(taking):
    taking.drop("new.json", record("a", "new", hour=8))
    taking.take()
    before = taking.parts()
    taking.drop("old.json", record("a", "old", hour=7))
    report = taking.take()
    assert (report.taken, taking.contents(), taking.parts()) == (1, {"a": "new"}, before)


def test_the_same_drops_twice_change_nothing(taking):
    drops = {f"{n}.json": record(f"r{n}", f"Words {n}.") for n in range(5)}
    for name, content in drops.items():
        taking.drop(name, content)
    taking.take()
    before = taking.parts()
    for names in (["3.json"], list(drops)):
        for name in names:
            taking.drop(name, drops[name])
        assert taking.take().taken == len(names)
        assert taking.parts() == before
    assert taking.files() == [f"accepted/2024-05-02/{name}" for name in sorted(drops)]


def test_batches_of_one_day_add_up_and_leave_the_rest_waiting(taking):
    taking.drops = {"max_batch": 4}
    for number in range(10):
        taking.drop(f"{number}.json", record(f"r{number}"), seconds_ago=100 - number)
    assert [(report.taken, report.left) for report in (taking.take(), taking.take())] == [(4, 6), (4, 2)]
    assert set(taking.contents()) == {f"r{number}" for number in range(8)}
    taking.take()
    assert len(taking.contents()) == 10


def test_large_drops_are_taken_a_few_at_a_time(taking, monkeypatch):
    monkeypatch.setattr("rag_pipeline.sources.drops.stage._MAX_BATCH_BYTES", 1_000)
    for number in range(4):
        taking.drop(f"{number}.txt", "x" * (400 if number else 2_000), seconds_ago=100 - number)
    assert [taking.take().taken for _ in range(4)] == [1, 2, 1, 0]


def test_a_run_takes_only_what_was_there_when_it_was_launched(taking):
    taking.drop("one.json", record("one"), seconds_ago=60)
    until = taking.now - timedelta(seconds=60)
    taking.drop("two.json", record("two"), seconds_ago=59)
    assert taking.take(until=until).left == 1
    assert taking.files() == ["accepted/2024-05-02/one.json", "two.json"]


def test_malformed_drops_are_rejected_with_a_reason_and_stop_nothing(taking):
    taking.drop("broken.json", '{"id": "a", "content": ', seconds_ago=600)
    taking.drop("image.png", b"\x89PNG")
    taking.drop("nameless.json", {"content": "Whose?"})
    taking.drop("good.json", record("good"))
    report = taking.take()
    assert (report.taken, report.left) == (4, 0)
    assert [name for name, _ in report.rejected] == ["broken.json", "image.png", "nameless.json"]
    assert taking.contents() == {"good": "Some words."}
    assert taking.files() == [
        "accepted/2024-05-02/good.json",
        *(f"rejected/{name}{end}" for name in ("broken.json", "image.png", "nameless.json")
          for end in ("", ".reason.txt")),
    ]  # fmt: skip
    assert taking.reason("nameless.json") == "nameless.json: id is missing"


def test_bad_lines_are_rejected_by_themselves(taking):
    good = [json.dumps(record("a")), json.dumps(record("b"))]
    taking.drop("mixed.ndjson", f'{good[0]}\n{{"id": "c"}}\n{good[1]}\nnonsense\n')
    report = taking.take()
    assert set(taking.contents()) == {"a", "b"}
    assert [name for name, _ in report.rejected] == ["mixed.ndjson:2", "mixed.ndjson:4"]
    kept = [name for name in taking.files() if name.startswith("rejected/") and name.endswith(".ndjson")]
    assert {Path(taking.settings.inbox_url, name).read_bytes() for name in kept} == {b'{"id": "c"}', b"nonsense"}
    assert "accepted/2024-05-02/mixed.ndjson" in taking.files()


def test_a_file_that_is_still_being_written_is_left_alone(taking):
    taking.drop("young.md", "# Half a", seconds_ago=-59.5)  # by the clock of the run: half a second ago
    taking.drop("half.json", '{"id": "a", "content": "Half', seconds_ago=-30)
    taking.drop("upload.json.part", json.dumps(record("b")))
    report = taking.take()
    assert (report.taken, report.left) == (0, 1)
    assert taking.files() == ["half.json", "upload.json.part", "young.md"]
    taking.drop("half.json", record("a"))
    assert taking.take().taken == 2
    assert taking.files()[-1] == "upload.json.part"


def test_a_run_that_died_before_it_moved_the_drops_is_repeated_without_harm(taking, monkeypatch):
    taking.drop("one.json", record("one"))
    taking.drop("lines.ndjson", json.dumps(record("two")) + '\n{"id": "bad"}\n')

    def die(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Inbox, "accept", die)
        taking.take()
    assert set(taking.contents()) == {"one", "two"}
    before = taking.parts()
    report = taking.take()
    assert (report.taken, report.left) == (2, 0)
    assert taking.parts() == before
    assert len([name for name in taking.files() if name.startswith("rejected/")]) == 2
    assert len([name for name in taking.files() if name.startswith("accepted/")]) == 2


def test_a_run_that_died_before_it_wrote_anything_leaves_every_drop_waiting(taking, monkeypatch):
    taking.drop("one.json", record("one"))

    def die(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("rag_pipeline.sources.drops.stage.write_part", die)
        taking.take()
    assert (taking.files(), taking.items()) == (["one.json"], [])
    assert taking.take().taken == 1


def test_only_a_run_that_covers_today_takes_drops(taking):
    taking.drop("one.json", record("one"))
    yesterday = taking.now.date() - timedelta(days=1)
    report = taking.take(DayRange(first=date(2024, 4, 1), last=yesterday))
    assert (report.taken, taking.files()) == (0, ["one.json"])
    assert taking.take(DayRange(first=date(2024, 4, 1), last=taking.now.date())).taken == 1


def test_a_drop_that_breaks_the_code_is_rejected_and_stops_nothing(taking, monkeypatch):
    def parse(name, content, **options):
        if name == "odd.json":
            raise RecursionError("too deep")
        return parse_drop(name, content, **options)

    monkeypatch.setattr("rag_pipeline.sources.drops.stage.parse_drop", parse)
    taking.drop("odd.json", record("odd"))
    taking.drop("good.json", record("good"))
    report = taking.take()
    assert report.rejected == [("odd.json", "RecursionError: too deep")]
    assert set(taking.contents()) == {"good"}
    assert taking.reason("odd.json") == "RecursionError: too deep"


def test_an_empty_inbox_writes_nothing(taking):
    report = taking.take()
    assert (report.taken, report.left, taking.parts()) == (0, 0, {})
