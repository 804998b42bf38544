"""Runs in processes of ours: what one that was killed leaves in Dagster's storage is put right by the next.

Dagster's daemon looks after the runs that it has launched. A command's own run it cannot know to be dead: killed, it
would stand as started, and hold its places in the pools, for ever. So each process holds a locked file whose name its
runs carry as a tag; the lock ends with the process, however that ends. The file stays: a process that lost the database
could not say that its run had failed. The next command looks, and removes it.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    import dagster as dg

PROCESS_TAG: Final = "rag/process"
_SETTLED_S: Final = 60.0


def process_tags() -> dict[str, str]:
    """Tags of every run that this process executes itself."""
    return {PROCESS_TAG: _own(Path(os.environ["RAG_DAGSTER_STORAGE"]))}


def end_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """End the runs of killed processes, and free every place in a pool that a run holds which has ended; their ids."""
    storage = instance.event_log_storage
    dead = [file for file in _folder().glob("*.lock") if _is_dead(file.stem)]
    holders: set[str] = set()
    for pool in storage.get_concurrency_keys():
        info = storage.get_concurrency_info(pool)
        holders |= {slot.run_id for slot in info.claimed_slots} | {step.run_id for step in info.pending_steps}
    ended = [run_id for run_id in sorted(holders | _runs_of(instance, dead)) if _end(instance, run_id)]
    for run_id in ended:
        storage.free_concurrency_slots_for_run(run_id)
    for file in dead:
        # One that was made just now may not be locked yet; another command may have removed it.
        with suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > _SETTLED_S:
                file.unlink()
    return ended


def _end(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Whether the run is over, which it is from now on when its process is dead."""
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished:
        return True
    if not _is_dead(run.tags.get(PROCESS_TAG, "")):
        return False
    instance.report_run_failed(run, "its process has ended; what was done is kept, the next run goes on from there")
    return True


def _runs_of(instance: dg.DagsterInstance, dead: Sequence[Path]) -> set[str]:
    """Runs that still count as started, of these processes."""
    import dagster as dg

    found: set[str] = set()
    for file in dead:
        wanted = dg.RunsFilter(tags={PROCESS_TAG: file.stem}, statuses=[dg.DagsterRunStatus.STARTED])
        found |= {run.run_id for run in instance.get_runs(filters=wanted)}
    return found


def _is_dead(name: str) -> bool:
    """Whether a process of this machine held the file and has ended; of others nothing is known."""
    file = _folder() / f"{name}.lock"
    if not name or not file.is_file():
        return False
    try:
        with FileLock(file, timeout=0):
            return True
    except Timeout:
        return False


@cache
def _own(storage: Path) -> str:
    name = uuid4().hex
    folder = storage / "processes"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{name}.lock")
    lock.acquire()
    # Kept for as long as the process lives: collected, it would be released.
    atexit.register(lock.release, force=True)
    return name


def _folder() -> Path:
    return Path(os.environ["RAG_DAGSTER_STORAGE"]) / "processes"
