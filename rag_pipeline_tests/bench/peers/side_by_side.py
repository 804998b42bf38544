"""The table that shows all systems side by side, and the checks that hold ours against the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rag_pipeline.cli.console import out, rows_table
from rag_pipeline_tests.bench.peers.index_worker import BOOKKEEPING, HNSW, SHORT, SHORT_TOKENS
from rag_pipeline_tests.bench.peers.killing import Survived
from rag_pipeline_tests.bench.peers.systems import IN_INT8, LONG, OURS, Answers, Refreshed, System
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.search import percentile

STEPS: Final = ("cold", "no-op", "1 % of the files changed", "one word in 20 files", "20 files removed")
COLD, NOTHING, SHARE, WORDS, REMOVED = STEPS
_COLD_TIMES: Final = 1.5
_WITHOUT_MODEL_TIMES: Final = 2.0
_NOTHING_TIMES: Final = 10.0


@dataclass(kw_only=True)
class Measured:
    """What was found of one system."""

    system: System
    steps: dict[str, Refreshed] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)
    """Texts that a step made new, of those that the system keeps: it cannot embed fewer."""
    rows: int = 0
    answers: Answers | None = None
    """Of the vectors alone."""
    both: Answers | None = None
    """Of words and vectors together, where a system does that by default."""
    recall: float = 0.0
    rows_left: int | None = None
    """Of the files that were removed."""
    still_found: int | None = None
    """Files that were removed, and that a question with their own text still finds."""
    survived: Survived | None = None
    lent: Refreshed | None = None
    """A first load with the model run as the pipeline runs it."""
    remembers: bool = False
    """Its vectors are remembered from a run of the same library: its times leave the model out."""
    first_load_only: bool = False
    """And what its index finds: its other steps would say nothing new."""

    @property
    def name(self) -> str:
        return self.system.name


def show(report: Report, section: str, found: Sequence[Measured], *, fake: bool) -> None:
    """Print the table, and note every number of it and the checks in the report."""
    rows: list[list[str]] = []
    for name, unit, value in _measures(found, fake=fake):
        cells = [value(measured) for measured in found]
        if all(cell is None for cell in cells):
            continue
        rows.append([f"{name}, {unit}" if unit else name, *map(_cell, cells)])
        for measured, cell in zip(found, cells, strict=True):
            if isinstance(cell, int | float) and not math.isnan(cell):
                report.figure(section, f"{measured.name}: {name}", float(cell), unit)
    out.print()
    out.print(rows_table(section, ("", *(measured.name for measured in found)), rows), soft_wrap=True)
    for measured in found:
        if measured.remembers:
            out.print(f"{measured.name}: vectors remembered from the run beside it; its times leave the model out")
    for line in _targets(report, section, found, fake=fake):
        out.print(line, markup=False)
    for measured in found:
        if measured.name == OURS:
            _check(report, section, measured)
    for check in (check for check in report.checks if check.section == section):
        out.print(f"{'holds ' if check.holds else 'BROKEN'}  {check.name}: {check.detail}", markup=False)


Value = Callable[[Measured], "float | int | str | None"]


def _measures(found: Sequence[Measured], *, fake: bool) -> list[tuple[str, str, Value]]:
    """Name, unit and where the number is; None where a system has none."""
    measures: list[tuple[str, str, Value]] = []

    def step(name: str, title: str, unit: str, value: Callable[[Refreshed], float | int]) -> None:
        measures.append((f"{name}: {title}", unit, lambda m: value(m.steps[name]) if name in m.steps else None))

    for name in STEPS:
        step(name, "time", "s", lambda r: r.wall_s)
        step(name, "own work", "s", lambda r: r.own_s)
        if name in (COLD, SHARE, WORDS):
            step(name, "calls of the model", "", lambda r: r.calls)
            step(name, "texts embedded", "", lambda r: r.texts)
        if name in (SHARE, WORDS):
            measures.append((f"{name}: texts that changed", "", lambda m, name=name: m.least.get(name)))  # type: ignore[misc]
    step(COLD, "in the model", "s", lambda r: r.model_s)
    if fake:
        step(COLD, "characters embedded", "", lambda r: r.characters)
    else:
        step(COLD, "tokens embedded", "", lambda r: r.tokens)
    step(COLD, "peak memory", "MB", lambda r: r.peak_mb)
    step(NOTHING, "peak memory", "MB", lambda r: r.peak_mb)
    if not fake:
        measures.append((f"{COLD}: with our embedder lent", "s", lambda m: m.lent.wall_s if m.lent else None))
        measures.append((f"{COLD}: with our embedder lent, tokens", "", lambda m: m.lent.tokens if m.lent else None))
    measures += [
        ("rows", "", lambda m: m.rows),
        ("rows left of removed files", "", lambda m: m.rows_left),
        ("removed files still found", "", lambda m: m.still_found),
        ("query by words and vector p50", "ms", lambda m: percentile(m.both.ms, 50) if m.both else None),
        ("query by words and vector p95", "ms", lambda m: percentile(m.both.ms, 95) if m.both else None),
        ("query by vector p50", "ms", lambda m: percentile(m.answers.ms, 50) if m.answers else None),
        ("query by vector p95", "ms", lambda m: percentile(m.answers.ms, 95) if m.answers else None),
        ("recall@10", "", lambda m: round(m.recall, 3)),
        ("killed twice, and run again: rows", "", lambda m: str(m.survived) if m.survived else None),
        ("rows other than a first load has", "", lambda m: m.survived.drifted if m.survived else None),
    ]
    return measures


def _targets(report: Report, section: str, found: Sequence[Measured], *, fake: bool) -> list[str]:
    """What is wanted of ours against the fastest of the others, as figures with limits, and in words."""
    ours = next((measured for measured in found if measured.name == OURS), None)
    long = next((measured for measured in found if measured.name == f"{OURS}, {LONG}"), None)
    int8 = next((measured for measured in found if measured.name == f"{OURS}, {IN_INT8}"), None)
    others = [measured for measured in found if not _is_ours(measured) and BOOKKEEPING not in measured.name]
    if ours is None:
        return []
    said = []

    def faster(
        what: str, step: str, times: float, among: Sequence[Measured], value: Callable[[Refreshed], float],
        *, ours: Measured = ours,
    ) -> None:  # fmt: skip
        fit = [measured for measured in among if step in measured.steps]
        if not fit:
            return
        fastest = min(fit, key=lambda measured: value(measured.steps[step]))
        mine, best = value(ours.steps[step]), value(fastest.steps[step])
        name = f"ours to the fastest other: {what}"
        report.figure(section, name, mine / best, "of its time", at_most=round(1 / times, 3), note=fastest.name)
        said.append(
            f"{'holds ' if mine * times <= best else 'MISSED'}  {what}: at least {times:g} times as fast as the fastest"
            f" other: {mine:.2f} s, {fastest.name} {best:.2f} s, {best / max(mine, 1e-9):.1f} times"
        )

    if fake:
        short = [measured for measured in others if measured.name.endswith(SHORT)]
        built = [measured for measured in others if _has_index(measured) and measured not in short]
        long_ones = [measured for measured in built if measured.name.startswith("LlamaIndex")]

        def without_model(what: str, among: Sequence[Measured], ours: Measured) -> None:
            name = f"all but the model, index built, {what}"
            faster(name, COLD, _WITHOUT_MODEL_TIMES, among, lambda r: r.own_s - r.model_s, ours=ours)

        without_model("each in chunks of its own length", built, ours)
        without_model(f"all in chunks of {SHORT_TOKENS} tokens, ours", short, ours)
        if long:
            without_model(f"both in chunks of {LONG}, LlamaIndex's", long_ones, long)
    else:
        whole = [measured for measured in others if not measured.remembers]
        faster("cold", COLD, _COLD_TIMES, whole, lambda r: r.wall_s)
        if int8:
            faster("cold, ours in int8", COLD, _COLD_TIMES, whole, lambda r: r.wall_s, ours=int8)
    faster("nothing new, own work", NOTHING, _NOTHING_TIMES, others, lambda r: r.own_s)
    return said


def _check(report: Report, section: str, ours: Measured) -> None:
    """What must be so of ours on any machine."""
    for step in (SHARE, WORDS):
        embedded, least = ours.steps[step].texts, ours.least[step]
        report.check(
            section, f"{step}: as few texts embedded as can be", embedded == least,
            f"{embedded} embedded, {least} changed",
        )  # fmt: skip
    texts = ours.steps[NOTHING].texts
    report.check(section, "nothing new: nothing embedded", not texts, f"{texts} texts")
    report.check(section, "what was removed is gone", not (ours.rows_left or ours.still_found),
                 f"{ours.rows_left} rows left, {ours.still_found} files found")  # fmt: skip
    if ours.survived:
        survived = ours.survived
        report.check(section, "killed and run again, and after all changes: the rows of an undisturbed load",
                     not survived.twice + survived.lost + survived.drifted,
                     f"{survived}; {survived.drifted} others after all changes")  # fmt: skip


def _is_ours(measured: Measured) -> bool:
    return measured.name.partition(",")[0] == OURS


def _has_index(measured: Measured) -> bool:
    """CocoIndex builds one without being asked."""
    return HNSW in measured.name or measured.name.startswith("CocoIndex")


def _cell(value: float | int | str | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
