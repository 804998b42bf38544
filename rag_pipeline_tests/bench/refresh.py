"""What a refresh costs: cold, with nothing new, after a small commit, and in memory as the history grows."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import psycopg

from rag_pipeline.index.database import ensure_database
from rag_pipeline.index.migrations import migrate
from rag_pipeline.lake.derive import parts_in
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange
from rag_pipeline.refresh import RAW_STAGES
from rag_pipeline_tests.bench.place import Place, place_for
from rag_pipeline_tests.bench.process import Finished
from rag_pipeline_tests.bench.report import Report

_WORD = re.compile(r"(?<![\w/.<`:*_-])[a-z]{5,12}(?![\w/.>`:*_-])")
_REFERENCE_TEXTS = 150
_MEMORY_MB = 1500
# Allocators and page sizes make two runs of the same work differ by some megabytes.
_MEMORY_GROWTH = 1.15


def bench_refresh(repository: str, report: Report, *, start_date: date | None) -> None:
    """All measurements of a refresh, on a clone of the repository."""
    with place_for(repository, start_date=start_date) as place:
        started = time.perf_counter()
        place.cli("migrate")
        report.figure("set-up", "database: create, start, migrate", time.perf_counter() - started, "s")
        dagster_s = place.python("-c", "import dagster").wall_s
        report.figure("set-up", "python -c 'import dagster'", dagster_s, "s", note="reference")
        report.show("set-up")
        _cold(place, report)
        _nothing_new(place, report, dagster_s=dagster_s)
        _small_commit(place, report)
        _memory(place, report)


def _cold(place: Place, report: Report) -> None:
    section = "cold backfill"
    finished, summary = place.materialize("--from", place.start_date.isoformat())
    corpus = _corpus(place)
    stages_s = sum(summary["seconds"].values())
    model_s = summary["model_seconds"]

    def add(name: str, value: float, unit: str, **more: Any) -> None:
        report.figure(section, name, value, unit, **more)

    add("partitions", (datetime.now(UTC).date() - place.start_date).days + 1, "days")
    add("wall", finished.wall_s, "s")
    add("model", model_s, "s", note="forward passes")
    add("overhead", 100 * (finished.wall_s - model_s) / finished.wall_s, "%", at_most=15, note="(wall - model) / wall")
    add("start and imports", finished.wall_s - summary["total_seconds"], "s")
    add("Dagster's run and events", summary["total_seconds"] - stages_s, "s", note="run without its stages")
    for stage, seconds in summary["seconds"].items():
        note = f"without the model {seconds - model_s:.2f} s" if stage == "embeddings" else ""
        add(f"stage {stage}", seconds, "s", note=note)
    add("peak memory", finished.peak_mb, "MB", at_most=_MEMORY_MB)
    _throughput(report, section, summary, corpus)
    _reference(place, report, section, finished, summary, corpus)
    events, kilobytes = _dagster_events(place)
    add("Dagster's event rows", events, "", note=f"{kilobytes:,.0f} kB")
    report.check(section, "nothing is quarantined", summary["quarantined"] == 0)
    report.show(section)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Corpus:
    items: int
    """Files and tombstones of the raw parts."""
    megabytes: float
    chunks: int
    tokens: int


def _throughput(report: Report, section: str, summary: dict[str, Any], corpus: _Corpus) -> None:
    seconds = summary["seconds"]
    for name, stage, amount, unit in (
        ("raw", "raw", corpus.items, "items"),
        ("raw", "raw", corpus.megabytes, "MB"),
        ("documents", "documents", corpus.megabytes, "MB"),
        ("chunks", "chunks", corpus.megabytes, "MB"),
        ("chunks", "chunks", corpus.chunks, "chunks"),
        ("embeddings", "embeddings", summary["embedded"], "texts"),
        ("embeddings", "embeddings", corpus.tokens, "tokens"),
        ("knowledge_index", "knowledge_index", summary["rows_written"], "rows"),
    ):
        note = f"{amount:,.1f} {unit}" if unit == "MB" else f"{amount:,} {unit}"
        report.figure(section, f"throughput {name}", amount / max(seconds[stage], 1e-6), f"{unit}/s", note=note)


def _reference(
    place: Place, report: Report, section: str, finished: Finished, summary: dict[str, Any], corpus: _Corpus
) -> None:
    """The same texts through the model with nothing beside it."""
    command = ("-m", "rag_pipeline_tests.bench.model_reference", place.server.url(), str(_REFERENCE_TEXTS))
    alone = min((json.loads(place.python(*command).stdout) for _ in range(3)), key=lambda found: found["seconds"])
    rate = alone["tokens"] / alone["seconds"]
    # The model reads [CLS] and [SEP] with each text; the chunks' own count has neither.
    wanted_s = (corpus.tokens + 2 * summary["embedded"]) / rate
    note = f"reference, {alone['texts']} of the texts, best of 3"
    report.figure(section, "model alone", rate, "tokens/s", note=note)
    report.figure(section, "all texts at that rate", wanted_s, "s", note="reference")
    share = 100 * (finished.wall_s - wanted_s) / finished.wall_s
    report.figure(section, "overhead against that", share, "%", note="(wall - all texts at that rate) / wall")


def _nothing_new(place: Place, report: Report, *, dagster_s: float) -> None:
    section = "nothing new"
    before = _index(place)
    finished, summary = place.materialize()
    report.figure(section, "wall", finished.wall_s, "s", at_most=15, note=f"{finished.wall_s / dagster_s:.1f} × import")
    report.figure(section, "own work: all stages", sum(summary["seconds"].values()), "s", at_most=0.3)
    report.figure(section, "rows written", summary["rows_written"], "", at_most=0)
    report.figure(section, "embedded", summary["embedded"], "", at_most=0)
    report.figure(section, "peak memory", finished.peak_mb, "MB")
    phases = json.loads(place.python("-m", "rag_pipeline_tests.bench.phases").stdout)
    for phase, seconds in phases.items():
        report.figure(section, f"  {phase}", seconds, "s", note="in a second such refresh")
    report.check(section, "no row written, no text embedded", summary["rows_written"] + summary["embedded"] == 0)
    report.check(section, "the index is the same", _index(place) == before)
    report.show(section)


def _small_commit(place: Place, report: Report) -> None:
    section = "one word, one rename, one deletion"
    before = _index(place)
    edited, renamed, deleted = _commit_changes(place)
    finished, summary = place.materialize()
    after = _index(place)
    moved = f"{renamed.rpartition('.')[0]}_moved.{renamed.rpartition('.')[2]}"
    expected = {edited, renamed, moved, deleted}
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    report.figure(section, "wall", finished.wall_s, "s", at_most=15)
    report.figure(section, "own work: all stages", sum(summary["seconds"].values()), "s")
    report.figure(section, "embedded", summary["embedded"], "texts", at_most=3)
    report.figure(section, "rows written", summary["rows_written"], "rows")
    report.check(
        section, "exactly these documents changed", changed == expected,
        f"        {', '.join(sorted(changed ^ expected)[:10])}" if changed != expected else "",
    )  # fmt: skip
    report.check(section, "at most 3 texts embedded", summary["embedded"] <= 3)
    gone = all(after[path][0] for path in (renamed, deleted))
    same = before[renamed][2] == after[moved][2]
    report.check(section, "what was renamed has its chunks, what is gone has none", gone and same)
    report.show(section)


def _commit_changes(place: Place) -> tuple[str, str, str]:
    """Edit a word of one prose file, rename a second file and delete a third; their paths."""
    with psycopg.connect(place.server.url()) as connection:
        rows = connection.execute(
            "SELECT path, language, count(*) FROM rag.documents JOIN rag.chunks USING (document_id)"
            " WHERE NOT deleted GROUP BY path, language ORDER BY count(*) DESC, path"
        ).fetchall()
    edited, line, lines = next(
        (path, places[len(places) // 2], lines)
        for path, _, _ in rows
        if path.endswith((".md", ".rst"))
        and (lines := (place.clone / path).read_text(encoding="utf-8").splitlines(keepends=True))
        and (places := [number for number, text in enumerate(lines) if _is_prose(text)])
    )
    lines[line] = _WORD.sub("zebra", lines[line], count=1)
    (place.clone / edited).write_text("".join(lines), encoding="utf-8")
    others = [path for path, _, _ in rows if path != edited and "." in path.rpartition("/")[2]]
    renamed, deleted = others[0], others[len(others) // 2]
    stem, _, suffix = renamed.rpartition(".")
    place.git("mv", renamed, f"{stem}_moved.{suffix}")
    place.git("rm", "--quiet", deleted)
    place.git("commit", "--quiet", "--all", "--message", "One word, one rename, one deletion")
    return edited, renamed, deleted


def _is_prose(line: str) -> bool:
    return len(line) > 40 and line.strip()[0].isalpha() and _WORD.search(line) is not None


def _memory(place: Place, report: Report) -> None:
    """The stages alone, with an instant model: the whole history against one commit with the same files."""
    section = "memory and history"
    today = datetime.now(UTC).date()
    commits = int(place.git("rev-list", "--count", "--first-parent", "HEAD"))
    whole = _stages_alone(place, f"{commits:,} commits", place.start_date, report, section)
    flat = place.git("commit-tree", "HEAD^{tree}", "-m", "All at once")
    place.git("reset", "--quiet", "--hard", flat)
    with _away(place):
        single = _stages_alone(place.starting(today), "one commit", today, report, section)
    growth = whole.peak_mb / single.peak_mb
    report.figure(section, "growth", growth, "×", at_most=_MEMORY_GROWTH)
    report.show(section)


def _stages_alone(place: Place, what: str, first: date, report: Report, section: str) -> Finished:
    database = f"memory_{len(report.figures)}"
    lake = place.home / "lake"
    lake.rename(place.home / database) if lake.exists() else None
    url = _new_database(place, database)
    last = datetime.now(UTC).date().isoformat()
    finished = place.python(
        "-m", "rag_pipeline_tests.bench.stages", str(place.folder), url, first.isoformat(), last,
    )  # fmt: skip
    seconds = sum(json.loads(finished.stdout)["seconds"].values())
    note = "stages without Dagster, instant model"
    report.figure(section, f"peak memory, {what}", finished.peak_mb, "MB", at_most=_MEMORY_MB, note=note)
    report.figure(section, f"stages, {what}", seconds, "s", note=note)
    return finished


@contextmanager
def _away(place: Place) -> Iterator[None]:
    """Without the mirror, which would see the new history as a force-push of the old one."""
    mirrors = place.home / "mirrors"
    mirrors.rename(place.home / "mirrors-before")
    yield


def _new_database(place: Place, name: str) -> str:
    ensure_database(place.server.url(), database=name)
    migrate(place.server.url(name))
    return place.server.url(name)


def _index(place: Place) -> dict[str, tuple[bool, str, list[str]]]:
    """Per path: whether it is deleted, its state, and its chunks' text hashes in order."""
    with psycopg.connect(place.server.url()) as connection:
        rows = connection.execute(
            "SELECT path, deleted, state_hash::text, array_agg(text_hash::text ORDER BY position)"
            " FROM rag.documents LEFT JOIN rag.chunks USING (document_id) GROUP BY document_id"
        ).fetchall()
    return {path: (deleted, state, hashes) for path, deleted, state, hashes in rows}


def _corpus(place: Place) -> _Corpus:
    with psycopg.connect(place.server.url()) as connection:
        row = connection.execute(
            "SELECT count(*), (SELECT sum(tokens) FROM (SELECT DISTINCT text_hash, tokens FROM rag.chunks) t)"
            " FROM rag.chunks"
        ).fetchone()
    assert row is not None
    lake = Lake(place.settings().lake_url)
    items, size = 0, 0
    days = DayRange(first=date.min, last=date.max)
    for stage in RAW_STAGES:
        for part in parts_in(lake, [stage], days):
            for batch in lake.read(stage, part, columns=["content"]):
                items += batch.num_rows
                size += batch.nbytes
    return _Corpus(items=items, megabytes=size / 1e6, chunks=row[0], tokens=int(row[1] or 0))


def _dagster_events(place: Place) -> tuple[int, float]:
    with psycopg.connect(place.server.url("dagster")) as connection:
        row = connection.execute("SELECT count(*), pg_total_relation_size('event_logs') FROM event_logs").fetchone()
    assert row is not None
    return row[0], row[1] / 1000
