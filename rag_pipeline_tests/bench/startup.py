"""How long commands take to start: processes of their own, over and over, beside what Python and Dagster alone take."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import date
from statistics import median
from typing import Final

from rag_pipeline_tests.bench.place import Place, place_for
from rag_pipeline_tests.bench.process import Finished
from rag_pipeline_tests.bench.report import Report

_TIMES: Final = 5
_QUESTION: Final = "How do I use my own database?"
_SEARCH_LIMIT_S: Final = 1.5
_SECTION: Final = "start-up"


def bench_startup(repository: str, report: Report, *, start_date: date | None = None) -> None:
    """Index a repository once, then start each command again and again.

    The first of each, which may still have to write compiled modules and fill the disk's cache, is not counted.
    """
    with place_for(repository, start_date=start_date) as place:
        place.materialize()
        _measure(report, "python -c pass", lambda: place.python("-c", "pass"))
        _measure(report, "python -c 'import dagster'", lambda: place.python("-c", "import dagster"))
        loading = "import rag_pipeline.definitions"
        _measure(report, f"python -c '{loading}'", lambda: place.python("-c", loading))
        _measure(report, "the code location, made", lambda: place.python("-c", _MADE))
        _measure(report, "rag-pipeline --help", lambda: place.cli("--help"))
        _measure(report, "rag-pipeline status", lambda: place.cli("status"))
        search = _measure(
            report, "rag-pipeline search", lambda: place.cli("search", _QUESTION), at_most=_SEARCH_LIMIT_S
        )
        _measure(
            report, "rag-pipeline search, PostgreSQL started by it", lambda: place.cli("search", _QUESTION),
            before=place.server.stop,
        )  # fmt: skip
        _measure(
            report, "rag-pipeline search --leg lexical", lambda: place.cli("search", _QUESTION, "--leg", "lexical")
        )
        _measure(report, "rag-pipeline materialize, nothing new", lambda: place.materialize()[0])
        uncompiled = _measure(report, "rag-pipeline search, nothing compiled", lambda: _uncompiled(place))
    report.check(_SECTION, "search finds something", bool(search.stdout.strip()) and uncompiled.stdout == search.stdout)
    report.show(_SECTION)


_MADE: Final = "from rag_pipeline.definitions import defs; print(len(defs().resolve_all_asset_keys()))"


def _measure(
    report: Report,
    name: str,
    start: Callable[[], Finished],
    *,
    before: Callable[[], object] | None = None,
    at_most: float | None = None,
) -> Finished:
    found = []
    for _ in range(_TIMES + 1):
        if before is not None:
            before()
        found.append(start())
    wall, cpu = (median(f.wall_s for f in found[1:]), median(f.cpu_s for f in found[1:]))
    spread = f"{min(f.wall_s for f in found[1:]):.2f} to {max(f.wall_s for f in found[1:]):.2f}"
    report.figure(_SECTION, f"{name}: wall", wall, "s", at_most=at_most, note=f"median of {_TIMES}, {spread}")
    report.figure(_SECTION, f"{name}: CPU", cpu, "s")
    return found[-1]


def _uncompiled(place: Place) -> Finished:
    """With an empty cache for compiled modules, which stays empty, as where Python may not write one."""
    with tempfile.TemporaryDirectory() as empty:
        env = {"PYTHONPYCACHEPREFIX": empty, "PYTHONDONTWRITEBYTECODE": "1"}
        return place.cli("search", _QUESTION, env=env)
