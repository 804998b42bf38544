"""What waits in an inbox, what is read of it, and what is put into it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from rag_pipeline.errors import ItemError
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline_tests.sources.drops.places import Place

DAY = date(2024, 5, 1)
UNSUITABLE = [
    "", ".", "..", ".hidden", "a/b", "../a", "a\\b", "a\x00b", "a\nb", "\x9fa", "a\ud800", "a.tmp", "A.PART",
    "a.partial", "a.crdownload", ".a.swp", "a~", "accepted", "rejected", "x" * 256,
    "é" * 128,
]  # fmt: skip


def age(folder: Place, name: str, seconds: float) -> datetime:
    """Make a file of a local inbox this old; returns a now."""
    now = datetime.now(UTC)
    os.utime(Path(folder.url) / name, (now.timestamp() - seconds,) * 2)
    return now


def test_an_inbox_that_does_not_exist_is_empty(place: Place) -> None:
    assert place.waiting() == []
    assert not place.inbox.knows("a.md")
    assert place.files == {}


def test_only_finished_files_directly_in_the_inbox_wait(place: Place) -> None:
    for path in (
        "b.md",
        "a.json",
        "folder/c.md",
        "accepted/2024-05-01/d.md",
        "rejected/e.md",
        "rejected/e.md.reason.txt",
    ):
        place.write(path)
    for name in (".hidden", "a.tmp", "a.part", "a.PARTIAL", "a.crdownload", "a.swp", "a.md~"):
        place.write(name)
    assert sorted(place.waiting()) == ["a.json", "b.md"]


def test_the_oldest_comes_first_then_the_name_decides(local: Place) -> None:
    for name, seconds in {"young.md": 10, "b.md": 30, "a.md": 30, "old.md": 50}.items():
        local.write(name, b"12345")
        os.utime(Path(local.url) / name, (1_700_000_000 - seconds,) * 2)
    found = local.inbox.waiting(now=datetime.now(UTC), settle_s=2)
    assert [file.name for file in found] == ["old.md", "a.md", "b.md", "young.md"]
    assert found[0].size == 5
    assert found[0].modified_at == datetime.fromtimestamp(1_700_000_000 - 50, UTC)


def test_a_file_that_just_changed_is_left_to_settle(place: Place) -> None:
    place.write("a.md")
    assert place.waiting(settle_s=60) == []
    assert place.waiting(settle_s=1) == ["a.md"]


def test_a_file_of_a_wrong_clock_does_not_wait_for_ever(local: Place) -> None:
    local.write("future.md")
    local.write("strange.md")
    age(local, "future.md", -86_400)
    os.utime(Path(local.url) / "strange.md", (10**12, 10**12))
    assert sorted(local.waiting(settle_s=2)) == ["future.md", "strange.md"]


def test_links_pipes_and_names_that_are_not_text_are_left_alone(local: Place, tmp_path: Path) -> None:
    local.write("a.md")
    (tmp_path / "secret.md").write_bytes(b"secret")
    (Path(local.url) / "link.md").symlink_to(tmp_path / "secret.md")
    os.mkfifo(Path(local.url) / "pipe.md")
    Path(os.fsdecode(os.fsencode(local.url) + b"/\xff.md")).write_bytes(b"x")
    (Path(local.url) / "line\nbreak.md").write_bytes(b"x")
    assert local.waiting() == ["a.md"]
    for name in ("link.md", "pipe.md"):
        with pytest.raises(ItemError):
            local.inbox.read(name, max_bytes=100)
    local.inbox.accept("link.md", day=DAY)
    assert (Path(local.url) / "link.md").is_symlink()


def test_a_file_is_read_up_to_the_limit(place: Place) -> None:
    place.write("a.md", b"12345")
    assert place.inbox.read("a.md", max_bytes=5) == b"12345"
    with pytest.raises(ItemError, match=r"a\.md is larger than 4 bytes"):
        place.inbox.read("a.md", max_bytes=4)


def test_a_file_that_is_gone_when_it_is_read_says_so(place: Place) -> None:
    with pytest.raises(FileNotFoundError):
        place.inbox.read("a.md", max_bytes=5)


@pytest.mark.parametrize("name", UNSUITABLE)
def test_what_cannot_be_a_drops_name_is_refused_everywhere(local: Place, name: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: local.inbox.read(name, max_bytes=1),
        lambda: local.inbox.put(name, b""),
        lambda: local.inbox.knows(name),
        lambda: local.inbox.accept(name, day=DAY),
        lambda: local.inbox.reject(name, reason="no"),
        lambda: local.inbox.reject_part(name, b"", reason="no"),
    ]
    for call in calls:
        with pytest.raises(ItemError):
            call()
    assert local.files == {}


def test_a_name_can_be_put_once_for_ever(place: Place) -> None:
    assert place.inbox.put("a.json", b"first")
    assert not place.inbox.put("a.json", b"second")
    assert place.files == {"a.json": b"first"}
    place.inbox.accept("a.json", day=DAY)
    assert not place.inbox.put("a.json", b"third")
    assert place.files == {"accepted/2024-05-01/a.json": b"first"}
    assert place.inbox.knows("a.json")
    assert not place.inbox.knows("b.json")


def test_of_many_that_put_one_name_at_once_one_wins(local: Place) -> None:
    with ThreadPoolExecutor(max_workers=16) as pool:
        won = list(pool.map(lambda n: local.inbox.put("a.json", b"%d" % n * 10_000), range(16)))
    assert won.count(True) == 1
    assert local.files == {"a.json": b"%d" % won.index(True) * 10_000}


def test_a_file_taken_while_its_double_is_put_stays_single(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    local.inbox.put("a.json", b"x")
    link = os.link

    def take_first(source: Path, target: Path) -> None:
        Inbox(local.url).accept("a.json", day=DAY)
        link(source, target)

    monkeypatch.setattr(os, "link", take_first)
    assert not local.inbox.put("a.json", b"x")
    assert local.files == {"accepted/2024-05-01/a.json": b"x"}


def test_what_was_put_is_on_disk_before_it_has_its_name(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(local.url).mkdir()
    steps: list[str] = []
    fsync, link = os.fsync, os.link

    def note_sync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "content")
        fsync(descriptor)

    def note_link(source: Path, target: Path) -> None:
        steps.append("name")
        link(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "link", note_link)
    assert local.inbox.put("a.json", b"x")
    assert steps == ["content", "name", "folder"]


def test_where_there_are_no_links_a_name_is_still_put_once(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert local.inbox.put("a.json", b"first")
    assert not local.inbox.put("a.json", b"second")
    assert local.files == {"a.json": b"first"}


def test_a_put_that_fails_leaves_nothing(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    Path(local.url).mkdir()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        local.inbox.put("a.json", b"x")
    assert list(Path(local.url).iterdir()) == []
