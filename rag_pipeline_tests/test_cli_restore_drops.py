"""`rag-pipeline restore-drops` as a user meets it: after the lake was lost, and where there is nothing to restore."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.test_cli import Shell

pytestmark = pytest.mark.slow


def drop(home: Path, name: str, text: str) -> None:
    path = home / "inbox" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    written = time.time() - 600
    os.utime(path, (written, written))


def test_a_lost_lake_is_restored_from_the_accepted_files(tmp_path: Path) -> None:
    with temporary_home() as home:
        (tmp_path / "rag_pipeline.toml").write_text("[quality]\nin_refresh = false\n")
        shell = Shell(tmp_path, home)
        drop(home, "note.md", "# A note\n\nThe lighthouse keeper has the key.\n")
        drop(home, "two.ndjson", '{"id": "x", "content": "One."}\n{"id": "y", "content": "Two.", "tenant": "globex"}\n')
        taken = shell("materialize", "--json")
        assert taken.returncode == 0, taken.stderr
        assert json.loads(taken.stdout)["drops"] == 2
        shutil.rmtree(home / "lake")
        (accepted,) = (home / "inbox" / "accepted").iterdir()
        (accepted / "bad.json").write_text("[" * 100_000)

        done = shell("restore-drops", "--tenant", "globex", "--json")
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert [(row["tenant"], row["items"]) for row in said["restored"]] == [("globex", 1)]
        assert [name for name, _ in said["unusable"]] == [f"{accepted.name}/bad.json"]

        done = shell("restore-drops")
        assert done.returncode == 0, done.stderr
        assert "bad.json was not taken" in done.stdout
        parts = sorted(path.parts[-3] for path in (home / "lake" / "raw_webhook_drops").rglob("*.parquet"))
        assert parts == ["default", "globex"]
        found = shell("search", "who has the key?", "--json")
        assert "lighthouse keeper" in found.stdout

        assert "there is no partition 2000-01-01" in shell.fails("restore-drops", "--from", "2000-01-01")
