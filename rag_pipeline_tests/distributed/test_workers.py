"""A month over two workers, one of them killed in the middle: nothing is lost, and the index is that of one process."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from rag_pipeline_tests.distributed.cluster import MAIN, SILENCE_S, VISIBILITY_S, Cluster, environment, until
from rag_pipeline_tests.distributed.corpus import DAYS, DAYS_PER_RUN, POOLS, TOKEN, Corpus, corpus_in
from rag_pipeline_tests.distributed.evidence import POOL_OF, Records, Rows, Run, Step, index_of
from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.intervals import most_at_once

pytestmark = [
    pytest.mark.distributed,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds its processes in /proc"),
    pytest.mark.skipif(
        shutil.which("redis-server") is None,
        reason="needs redis-server: install it with your system's packages (Debian, Ubuntu: apt install redis-server)",
    ),
]
VICTIM, SURVIVOR = "first", "second"
_BACKFILL_S = 600.0


@dataclass(frozen=True, kw_only=True)
class Story:
    """What happened, and what was left."""

    runs: dict[str, Run]
    steps: list[Step]
    killed: Run
    killed_at: float
    noticed_s: float
    took_s: float
    alone_s: float
    backfill: str
    offered_again: int
    places_held: Rows
    index: dict[str, Rows]
    undisturbed: dict[str, Rows]
    freshness: dict[str, str]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    now = datetime.now(UTC)
    if (now.hour, now.minute) >= (23, 40):
        pytest.skip("drops belong to the day on which they are taken: not in the last minutes before midnight (UTC)")
    with corpus_in(tmp_path_factory.mktemp("sources")) as corpus:
        yield corpus


@pytest.fixture(scope="module")
def undisturbed(corpus: Corpus) -> tuple[dict[str, Rows], float]:
    """The index that one process makes in one run, and the seconds that it takes."""
    with temporary_home() as home:
        environ = environment(home, corpus.install(home), TOKEN)
        words = ["materialize", "--from", str(corpus.days[0]), "--to", str(corpus.days[-1])]
        started = time.monotonic()
        done = subprocess.run([*MAIN, *words], cwd=home, env=environ, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr[-4000:]
        return index_of(home), time.monotonic() - started


@pytest.fixture(scope="module")
def story(corpus: Corpus, undisturbed: tuple[dict[str, Rows], float]) -> Iterator[Story]:
    """Played once; the tests look at it."""
    with temporary_home() as home:
        cluster = Cluster(home, corpus.install(home), token=TOKEN)
        try:
            cluster.start()
            found = _play(cluster, corpus, undisturbed)
        finally:
            cluster.end()
    print(_told(found))
    yield found


def _play(cluster: Cluster, corpus: Corpus, undisturbed: tuple[dict[str, Rows], float]) -> Story:
    records = Records(cluster.home)
    cluster.start_worker(VICTIM)
    cluster.start_worker(SURVIVOR)
    started = time.monotonic()
    backfill = cluster.launch_backfill([str(day) for day in corpus.days])
    until(
        lambda: _in_the_middle(records) is not None, "both workers to have finished a run and to be at another",
        limit_s=300, told=cluster.all_printed,
    )  # fmt: skip
    cluster.kill(VICTIM)
    killed_at = time.time()
    (killed,) = [run for run in records.runs().values() if run.worker == VICTIM and not run.is_over]
    noticed_s = until(
        lambda: records.runs()[killed.id].is_over, "Dagster to notice that the worker is gone",
        limit_s=SILENCE_S + 60, told=cluster.all_printed,
    )  # fmt: skip
    until(
        lambda: records.backfill_status(backfill).startswith(("COMPLETED", "FAILED", "CANCELED"))
        and all(run.is_over for run in records.runs().values()),
        "the backfill and every run to end", limit_s=_BACKFILL_S, told=cluster.all_printed,
    )  # fmt: skip
    took_s = time.monotonic() - started
    until(lambda: not records.places_held(), "the places in the pools to be free", limit_s=60)
    runs = records.runs()
    return Story(
        runs=runs, steps=records.steps(), killed=runs[killed.id], killed_at=killed_at, noticed_s=noticed_s,
        took_s=took_s, alone_s=undisturbed[1], backfill=records.backfill_status(backfill),
        offered_again=records.times_said("Ignoring a duplicate run"), places_held=records.places_held(),
        index=index_of(cluster.home), undisturbed=undisturbed[0],
        freshness=cluster.freshness(),
    )  # fmt: skip


def _in_the_middle(records: Records) -> Run | None:
    """The run that the victim is at, in a step, once both workers have finished one and are at another."""
    runs = records.runs().values()
    done = {run.worker for run in runs if run.status == "SUCCESS"}
    at_work = {run.worker: run for run in runs if run.status == "STARTED"}
    if not {VICTIM, SURVIVOR} <= done & at_work.keys():
        return None
    steps = {step.run for step in records.steps() if step.ended is None}
    return at_work[VICTIM] if at_work[VICTIM].id in steps else None


def _told(story: Story) -> str:
    first = min(run.began for run in story.runs.values() if run.began)
    retried = {run.tags["dagster/parent_run_id"]: run.id for run in story.runs.values() if _is_retry(run)}
    lines = [f"\n{'run':10}{'days':27}{'worker':9}{'began':>7}{'took':>7}  {'end':9}retried as"]
    for run in sorted(story.runs.values(), key=lambda run: run.began or 0):
        began, took = (run.began or 0) - first, (run.ended or 0) - (run.began or 0)
        again = retried.get(run.id, "")[:8]
        lines.append(f"{run.id[:8]:10}{run.days:27}{run.worker:9}{began:6.1f}s{took:6.1f}s  {run.status:9}{again}")
    open_step = next(step.key for step in story.steps if step.run == story.killed.id and step.ended is None)
    held = {pool: most_at_once(spans) for pool, spans in _spans(story).items()}
    lines += [
        f"worker {VICTIM!r} was killed at {story.killed_at - first:.1f} s in step {open_step} of {story.killed.id[:8]};"
        f" noticed after {story.noticed_s:.1f} s",
        f"runs on each worker: {dict(Counter(run.worker for run in story.runs.values()))};"
        f" tasks offered again while their run was at work, and ignored: {story.offered_again}",
        "steps at once in each pool (limit): "
        + ", ".join(f"{pool} {most} ({POOLS[pool]})" for pool, most in held.items()),
        "rows compared with one undisturbed process: "
        + ", ".join(f"{name} {len(rows)}" for name, rows in story.index.items()),
        f"the whole backfill: {story.took_s:.0f} s with two workers, one of them killed, at a pace for tests"
        f" (silence {SILENCE_S} s, visibility {VISIBILITY_S} s); {story.alone_s:.0f} s in one process and one run",
    ]
    return "\n".join(lines)


def _is_retry(run: Run) -> bool:
    return "dagster/retry_number" in run.tags


def _spans(story: Story) -> dict[str, list[tuple[float, float]]]:
    spans: dict[str, list[tuple[float, float]]] = {pool: [] for pool in POOLS}
    for step in story.steps:
        if step.key in POOL_OF:
            # What was killed held its place at least until then.
            spans[POOL_OF[step.key]].append((step.began, step.ended or story.killed_at))
    return spans


def test_every_run_ends_well_or_is_run_again_until_it_does(story):
    assert story.backfill == "COMPLETED_SUCCESS"
    failed = [run for run in story.runs.values() if run.status != "SUCCESS"]
    assert [run.id for run in failed] == [story.killed.id]
    (again,) = [run for run in story.runs.values() if run.tags.get("dagster/parent_run_id") == story.killed.id]
    assert _is_retry(again)
    assert (again.status, again.worker, again.days) == ("SUCCESS", SURVIVOR, story.killed.days)


def test_the_index_is_row_by_row_that_of_one_undisturbed_process(story):
    for name, rows in story.undisturbed.items():
        assert story.index[name] == rows, name
    assert len(story.index["documents"]) > 3 * DAYS
    assert {row[1] for row in story.index["documents"]} >= {"docs", "code", "github_issue", "knowledge"}


def test_every_source_is_fresh_in_whatever_order_the_runs_ended(story):
    assert {"git", "github", "drops"} == {name.rpartition(" ")[2] for name in story.freshness}
    assert set(story.freshness.values()) == {"fresh"}, story.freshness


def test_both_workers_did_work_and_none_did_the_same(story):
    workers = Counter(run.worker for run in story.runs.values())
    assert workers.keys() == {VICTIM, SURVIVOR}
    assert min(workers.values()) > 1, "the victim finished one before the one that it was killed in"
    days = Counter(run.days for run in story.runs.values() if "dagster/backfill" in run.tags and not _is_retry(run))
    assert len(days) == -(-DAYS // DAYS_PER_RUN)
    assert set(days.values()) == {1}


def test_the_limits_of_the_pools_held_across_workers_and_no_place_stayed_taken(story):
    for pool, spans in _spans(story).items():
        assert spans, pool
        assert most_at_once(spans) <= POOLS[pool], pool
    assert story.places_held == []
