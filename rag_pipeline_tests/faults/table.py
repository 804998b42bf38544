"""Which fault tests a run of pytest takes, and the table of what became of each fault that it prints at its end.

The hooks are imported by the outermost conftest.py: with several processes, the one that prints collects no tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

FAULT: Final = "fault"
"""The property of a test's report that holds its rows."""
_MARKED: Final = "is about faults"
"""The property that every test with the marker has: keywords hold names of folders, too."""
_HERE = Path(__file__).parent
_HEADINGS = ("fault", "where", "what happened", "rows compared")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is in this folder and not slow runs when it is asked for: by its marker, or by its path.

    Those who fork come before those whose process cannot be forked any more; see `forked`.
    """
    for item in items:
        if item.get_closest_marker("faults"):
            item.user_properties.append((_MARKED, True))
    items.sort(key=lambda item: not hasattr(getattr(item, "module", None), "fork"))
    named = (Path(argument.partition("::")[0]).resolve() for argument in config.args)
    if "faults" in str(config.option.markexpr) or any(path.is_relative_to(_HERE) for path in named):
        return
    dropped = [
        item for item in items
        if item.path.is_relative_to(_HERE) and item.get_closest_marker("faults") and not item.get_closest_marker("slow")
    ]  # fmt: skip
    if dropped:
        items[:] = [item for item in items if item not in dropped]
        config.hook.pytest_deselected(items=dropped)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What each fault came to, as the tests put it on record; of tests that record nothing, how many there are."""
    reports = [
        report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])
        if isinstance(report, pytest.TestReport) and any(name == _MARKED for name, _ in report.user_properties)
        and (report.when == "call" or report.failed)
    ]  # fmt: skip
    rows = _rows(reports)
    if not rows:
        return
    table = [_HEADINGS, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(_HEADINGS))]
    terminalreporter.section("what was survived")
    for row in table:
        terminalreporter.write_line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def _rows(reports: Sequence[pytest.TestReport]) -> list[tuple[str, ...]]:
    recorded: list[tuple[str, ...]] = []
    others: Counter[str] = Counter()
    broken: list[tuple[str, ...]] = []
    for report in reports:
        file, _, test = report.nodeid.removeprefix("rag_pipeline_tests/").partition("::")
        found = [value for name, value in report.user_properties if name == FAULT]
        if report.failed:
            broken.append((test.removeprefix("test_").replace("_", " "), file, "FAILED", ""))
        elif found:
            recorded += [(str(fault), str(where), str(what), str(rows or "")) for fault, where, what, rows in found]
        else:
            others[file] += 1
    more = [
        ("see the names of its tests", file, f"{count} as they should", "") for file, count in sorted(others.items())
    ]
    return [*sorted(recorded), *more, *broken]
