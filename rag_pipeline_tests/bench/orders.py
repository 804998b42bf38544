"""Any order of days gives the same index: a real history in several orders, compared row by row.

The stages are called directly, with an instant embedder, so that hundreds of runs take minutes.
The files of HEAD as a repository of one commit are the independent measure of what the index must show.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.database import connected, ensure_database
from rag_pipeline.index.migrations import migrate
from rag_pipeline.model import DayRange
from rag_pipeline.settings import Settings
from rag_pipeline.sources.git.mirror import mirror_of
from rag_pipeline.sources.git.timeline import read_timeline
from rag_pipeline_tests.bench.place import NAME, Place, place_for
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.stages import run_stages

_SECTION = "orders"
_FLAT = "bench-flat"
_ONE_COMMIT = "files of HEAD as one commit"
_TABLES = {
    "documents": (
        "SELECT source_id, title, url, content_hash::text, language, metadata::text, source_updated_at"
        " FROM rag.documents WHERE NOT deleted ORDER BY source_type, source_id"
    ),
    "chunks": (
        "SELECT source_id, position, text, text_hash::text, heading_path, start_line, end_line, tokens"
        " FROM rag.chunks JOIN rag.documents USING (document_id) ORDER BY source_type, source_id, position"
    ),
    # Without what only a history can tell.
    "files": (
        "SELECT source_id, title, content_hash::text, language FROM rag.documents WHERE NOT deleted"
        " ORDER BY source_type, source_id"
    ),
    "tombstones": "SELECT source_id FROM rag.documents WHERE deleted ORDER BY source_type, source_id",
}


def bench_orders(repository: str, report: Report, *, start_date: date | None) -> None:
    """The index after a single run, in reverse and in random order, against a snapshot of HEAD."""
    with place_for(repository, start_date=start_date) as place:
        server = EmbeddedPostgres(place.home, durable=False)
        server.start()
        today = datetime.now(UTC).date()
        days = _days(place, today)
        report.figure(_SECTION, "days", len(days), "", note="with commits, and a few without")
        history = [DayRange(first=place.start_date, last=today)]
        singles = [DayRange(first=day, last=day) for day in days]
        shuffled = random.Random(20260406).sample([*singles, *singles], k=2 * len(singles))
        orders = {
            "snapshot of HEAD": (today, [DayRange(first=today, last=today)]),
            "single run over the history": (place.start_date, history),
            "days in reverse order": (place.start_date, singles[::-1]),
            "days in random order, each twice": (place.start_date, shuffled),
        }
        found = {}
        for number, (name, (first_day, ranges)) in enumerate(orders.items()):
            settings = _settings(place, first_day, home=place.folder / f"home-{number}")
            found[name] = _run(settings, ranges, name=name, url=_database(server, number), report=report)
        place.git("branch", _FLAT, place.git("commit-tree", "HEAD^{tree}", "-m", "All at once"))
        settings = _settings(place, today, home=place.folder / "home-flat", branch=_FLAT)
        ranges = [DayRange(first=today, last=today)]
        flat = _run(settings, ranges, name=_ONE_COMMIT, url=_database(server, len(orders)), report=report)
        _compare(found, flat, report)
        report.show(_SECTION)


def _days(place: Place, today: date) -> list[date]:
    """The days on which something changed, and every hundredth day after one of them on which nothing did."""
    settings = _settings(place, place.start_date, home=place.folder / "home-days")
    mirror = mirror_of(settings.repositories[0], home=settings.home)
    mirror.fetch(now=datetime.now(UTC))
    busy = {
        max(step.at.date(), place.start_date) for step in read_timeline(mirror, now=datetime.now(UTC)).steps
    } | {place.start_date}  # fmt: skip
    quiet = {day + timedelta(days=1) for day in sorted(busy)[::100]} - busy
    return sorted(day for day in busy | quiet if day <= today)


def _settings(place: Place, start_date: date, *, home: Path, branch: str = "") -> Settings:
    return Settings.model_validate({
        "repositories": [{"source": str(place.clone), "name": NAME, "tenant": "default", "branch": branch}],
        "start_date": start_date, "home": home,
    })  # fmt: skip


def _database(server: EmbeddedPostgres, number: int) -> str:
    name = f"orders_{number}"
    ensure_database(server.url(), database=name)
    migrate(server.url(name))
    return server.url(name)


def _run(
    settings: Settings, ranges: Sequence[DayRange], *, name: str, url: str, report: Report
) -> dict[str, list[tuple[Any, ...]]]:
    started = time.perf_counter()
    failures = 0
    with connected(url) as connection:
        for days in ranges:
            failures += run_stages(settings, days, connection=connection).failures
        seconds = time.perf_counter() - started
        found = {table: connection.execute(query.encode()).fetchall() for table, query in _TABLES.items()}
    rows = f"{len(found['documents']):,} documents, {len(found['chunks']):,} chunks"
    report.figure(_SECTION, name, seconds, "s", note=f"{rows}, {len(found['tombstones']):,} tombstones")
    report.check(_SECTION, f"{name}: nothing failed", failures == 0)
    return found


def _compare(
    found: dict[str, dict[str, list[tuple[Any, ...]]]], flat: dict[str, list[tuple[Any, ...]]], report: Report
) -> None:
    (snapshot, expected), *others = found.items()
    for table in ("files", "chunks"):
        detail = _first_differences(flat[table], expected[table])
        report.check(_SECTION, f"{snapshot}: {table} equal to the {_ONE_COMMIT}", not detail, detail)
    for name, index in others:
        for table in ("documents", "chunks", "tombstones"):
            detail = _first_differences(expected[table], index[table])
            report.check(_SECTION, f"{name}: {table} equal to the {snapshot}", not detail, detail)


def _first_differences(expected: list[tuple[Any, ...]], got: list[tuple[Any, ...]], *, limit: int = 5) -> str:
    lines = []
    missing = {repr(row): row for row in expected}
    extra = {repr(row): row for row in got}
    for sign, one, other in (("-", missing, extra), ("+", extra, missing)):
        rows = [text for text in one if text not in other]
        lines += [f"        {sign} {text[:400]}" for text in rows[:limit]]
        lines += [f"        {sign} … {len(rows) - limit:,} more"] if len(rows) > limit else []
    return "\n".join(lines)
