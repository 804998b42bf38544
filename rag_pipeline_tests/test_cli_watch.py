"""What a person sees of a run: lines in time, times that add up, and what is left after the quota has ended."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from rag_pipeline.cli import console, runs
from rag_pipeline.cli.console import Watch
from rag_pipeline.cli.runs import Summary, print_summary, require_all_read
from rag_pipeline.errors import SourceNotFound
from rag_pipeline.model import Failure
from rag_pipeline.sources.github.client import QUOTA_REACHED
from rag_pipeline.sources.github.stage import GitHubReport


def failure(reason: str) -> Failure:
    return Failure(
        tenant="acme", source_type="repository", source_id="app", stage="raw_github", repository="app",
        day=date(2024, 5, 1), source_updated_at=datetime(2024, 5, 1, tzinfo=UTC), reason=reason,
    )  # fmt: skip


def test_a_run_that_the_quota_ended_ends_well_and_says_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    summary = Summary()
    runs._add_threads(summary, GitHubReport(failures=[failure(f"{QUOTA_REACHED} until 2024-05-01 13:00 UTC")]))
    print_summary(summary)
    require_all_read(summary)
    assert "left to the next run" in (shown := capsys.readouterr().out) and "until 2024-05-01 13:00 UTC" in shown
    runs._add_threads(summary, GitHubReport(failures=[failure("the token is refused")]))
    with pytest.raises(SourceNotFound, match="refused"):
        require_all_read(summary)


def test_the_times_of_a_run_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(Summary(seconds={"raw": 1.5, "chunks": 0.5}, planning_seconds=3.0, total_seconds=6.25))
    shown = capsys.readouterr().out
    assert "before the runs 3.00, stages 2.00, Dagster and the rest 1.25; in all 6.25" in shown


def test_a_long_silence_is_broken(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    watch, answers = Watch(), [False, False, True]
    monkeypatch.setattr(console, "_SILENT_AT_MOST_S", 0.0)
    monkeypatch.setattr(watch._ended, "wait", lambda _: answers.pop(0))
    watch._break_silence()
    assert capsys.readouterr().err.count("still at work: starting") == 2


def test_a_wait_is_told_before_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    watch = Watch()
    watch("asking GitHub: waiting for its rate limit", done=0, total=60, unit="seconds")
    assert "waiting for its rate limit: 0 of 60 seconds" in capsys.readouterr().err
