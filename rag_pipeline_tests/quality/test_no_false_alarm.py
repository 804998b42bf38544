"""Every suite over what the stages make of this very repository: nothing fails, so nothing cries wolf."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rag_pipeline.chunking.stage import chunk_documents
from rag_pipeline.documents.stage import clean_items
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange
from rag_pipeline.progress import silent
from rag_pipeline.quality import check_parts
from rag_pipeline.quality.suites import RAW_STAGES, part_suites
from rag_pipeline.refresh import chunking_rules
from rag_pipeline.settings import Settings
from rag_pipeline.sources.git.stage import read_git

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
@pytest.mark.parametrize("context", ["none", "headings"])
def test_the_suites_have_nothing_to_say_of_this_repository(tmp_path, context):
    subprocess.run(["git", "clone", "-q", "--bare", str(ROOT), str(tmp_path / "own.git")], check=True)
    last = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    now = datetime.fromtimestamp(int(last.stdout), UTC) + timedelta(hours=1)
    days = DayRange(first=now.date() - timedelta(days=3), last=now.date())
    settings = Settings.model_validate({
        "repositories": [{"source": str(tmp_path / "own.git"), "name": "own", "tenant": "default"}],
        "home": tmp_path / "home", "start_date": days.first, "embedding": {"context": context},
    })  # fmt: skip
    lake = Lake(settings.lake_url)
    read_git(settings, lake, days, now=now, progress=silent)
    clean_items(
        lake, days, inputs=RAW_STAGES, threads=settings.threads, redaction=settings.redaction,
        limits=settings.documents, progress=silent,
    )  # fmt: skip
    chunk_documents(lake, days, rules=chunking_rules(settings), limits=settings.documents, progress=silent)
    rows = {}
    for stage, suite in part_suites(settings).items():
        checked = check_parts(lake, days, suite, known={}, progress=silent)
        failed = [(f.rule.name, f.observed, f.sample[:2]) for f in checked.outcome.failed]
        assert failed == [], stage
        rows[stage] = checked.outcome.rows
    assert rows["documents"] > 300
    assert rows["chunks"] > 1000
