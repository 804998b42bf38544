"""A day on which very many files change: what it needs in memory, against one with a quarter of them."""

from __future__ import annotations

import json
import random
import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from rag_pipeline.index.migrations import migrate
from rag_pipeline_tests.bench.git_import import commit_files, new_repository
from rag_pipeline_tests.bench.place import Place
from rag_pipeline_tests.bench.process import Finished
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.embedded.servers import temporary_postgres

_SECTION: Final = "a day of many files"
FILES: Final = (5_000, 20_000)
"""The smaller fills what has a size of its own, as batches, buffers and the counter's words do: 2,000 files do not."""
_BYTES_A_FILE: Final = 2_000
"""What a file may leave in memory: its path and object, and the hashes of its 25 chunks; less than half of its text."""
_PARAGRAPHS: Final = 28


def bench_large_day(
    repository: str, report: Report, *, start_date: date | None = None, files: tuple[int, int] = FILES
) -> None:
    """All stages over one commit of so many files, each in a process of its own; the repository is of no matter."""
    del repository, start_date
    few, many = files
    peaks = {}
    for count in files:
        with tempfile.TemporaryDirectory(prefix="rag-bench-") as folder, temporary_postgres() as server:
            migrate(server.url("postgres"))
            finished, size = _run(Path(folder), count, server.url("postgres"))
        done = json.loads(finished.stdout)
        peaks[count] = finished.peak_mb
        name = f"{count:,} files"
        report.figure(_SECTION, f"{name}: peak memory", finished.peak_mb, "MB", note=f"{size / 1e6:.0f} MB of text")
        for stage, seconds in done["seconds"].items():
            report.figure(_SECTION, f"{name}: {stage}", seconds, "s")
        report.check(_SECTION, f"{name}: all are indexed", done["rows_written"] > count and not done["failures"])
    grown, allowed = peaks[many] - peaks[few], (many - few) * _BYTES_A_FILE / 1e6
    detail = f"{grown:.1f} MB more for {many - few:,} files more; {_BYTES_A_FILE:,} bytes a file are {allowed:.1f} MB"
    report.check(_SECTION, "memory does not grow with what the files hold", grown <= allowed, detail)
    report.show(_SECTION)


def _run(folder: Path, count: int, database: str) -> tuple[Finished, int]:
    today = datetime.now(UTC).date()
    place = Place(folder=folder, start_date=today - timedelta(days=1))
    new_repository(place.clone)
    files = {_path(n): text_of(n) for n in range(count)}
    commit_files(place.clone, [(datetime.now(UTC) - timedelta(minutes=1), files)], is_empty=True)
    size = sum(map(len, files.values()))
    del files
    place.configure()
    finished = place.python(
        "-m", "rag_pipeline_tests.bench.stages", str(folder), database, place.start_date.isoformat(), today.isoformat()
    )  # fmt: skip
    return finished, size


def _path(number: int) -> str:
    folder = f"{number // 200:03}"
    return f"docs/{folder}/page{number}.md" if number % 2 else f"src/{folder}/part{number}.py"


def text_of(number: int) -> str:
    """About four and a half kilobytes that no other number has; for Markdown and for Python."""
    rng = random.Random(number)
    words = ["".join(rng.choices("abcdefghilmnoprstuv", k=rng.randint(2, 9))) for _ in range(60)]
    paragraphs = []
    for part in range(_PARAGRAPHS):
        said = " ".join(rng.choices(words, k=22))
        code = f'def part_{number}_{part}():\n    """{said}."""'
        paragraphs.append(f"## Part {part}\n\n{said}." if number % 2 else code)
    return "\n\n".join(paragraphs) + "\n"
