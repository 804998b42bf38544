"""The code location as Dagster's own tools load it, in processes of their own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DG = "from dagster_dg_cli.cli import main; main()"
needs_dg = pytest.mark.skipif(
    importlib.util.find_spec("dagster_dg_cli") is None, reason="dg is not installed: pip install dagster-dg-cli"
)
pytestmark = pytest.mark.slow


def run(*command: str, folder: Path, config: str) -> subprocess.CompletedProcess[str]:
    """A Python process at the top of this checkout, with a Dagster instance and a configuration of its own."""
    (folder / "rag_pipeline.toml").write_text(config, encoding="utf-8")
    environ = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]), "HOME": str(folder),
        "DAGSTER_HOME": str(folder), "RAG_HOME": str(folder / "home"), "RAG_CONFIG": str(folder / "rag_pipeline.toml"),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )


def test_a_changed_file_is_seen_by_a_fresh_load_and_a_wrong_one_says_its_key(tmp_path):
    validate = ("-m", "dagster", "definitions", "validate", "-m", "rag_pipeline.definitions")
    done = run(*validate, folder=tmp_path, config="[[repositories]]\nsource = 'a/b'\n")
    assert done.returncode == 0, done.stderr
    done = run(*validate, folder=tmp_path, config="[[repositories]]\nsuorce = 'a/b'\n")
    assert done.returncode != 0
    assert "unknown key 'repositories.0.suorce': did you mean 'source'?" in done.stdout + done.stderr


@needs_dg
def test_dg_lists_and_checks_the_definitions(tmp_path):
    config = "[[repositories]]\nsource = 'a/b'\n"
    listed = run("-c", DG, "list", "defs", "--json", folder=tmp_path, config=config)
    assert listed.returncode == 0, listed.stderr
    assert {"raw_docs", "documents", "knowledge_index"} <= {
        asset["asset_key"] for asset in json.loads(listed.stdout[listed.stdout.index("{") :])["assets"]
    }
    checked = run("-c", DG, "check", "defs", folder=tmp_path, config=config)
    assert checked.returncode == 0, checked.stderr
    assert run("-c", DG, "check", "toml", folder=tmp_path, config=config).returncode == 0
