"""The life of a source of the kind that docs/extending.md adds, for a process in which that kind is installed.

Run by `test_extending`, as `python -m rag_pipeline_tests.end_to_end.runbooks FOLDER DATABASE`.
"""

from __future__ import annotations

import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

from rag_pipeline.definitions import build_defs
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.settings import load_settings
from rag_pipeline_tests.end_to_end.installation import Installation


def live(folder: Path, database: str) -> None:
    """Everything that may happen to a runbook; raises AssertionError when it does not."""
    settings = load_settings(config_file=folder / "rag_pipeline.toml", environ={})
    more = {"sources": settings.sources, "config_file": settings.config_file}
    installation = Installation(folder / "home", database, [], start_date=settings.start_date, more=more)
    specs = {spec.key.to_user_string(): spec for spec in build_defs(installation.settings).resolve_all_asset_specs()}
    assert specs["raw_runbooks"].description.startswith("Runbooks: ")
    write(folder, "queue.md", "2024-01-10T10:00", "# The queue is stuck\n\nRestart the broker, then drain it.\n")
    write(folder, "old/disk.md", "2022-05-05T10:00", "# The disk is full\n\nRemove the oldest snapshots.\n")
    installation.refresh()
    assert set(installation.documents()) == {"on-call:old/disk.md", "on-call:queue.md"}
    (hit,) = installation.pipeline().search(
        SearchQuery(text="restart the broker", tenant="default", k=1, source_type="runbooks")
    )
    assert (hit.source_id, hit.title) == ("on-call:queue.md", "The queue is stuck")
    nothing_new_writes_nothing(installation)
    changes_arrive(installation, folder)
    what_cannot_be_read_waits(installation, folder)
    a_lost_folder_deletes_nothing(installation, folder)


def nothing_new_writes_nothing(installation: Installation) -> None:
    before, embedded = installation.rows(), len(installation.embedder.embedded)
    (pipeline,) = installation.refresh()
    assert installation.rows() == before
    assert len(installation.embedder.embedded) == embedded
    assert pipeline.reports["raw_runbooks"].written_parts == 0
    assert [str(days) for days in installation.planned()] == ["2024-01-31"]


def changes_arrive(installation: Installation, folder: Path) -> None:
    embedded = len(installation.embedder.embedded)
    write(folder, "queue.md", "2024-01-20T10:00", "# The queue is stuck\n\nCall the broker's vendor.\n")
    (folder / "runbooks" / "old" / "disk.md").unlink()
    installation.refresh()
    assert "vendor" in str(installation.documents()["on-call:queue.md"])
    assert set(installation.documents()) == {"on-call:queue.md"}
    assert len(installation.embedder.embedded) == embedded + 1
    # What is gone comes back as it was, with its old time.
    write(folder, "old/disk.md", "2022-05-05T10:00", "# The disk is full\n\nRemove the oldest snapshots.\n")
    installation.refresh()
    assert set(installation.documents()) == {"on-call:old/disk.md", "on-call:queue.md"}
    nothing_new_writes_nothing(installation)


def what_cannot_be_read_waits(installation: Installation, folder: Path) -> None:
    write(folder, "broken.md", "2024-01-22T10:00", "# Bro\0ken\n")
    write(folder, "beside.md", "2024-01-22T11:00", "# Beside\n\nIs fine.\n")
    installation.refresh()
    assert "on-call:beside.md" in installation.documents()
    assert "on-call:broken.md" not in installation.documents()
    ((stage, source_id, reason),) = installation.failures()
    assert (stage, source_id) == ("raw_runbooks", "on-call:broken.md")
    assert "is not text: remove it, or save it as Markdown" in reason
    write(folder, "broken.md", "2024-01-22T10:30", "# Mended\n\nIs fine, too.\n")
    installation.refresh()
    assert "on-call:broken.md" in installation.documents()
    assert installation.failures() == []
    nothing_new_writes_nothing(installation)


def a_lost_folder_deletes_nothing(installation: Installation, folder: Path) -> None:
    before = installation.documents()
    shutil.move(folder / "runbooks", folder / "elsewhere")
    installation.drop("note.md", "# Note\n\nDropped while the folder was gone.\n")
    todo = installation.plan()
    (days,) = todo.ranges
    result, pipeline = installation.try_run(days.first, days.last, planned=todo)
    assert not result.success
    (reason,) = pipeline.left_out
    assert "does not exist: correct `folder` of the source 'on-call'" in reason
    assert [failure[:2] for failure in installation.failures()] == [("raw_runbooks", "on-call")]
    # The drop was taken all the same.
    assert set(installation.documents()) == {*before, "note.md"}
    before = installation.documents()
    shutil.move(folder / "elsewhere", folder / "runbooks")
    installation.refresh()
    assert (installation.documents(), installation.failures()) == (before, [])


def write(folder: Path, name: str, changed: str, text: str) -> None:
    """A runbook that was last changed at this time (UTC)."""
    path = folder / "runbooks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    moment = datetime.fromisoformat(changed).replace(tzinfo=UTC).timestamp()
    os.utime(path, (moment, moment))


if __name__ == "__main__":
    live(Path(sys.argv[1]), sys.argv[2])
