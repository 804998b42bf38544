"""How the costs grow with the corpus: a refresh of a fixed change, searches, memory and disk, at several sizes."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from rag_pipeline.cli.console import err, out, rows_table
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.spaces import active_space
from rag_pipeline.lake.store import Lake
from rag_pipeline_tests.bench.files import files_of
from rag_pipeline_tests.bench.place import NAME, Place
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.scale_corpus import ADDED, DELETED, EDITED, ROUNDS, Source, days_before, source_of
from rag_pipeline_tests.bench.scale_plot import draw
from rag_pipeline_tests.bench.search import leg_times, percentile
from rag_pipeline_tests.bench.search_corpus import TENANT, Corpus, corpus_of

_SECTION: Final = "growth"
_MOST_GROWTH: Final = 1.5
"""Of a refresh of the same change, from the smallest corpus to the largest."""
_CHUNKS_PER_DAY: Final = 5_000
_FEWEST_DAYS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """One size, measured."""

    chunks: int
    """Really there, about as many as were asked for."""
    figures: dict[str, float]
    """By name, with its unit in brackets."""


def bench_scale(
    repository: str, report: Report, *, start_date: date | None = None, chunks: Sequence[int],
    keep: Path | None = None, plot: Path | None = None,
) -> None:  # fmt: skip
    """A corpus of each size made of the repository's lines; `keep`: where they stay, to be measured again."""
    del start_date
    corpus = _corpus(repository, keep)
    found: list[Grown] = []
    for size in sorted(chunks):
        with _place(size, keep) as place:
            found.append(_measure(place, corpus, size, report))
        _show(found)
        if plot and len(found) > 1:
            draw(found, plot)
    if len(found) > 1:
        name = "refresh of the same change, own work [s]"
        growth = found[-1].figures[name] / found[0].figures[name]
        detail = f"{growth:.2f} times, from {found[0].chunks:,} to {found[-1].chunks:,} chunks, at most {_MOST_GROWTH}"
        report.check(_SECTION, "a refresh does not grow with the corpus", growth <= _MOST_GROWTH, detail)
        out.print(f"{'holds' if growth <= _MOST_GROWTH else 'BROKEN'}: {detail}", markup=False)


def _corpus(repository: str, keep: Path | None) -> Corpus:
    """Embedding its lines takes a minute or two: kept with what is made of it."""
    kept = keep / "corpus.pickle" if keep else None
    if kept and kept.exists():
        return pickle.loads(kept.read_bytes())  # type: ignore[no-any-return]  # we wrote it
    corpus = corpus_of(files_of(repository))
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(corpus))
    return corpus


@contextmanager
def _place(size: int, keep: Path | None) -> Iterator[Place]:
    folder = keep / str(size) if keep else Path(tempfile.mkdtemp(prefix="rag-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    # PostgreSQL runs as another user when this one is root, and must be able to enter.
    for entered in (folder, folder.parent):
        entered.chmod(entered.stat().st_mode | 0o711)
    place = Place(folder=folder, start_date=date.today())  # noqa: DTZ011 # replaced when it is filled
    try:
        yield place
    finally:
        place.server.stop()
        if keep is None:
            place.server.erase()
            shutil.rmtree(folder)


def _measure(place: Place, corpus: Corpus, size: int, report: Report) -> Grown:
    name = f"{size:,} chunks"
    state = place.folder / "state.json"
    if not state.exists():
        built = _build(place, corpus, size)
        state.write_text(json.dumps(built | {"rounds": 0}))
    built = json.loads(state.read_text())
    source = Source(folder=place.folder / "source.git", corpus=corpus, pages=built["pages"])
    figures = {"built [s]": built["wall_s"], "peak memory of the process that built it [MB]": built["peak_mb"]}
    figures |= _refreshes(place, source, state)
    place.server.start()
    with connected(place.server.url()) as connection:
        figures |= _questions(connection, corpus)
        held = _disk(connection, Lake(place.settings().lake_url))
    count = int(held.pop("chunks"))
    figures |= {f"disk of a chunk: {what} [bytes]": value / count for what, value in held.items()}
    figures |= {
        f"size of {what} [MB]": held[what] / 1e6 for what in ("graph", "postings", "other indexes")
    }  # fmt: skip
    for what, value in figures.items():
        label, _, unit = what.rpartition(" [")
        report.figure(_SECTION, f"{name}: {label}", value, unit.rstrip("]"))
    return Grown(chunks=count, figures=figures)


def _build(place: Place, corpus: Corpus, size: int) -> dict[str, Any]:
    source = source_of(corpus, place.folder / "source.git", chunks=size)
    today = datetime.now(UTC).date()
    days = days_before(today, max(_FEWEST_DAYS, size // _CHUNKS_PER_DAY))
    err.print(f"{size:,} chunks: {source.pages:,} pages over {len(days):,} days")
    source.fill(days)
    np.save(place.folder / "lines.npy", corpus.vectors)
    # What was just made is right: looking at all of it is what the benchmark `checks` measures.
    _configure(place, days[0], in_refresh=False)
    finished, done = _refresh(place)
    err.print(f"{size:,} chunks: built in {finished.wall_s:,.0f} s, {done['seconds']}")
    with connected(place.server.url()) as connection:
        connection.execute("VACUUM ANALYZE")
    _configure(place, days[0], in_refresh=True)
    return {"pages": source.pages, "wall_s": finished.wall_s, "peak_mb": finished.peak_mb}


def _configure(place: Place, first: date, *, in_refresh: bool) -> None:
    source = json.dumps(str(place.folder / "source.git"))
    (place.folder / "rag_pipeline.toml").write_text(
        f'start_date = {first}\n[quality]\nin_refresh = {str(in_refresh).lower()}\n'
        f'[[repositories]]\nsource = {source}\nname = "{NAME}"\ntenant = "{TENANT}"\n',
        encoding="utf-8",
    )  # fmt: skip


def _refresh(place: Place) -> tuple[Any, dict[str, Any]]:
    finished = place.python("-m", "rag_pipeline_tests.bench.scale_worker")
    return finished, json.loads(finished.stdout.splitlines()[-1])


def _refreshes(place: Place, source: Source, state: Path) -> dict[str, float]:
    """The median of several changes of one size, each in a process of its own; the first warms caches."""
    known = json.loads(state.read_text())
    seconds: list[dict[str, float]] = []
    walls, peaks, logs = [], [], []
    busy: list[float] = []
    look = 0.0
    done: dict[str, Any] = {}
    first = known["rounds"]
    for round_ in range(first, first + ROUNDS):
        source.change(round_, datetime.now(UTC) - timedelta(seconds=1))
        before = _server_seconds(place)
        finished, done = _refresh(place)
        known["rounds"] = round_ + 1
        state.write_text(json.dumps(known))
        if done["failures"]:
            raise RuntimeError(f"{done['failures']} items failed in {place.folder}")
        if round_ == first:
            look = done["seconds"]["checks"]
        else:
            seconds.append(done["seconds"])
            walls.append(finished.wall_s)
            peaks.append(finished.peak_mb)
            busy.append(done["processor_s"] + _server_seconds(place) - before)
            logs.append(done["wal_bytes"])
    own = [sum(taken.values()) for taken in seconds]
    figures = {"refresh of the same change, own work [s]": median(own)}
    for stage in seconds[0]:
        figures[f"refresh, {stage} [s]"] = median(taken[stage] for taken in seconds)
    return figures | {
        "refresh, processor time with the server's [s]": median(busy),
        "refresh, checks of the first of a day [s]": look,
        "refresh, wall with Dagster's start [s]": median(walls), "refresh, peak memory of the process [MB]": max(peaks),
        "refresh, rows written [rows]": done["rows_written"], "refresh, texts embedded [texts]": done["embedded"],
        "refresh, server's log [MB]": median(logs) / 1e6,
    }  # fmt: skip


def _server_seconds(place: Place) -> float:
    """Processor time of the server's processes that have ended, as every connection's does; nothing but on Linux."""
    file = place.home / "postgres" / "data" / "postmaster.pid"
    place.server.start()
    try:
        pid = file.read_text(encoding="ascii").split("\n", 1)[0]
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def _questions(connection: Connection, corpus: Corpus) -> dict[str, float]:
    space = active_space(connection)
    assert space is not None
    figures = {}
    for leg in ("lexical", "vector", "fused"):
        times = leg_times(connection, corpus, space, leg)
        figures |= {f"search, {leg}, p{share} [ms]": percentile(times, share) for share in (50, 95)}
    return figures


def _disk(connection: Connection, lake: Lake) -> dict[str, float]:
    """Bytes of what holds the corpus, and the chunks that it is for."""
    rows = connection.execute(
        "SELECT c.relname, c.relkind, pg_relation_size(c.oid) + CASE WHEN c.relkind = 'r' THEN"
        " pg_table_size(c.oid) - pg_relation_size(c.oid) ELSE 0 END"
        " FROM pg_class AS c WHERE c.relnamespace = 'rag'::regnamespace AND c.relkind IN ('r', 'i')"
    ).fetchall()
    (chunks,) = connection.execute("SELECT count(*) FROM rag.chunks").fetchone() or (0,)
    found = {
        "chunks": float(chunks),
        "tables": 0.0,
        "postings": 0.0,
        "vectors": 0.0,
        "graph": 0.0,
        "other indexes": 0.0,
    }
    for name, kind, size in rows:
        if name.endswith("_hnsw"):
            what = "graph"
        elif kind == "i":
            what = "other indexes"
        else:
            what = "vectors" if name.startswith("vectors_") else "postings" if name == "postings" else "tables"
        found[what] += size
    return found | {"lake": float(sum(stage.bytes for stage in lake.sizes().values()))}


def _show(found: Sequence[Grown]) -> None:
    """A column for each size."""
    names = list(dict.fromkeys(name for grown in found for name in grown.figures))
    rows = [(name, *(f"{grown.figures[name]:,.2f}" for grown in found)) for name in names]
    out.print()
    out.print(rows_table("", ("", *(f"{grown.chunks:,} chunks" for grown in found)), rows), soft_wrap=False)
    out.print(f"The change: {EDITED} pages edited, {ADDED} added, {DELETED} deleted; median of {ROUNDS - 1}.")
