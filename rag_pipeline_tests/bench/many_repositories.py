"""Fifty repositories in one partition: read one after the other, and beside each other."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from rag_pipeline.lake.derive import fingerprints_of
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange
from rag_pipeline.progress import silent
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.settings.pools import Pools
from rag_pipeline.sources.git.stage import STAGES, read_git
from rag_pipeline_tests.bench.git_import import commit_files, new_repository
from rag_pipeline_tests.bench.large_day import text_of
from rag_pipeline_tests.bench.process import CommandFailed
from rag_pipeline_tests.bench.report import Report

_SECTION: Final = "fifty repositories"
_COUNT: Final = 50
_FILES: Final = 20
_AT_ONCE: Final = (1, 2, 4, 8)
_AWAY_S: Final = 0.5
"""How long a server far away takes to answer a fetch."""


def bench_repositories(repository: str, report: Report, *, start_date: date | None = None) -> None:
    """The raw stage over fifty small repositories; the one that is given is of no matter."""
    del repository, start_date
    with tempfile.TemporaryDirectory(prefix="rag-bench-") as folder:
        sources = [_source(Path(folder) / f"project-{number}", number) for number in range(_COUNT)]
        far = [f"bench@far:{source}" for source in sources]
        with _shell_far_away(Path(folder) / "ssh"):
            for label, addresses in (("on this machine", list(map(str, sources))), (f"{_AWAY_S:g} s away", far)):
                held = {}
                for most in _AT_ONCE:
                    home = Path(folder) / f"home-{len(label)}-{most}"
                    seconds, held[most] = _read(home, addresses, most)
                    report.figure(_SECTION, f"{label}: {most} at once", seconds, "s")
                same = all(found == held[1] and len(found) == _COUNT * len(STAGES) for found in held.values())
                report.check(_SECTION, f"{label}: all give what one after the other gives", same)
    report.show(_SECTION)


@contextmanager
def _shell_far_away(program: Path) -> Iterator[None]:
    """Fetches over ssh reach this machine, after a while."""
    program.write_text(f'#!/bin/sh\nsleep {_AWAY_S}\nshift\nexec sh -c "$*"\n', encoding="utf-8")
    program.chmod(0o755)
    before = {name: os.environ.get(name) for name in ("GIT_SSH", "GIT_SSH_VARIANT")}
    os.environ |= {"GIT_SSH": str(program), "GIT_SSH_VARIANT": "simple"}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _source(folder: Path, number: int) -> Path:
    new_repository(folder)
    files = {f"{n}.md" if n % 2 else f"{n}.py": text_of(number * _FILES + n) for n in range(_FILES)}
    commit_files(folder, [(datetime.now(UTC) - timedelta(minutes=1), files)], is_empty=True)
    return folder


def _read(home: Path, sources: Sequence[str], most: int) -> tuple[float, dict[object, str]]:
    """Seconds of a first reading, and what the lake holds afterwards."""
    today = datetime.now(UTC).date()
    settings = Settings(
        home=home, start_date=today - timedelta(days=1), pools=Pools(git=most),
        repositories=tuple(
            Repository(source=source, name=source.rpartition("/")[2], tenant="bench") for source in sources
        ),
    )  # fmt: skip
    lake, days = Lake(settings.lake_url), DayRange(first=today - timedelta(days=1), last=today)
    started = time.perf_counter()
    report = read_git(settings, lake, days, now=datetime.now(UTC), progress=silent)
    seconds = time.perf_counter() - started
    if report.failures:
        raise CommandFailed(report.failures[0].reason)
    return seconds, {
        (stage, part): found for stage in STAGES.values() for part, found in fingerprints_of(lake, stage, days).items()
    }
