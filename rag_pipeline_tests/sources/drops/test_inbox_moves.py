"""Files leave the inbox for `accepted/` or `rejected/`: none is lost, overwritten or moved unseen."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline_tests.sources.drops.places import Place

DAY = date(2024, 5, 1)


def test_accepted_files_lie_under_their_day_and_are_not_overwritten(place: Place) -> None:
    for content in (b"one", b"two", b"one", b"three", b"two"):
        place.write("notes.md", content)
        place.inbox.accept("notes.md", day=DAY)
    assert place.files == {
        "accepted/2024-05-01/notes.md": b"one",
        "accepted/2024-05-01/notes.2.md": b"two",
        "accepted/2024-05-01/notes.3.md": b"three",
    }


def test_a_rejected_file_lies_beside_its_reason(place: Place) -> None:
    place.write("a.json", b"{")
    place.inbox.reject("a.json", reason="a.json: is not valid JSON \ud800")
    place.write("a.json", b"[")
    place.inbox.reject("a.json", reason="again")
    place.write("a.json", b"{")
    place.inbox.reject("a.json", reason="a.json: still not")
    assert place.files == {
        "rejected/a.json": b"{",
        "rejected/a.json.reason.txt": b"a.json: still not\n",
        "rejected/a.2.json": b"[",
        "rejected/a.2.json.reason.txt": b"again\n",
    }
    assert place.inbox.put("a.json", b"corrected")


def test_a_rejected_part_is_kept_once_however_often_it_is_refused(place: Place) -> None:
    for content in (b"bad", b"bad", b"worse"):
        place.inbox.reject_part("a.ndjson", content, reason=f"{content.decode()} line")
    parts = {path: content for path, content in place.files.items() if path.endswith(".ndjson")}
    assert sorted(parts.values()) == [b"bad", b"worse"]
    for path, content in parts.items():
        assert path.startswith("rejected/a.")
        assert place.files[f"{path}.reason.txt"] == content + b" line\n"
    assert len(place.files) == 4


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 120 + ".markdown", "x" * 251 + ".md"])
def test_the_longest_names_can_be_accepted_and_rejected_twice(local: Place, name: str) -> None:
    for content in (b"one", b"two"):
        local.write(name, content)
        local.inbox.accept(name, day=DAY)
        local.write(name, content)
        local.inbox.reject(name, reason="no")
    assert local.inbox.knows(name)
    assert sorted(local.files.values()) == [b"no\n", b"no\n", b"one", b"one", b"two", b"two"]


def test_a_file_that_vanished_is_no_error_and_leaves_no_reason(place: Place) -> None:
    place.inbox.accept("a.md", day=DAY)
    place.inbox.reject("a.md", reason="no")
    assert place.files == {}


def test_a_file_that_vanishes_while_it_is_rejected_leaves_no_reason(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.write("a.md")
    rename = Path.rename

    def take_first(source: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        Inbox(local.url).accept("a.md", day=DAY)
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", take_first)
    local.inbox.reject("a.md", reason="no")
    assert list(local.files) == ["accepted/2024-05-01/a.md"]


def test_a_crash_between_reason_and_move_is_made_good(place: Place) -> None:
    place.write("rejected/a.md.reason.txt", b"no\n")
    place.write("a.md", b"x")
    place.inbox.reject("a.md", reason="no")
    assert place.files == {"rejected/a.md": b"x", "rejected/a.md.reason.txt": b"no\n"}


def test_a_file_that_was_replaced_since_it_was_listed_stays_and_waits(place: Place) -> None:
    place.write("a.md", b"old")
    (seen,) = place.inbox.waiting(now=datetime.now(UTC) + timedelta(seconds=5), settle_s=0)
    place.write("a.md", b"newer")
    place.inbox.accept("a.md", day=DAY, seen=seen)
    place.inbox.reject("a.md", reason="no", seen=seen)
    assert place.files == {"a.md": b"newer"}
    (seen,) = place.inbox.waiting(now=datetime.now(UTC) + timedelta(seconds=5), settle_s=0)
    place.inbox.accept("a.md", day=DAY, seen=seen)
    assert place.files == {"accepted/2024-05-01/a.md": b"newer"}


def test_two_processes_that_empty_one_inbox_move_each_file_once(local: Place) -> None:
    names = [f"{number}.md" for number in range(200)]
    for name in names:
        local.write(name, name.encode())
    start = threading.Barrier(4)

    def empty() -> None:
        inbox = Inbox(local.url)
        start.wait()
        for file in inbox.waiting(now=datetime.now(UTC) + timedelta(seconds=5), settle_s=0):
            inbox.accept(file.name, day=DAY) if int(file.name[:-3]) % 2 else inbox.reject(file.name, reason="even")

    threads = [threading.Thread(target=empty) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = local.files
    assert sum(path.endswith(".reason.txt") for path in files) == 100
    moved = {path.rpartition("/")[2]: content for path, content in files.items() if not path.endswith(".reason.txt")}
    assert moved == {name: name.encode() for name in names}
