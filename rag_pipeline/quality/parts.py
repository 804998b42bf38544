"""Suites over the parts of the lake: a row of figures per part, and only of parts that have not passed as they are.

A suite reads a part batch by batch and hands over figures about it (rows, duplicates, the longest of something) and a
few of the rows that offend. Memory does not grow with the part, and Great Expectations sees a row per part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from rag_pipeline.errors import PartError
from rag_pipeline.lake.derive import Damage, combine, leave_aside, parts_in
from rag_pipeline.lake.schemas import MADE_FROM
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange
from rag_pipeline.progress import Progress
from rag_pipeline.quality.expectations import SAMPLE_ROWS, Outcome, Row, Rule, Severity, validate


def none_of(
    column: str, *, name: str = "", check: str, expects: str, remedy: str, severity: Severity = "error"
) -> Rule:
    """A rule that a count is 0 in every part; it is named as its column unless it has a `name`."""
    return Rule(
        name=name or column, check=check, expects=expects, remedy=remedy, severity=severity,
        expectation="ExpectColumnValuesToBeInSet", arguments={"column": column, "value_set": [0]},
    )  # fmt: skip


def at_most(
    column: str, limit: float, *, name: str = "", check: str, expects: str, remedy: str, severity: Severity = "error"
) -> Rule:
    """A rule that a figure is `limit` at most in every part."""
    return Rule(
        name=name or column, check=check, expects=expects, remedy=remedy, severity=severity,
        expectation="ExpectColumnValuesToBeBetween", arguments={"column": column, "max_value": limit},
    )  # fmt: skip


READABLE = none_of(
    "damaged", name="readable", check="schema", expects="every file can be read to its end",
    remedy="refresh again: a damaged part is made anew",
    # Its part is left aside, and the run fails in the end: it holds up no other.
    severity="warn",
)  # fmt: skip
COLUMNS = none_of(
    "wrong_columns", name="columns", check="schema", expects="every file has the stage's columns, of their types",
    remedy="materialize these days again with this version: what another one wrote is made anew",
)  # fmt: skip
SCHEMA: tuple[Rule, ...] = (READABLE, COLUMNS)
"""Holds for the parts of every stage."""


@dataclass(slots=True, kw_only=True)
class Measured:
    """What a suite found in one part."""

    rows: int = 0
    figures: dict[str, float | int | str | None] = field(default_factory=dict)
    """By column of the frame; None: could not be told, and no rule about it fails."""
    samples: dict[str, list[Row]] = field(default_factory=dict)
    """Rows that offend, by rule."""

    def add(self, rule: str, rows: Iterable[Row]) -> None:
        """Add rows that offend, of which a few are kept."""
        kept = self.samples.setdefault(rule, [])
        for row in rows:
            if len(kept) >= SAMPLE_ROWS:
                return
            kept.append(row)


Measure: TypeAlias = Callable[[Lake, Part], Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSuite:
    """What must be true of each part of a stage."""

    stage: str
    inputs: Sequence[str] = ()
    """Other stages whose parts are read with it."""
    rules: Sequence[Rule]
    measure: Measure
    version: str
    """Changes when the same part could give other figures: the code of `measure`, and settings that it obeys."""

    @property
    def fingerprint(self) -> str:
        """Of the suite and its thresholds."""
        rules = (f"{r.name} {r.expectation} {sorted(r.arguments.items())} {r.accepted}" for r in self.rules)
        return combine(self.version, *rules)

    def expected(self, lake: Lake, part: Part) -> str | None:
        """The fingerprint that a part has when it has passed as it is now; None: there is none to check."""
        # A damaged file has no fingerprint, and must be looked at: no one else may say that it is damaged.
        found = [lake.fingerprint(stage, part) for stage in (self.stage, *self.inputs)]
        if not any(found) and not lake.exists(self.stage, part):
            return None
        return combine(self.fingerprint, *map(str, found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What became of a suite over the parts of some days."""

    outcome: Outcome
    parts: int
    """Looked at."""
    unchanged: int
    """Not looked at: they passed as they are."""
    passed: Mapping[Part, str]
    """Those that passed now, with the fingerprint to remember."""
    left_aside: Mapping[Part, str]
    """Those that could not be read, or not with their inputs, and why."""


def check_parts(
    lake: Lake, days: DayRange, suite: PartSuite, *, known: Mapping[Part, str], progress: Progress
) -> Checked:
    """Judge the parts of these days; those that `known` says passed with the fingerprint they have are left out."""
    started = time.perf_counter()
    fingerprints = {part: suite.expected(lake, part) for part in parts_in(lake, [suite.stage, *suite.inputs], days)}
    present = {part: fingerprint for part, fingerprint in fingerprints.items() if fingerprint is not None}
    todo = {part: fingerprint for part, fingerprint in present.items() if known.get(part) != fingerprint}
    if not todo:
        nothing = Outcome(findings=(), rows=0, seconds=time.perf_counter() - started)
        return Checked(outcome=nothing, parts=0, unchanged=len(present), passed={}, left_aside={})
    measured = []
    damage = Damage()
    for done, part in enumerate(todo, start=1):
        measured.append(_measure(lake, part, suite, damage))
        progress(f"checks of {suite.stage}", done=done, total=len(todo), unit="parts")
    outcome = _judge(list(todo), measured, suite, started=started)
    offending = _offending(outcome, parts=len(todo))
    passed = {part: fingerprint for number, (part, fingerprint) in enumerate(todo.items()) if number not in offending}
    return Checked(
        outcome=outcome, parts=len(todo), unchanged=len(present) - len(todo), passed=passed,
        left_aside=damage.left_aside,
    )  # fmt: skip


def about(part: Part) -> dict[str, object]:
    """The columns that name a part."""
    return {"tenant": part.tenant, "repository": part.repository, "day": part.day.isoformat()}


def wrong_columns(
    lake: Lake, part: Part, found: Measured, *, stage: str, schema: pa.Schema, optional: Iterable[str] = ()
) -> bool:
    """Compare a part's footer with what the stage writes; what cannot be trusted is not to be measured either.

    `optional` are columns that parts of an earlier version do not have yet.
    """
    has = lake.schema(stage, part)
    wrong: list[Row] = []
    if has is not None:
        there, wanted = dict(zip(has.names, has.types, strict=True)), dict(zip(schema.names, schema.types, strict=True))
        if there.get(MADE_FROM.name) == MADE_FROM.type:
            del there[MADE_FROM.name]
        missing = [name for name in wanted if name not in there and name not in set(optional)]
        wrong += [{"column": name, "expected": str(wanted[name]), "found": "no such column"} for name in missing]
        wrong += [
            {"column": name, "expected": str(wanted.get(name, "no such column")), "found": str(kind)}
            for name, kind in there.items()
            if wanted.get(name) != kind
        ]
    found.figures["wrong_columns"] = int(found.figures.get("wrong_columns") or 0) + len(wrong)
    found.add(COLUMNS.name, [about(part) | {"stage": stage} | dict(row) for row in wrong])
    return bool(wrong)


def share_beyond(count: int, of: int, *, most: int) -> float:
    """Which share `count` is, once it is more than `most`: a few are never too large a share."""
    return count / max(of, 1) if count > most else 0.0


def _measure(lake: Lake, part: Part, suite: PartSuite, damage: Damage) -> Measured:
    try:
        found = suite.measure(lake, part)
    except PartError as error:
        leave_aside(lake, part, error, damage)
        found = Measured(figures={"damaged": 1})
        found.add(READABLE.name, [about(part) | {"error": str(error)}])
        return found
    found.figures.setdefault("damaged", 0)
    return found


def _judge(parts: Sequence[Part], measured: Sequence[Measured], suite: PartSuite, *, started: float) -> Outcome:
    import pandas as pd

    names = dict.fromkeys(str(rule.arguments["column"]) for rule in suite.rules if "column" in rule.arguments)
    names |= dict.fromkeys(name for found in measured for name in found.figures)
    records = [
        about(part) | {name: found.figures.get(name) for name in names}
        for part, found in zip(parts, measured, strict=True)
    ]
    samples: dict[str, list[Row]] = {}
    for found in measured:
        for rule, rows in found.samples.items():
            samples.setdefault(rule, []).extend(rows)
    outcome = validate(
        pd.DataFrame(records), suite.rules, rows=sum(found.rows for found in measured),
        samples={rule: rows[:SAMPLE_ROWS] for rule, rows in samples.items()},
    )  # fmt: skip
    return Outcome(findings=outcome.findings, rows=outcome.rows, seconds=time.perf_counter() - started)


def _offending(outcome: Outcome, *, parts: int) -> set[int]:
    """Which parts a failed rule speaks of; all, when it speaks of the whole."""
    found: set[int] = set()
    for finding in outcome.failed:
        found |= set(range(parts)) if finding.offending is None else finding.offending
    return found
