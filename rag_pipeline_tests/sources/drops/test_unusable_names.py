"""Files whose names cannot be taken do not wait for ever: they are rejected under another name, with a reason."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rag_pipeline.cli.status import print_status, status_report
from rag_pipeline.refresh.drops import waiting_drops
from rag_pipeline.sources.drops.peek import peek
from rag_pipeline_tests.sources.drops.places import Place
from rag_pipeline_tests.sources.drops.taking import Taking

NAMES = ["line\nbreak.md", "tab\there.json", "back\\slash.txt", "\x7f", "c1\x85.md", "\x1b[31mred.md", "bell\x07.exe"]


@pytest.mark.parametrize("name", [*NAMES, "x" * 300 + ".md", "é" * 200])
def test_such_a_file_is_rejected_under_a_name_of_its_own(place: Place, name: str) -> None:
    if len(name) > 100 and "://" not in place.url:
        pytest.skip("a file system holds no such names")
    place.write(name, b"words")
    place.write("good.md", b"words")
    for hidden in (".hid\nden.md", "unfinished\n.tmp"):
        place.write(hidden)
    now = datetime.now(UTC) + timedelta(seconds=5)
    (file,) = place.inbox.unusable(now=now, settle_s=0)
    assert place.inbox.unusable(now=now, settle_s=60) == []
    reason = place.inbox.reject_unusable(file)
    assert place.inbox.unusable(now=now, settle_s=0) == []
    assert place.waiting() == ["good.md"]
    kept = [path for path in place.files if path.startswith("rejected/") and not path.endswith(".reason.txt")]
    assert [place.files[path] for path in kept] == [b"words"]
    assert place.files[f"{kept[0]}.reason.txt"].decode().strip() == reason
    assert ascii(name)[1:60] in reason
    assert "\n" not in reason


def test_names_that_look_alike_do_not_replace_each_other(local: Place) -> None:
    for name in ("a\nb.md", "a\tb.md", "a_b.md"):
        local.write(name, name.encode())
    now = datetime.now(UTC) + timedelta(seconds=5)
    for _ in range(2):
        for file in local.inbox.unusable(now=now, settle_s=0):
            local.inbox.reject_unusable(file)
        local.write("a\nb.md", b"another")
    kept = {content for path, content in local.files.items() if path.endswith(".md") and path.startswith("rejected/")}
    assert kept == {b"a\nb.md", b"a\tb.md", b"another"}


def test_a_run_rejects_them_and_the_sensor_and_the_plan_see_them(tmp_path: Path) -> None:
    taking = Taking(tmp_path)
    for name in ("line\nbreak.md", os.fsdecode(b"\xff.md")):
        taking.drop(name, "words")
    batch = peek(taking.settings, now=taking.now)
    assert (len(batch.ids), batch.waiting, bool(batch.key)) == (2, 2, True)
    assert waiting_drops(taking.settings, now=taking.now) == 2
    report = taking.take()
    assert sorted(name for name, _ in report.rejected) == ["\\udcff.md", "line\\nbreak.md"]
    assert (report.left, taking.items()) == (0, [])
    assert peek(taking.settings, now=taking.now).ids == []
    taking.drop("good.md", "words")
    assert taking.take().taken == 1


def test_the_status_says_what_in_the_inbox_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taking = Taking(tmp_path)
    taking.drop("good.md", "words")
    taking.take()
    inbox = Path(taking.settings.inbox_url)
    (inbox / "folder").mkdir()
    (inbox / ".hidden").mkdir()
    (inbox / "link.md").symlink_to(inbox / "folder")
    os.mkfifo(inbox / "pipe.md")
    report = status_report(taking.settings)
    assert report["ignored_in_inbox"] == ["folder", "link.md", "pipe.md"]
    print_status(report)
    assert "folder, link.md, pipe.md" in capsys.readouterr().out
