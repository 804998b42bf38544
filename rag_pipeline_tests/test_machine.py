"""What of a machine may be used, with made-up control groups."""

from __future__ import annotations

import os
from pathlib import Path

from rag_pipeline.machine import usable_cores, usable_memory


def test_a_container_gets_as_many_cores_as_it_gets_time(tmp_path: Path):
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert usable_cores(tmp_path) == bound
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert usable_cores(tmp_path) == bound
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    assert usable_cores(tmp_path) == 1
    (tmp_path / "cpu.max").write_text("20000 100000\n")
    assert usable_cores(tmp_path) == 1
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(tmp_path) == bound


def test_a_container_has_its_share_of_memory_and_no_more_than_there_is(tmp_path: Path):
    there_is = usable_memory(tmp_path)
    assert there_is > 100 * 2**20
    (tmp_path / "memory.max").write_text("max\n")
    assert usable_memory(tmp_path) == there_is
    (tmp_path / "memory.max").write_text(f"{64 * 2**20}\n")
    assert usable_memory(tmp_path) == 64 * 2**20
    (tmp_path / "memory.max").unlink()
    (tmp_path / "memory").mkdir()
    # What the first version of control groups says where there is no limit.
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert usable_memory(tmp_path) == there_is
