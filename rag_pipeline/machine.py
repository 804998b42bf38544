"""What of the machine is ours: cores and memory, those of the container where there is one."""

from __future__ import annotations

import os
from pathlib import Path


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that this process may use: those it is bound to, and no more than its container's share of time."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cores = os.cpu_count() or 1
    share = _quota(cgroup)
    return max(1, min(cores, round(share)) if share is not None else cores)


def _quota(cgroup: Path) -> float | None:
    """CPUs' worth of time that the container gets (cgroup v2, then v1); None: as much as there is."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota, period = ((cgroup / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        except OSError:
            return None
    try:
        share = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):  # "max"
        return None
    return share if share > 0 else None


def usable_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory that the machine has, and no more than its container's share."""
    held = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            return min(held, int((cgroup / name).read_text()))
        except (OSError, ValueError):  # another version of cgroups, or "max"
            continue
    return held
