"""Rules of what must be true of a stage's data, and their judgement by Great Expectations.

A stage hands over a small frame (a row per part, or per whatever was counted) and the rules for its columns; with the
rules that count rows inside a part go samples of those rows. `judging` asks Great Expectations, which takes a second to
load and is loaded by the first call of `validate`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rag_pipeline.documents.redaction import redact
from rag_pipeline.quality.judging import judge

if TYPE_CHECKING:
    import pandas as pd

Severity: TypeAlias = Literal["error", "warn"]
Row: TypeAlias = Mapping[str, object]

SAMPLE_ROWS = 10
"""Offending rows that a finding shows at most."""
_CELL_CHARS = 160
_SHOWN_VALUES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that must be true of a frame."""

    name: str
    """What the finding is called, in snake_case; unique in its stage."""
    check: str
    """The Dagster check that it belongs to; several rules may share one."""
    expects: str
    """What must be true, in words."""
    expectation: str
    """The Great Expectations class, such as `ExpectColumnMaxToBeBetween`."""
    arguments: Mapping[str, object]
    """Its arguments, `column` among them."""
    remedy: str
    """How to mend what is found, or how to accept it, with the settings key."""
    severity: Severity = "error"
    """`warn` never blocks."""
    accepted: bool = False
    """Somebody accepts what it finds: it is still looked at and shown, and passes."""

    def accept(self) -> Rule:
        """The rule for somebody who accepts what it finds."""
        return replace(self, accepted=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What became of one rule."""

    rule: Rule
    passed: bool
    expectation: str
    """As Great Expectations was asked, such as `ExpectColumnMaxToBeBetween(column='tokens', max_value=160)`."""
    observed: str
    """What was found, for people."""
    sample: Sequence[Row] = ()
    """Rows that offend, at most `SAMPLE_ROWS`; without secrets, long values cut."""
    offending: frozenset[int] | None = frozenset()
    """Which rows of the frame offend, by number; None: the frame as a whole does."""

    @property
    def blocks(self) -> bool:
        """Whether what comes after this stage must not be made."""
        return not self.passed and self.rule.severity == "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of all rules of a stage."""

    findings: Sequence[Finding]
    rows: int
    """Rows of data that were looked at, which is more than the frame has."""
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every rule holds."""
        return all(finding.passed for finding in self.findings)

    @property
    def failed(self) -> list[Finding]:
        """Those that do not hold, what blocks first."""
        return sorted((f for f in self.findings if not f.passed), key=lambda finding: not finding.blocks)


def validate(
    frame: pd.DataFrame, rules: Sequence[Rule], *, rows: int | None = None,
    samples: Mapping[str, Iterable[Row]] | None = None,
) -> Outcome:  # fmt: skip
    """Judge a frame by rules about its columns, in one run of Great Expectations.

    A rule's `samples` (by its name) are shown when it fails; without any, the rows of the frame that offend are.
    `rows` says how much data the frame stands for. A rule that cannot be judged (no such column) fails, and says so.
    """
    started = time.perf_counter()
    results = judge(frame, rules)
    findings = [
        _finding(rule, result, frame, samples=list((samples or {}).get(rule.name, ())))
        for rule, result in zip(rules, results, strict=True)
    ]
    return Outcome(findings=findings, rows=len(frame) if rows is None else rows, seconds=time.perf_counter() - started)


def shown(row: Row) -> Row:
    """A row fit to be shown: no secrets, nothing longer than a table's cell."""
    return {name: _cell(value) for name, value in row.items()}


def _finding(rule: Rule, result: Mapping[str, Any], frame: pd.DataFrame, *, samples: Sequence[Row]) -> Finding:
    holds = bool(result["success"])
    arguments = ", ".join(f"{name}={value!r}" for name, value in rule.arguments.items())
    sample: Sequence[Row] = ()
    places: list[int] = []
    if not holds:
        places = list(result["result"].get("unexpected_index_list") or [])
        rows = frame.iloc[places[:SAMPLE_ROWS]].to_dict("records")
        sample = samples or [{str(column): value for column, value in row.items()} for row in rows]
    observed = _observed(result, of=len(frame))
    return Finding(
        rule=rule, passed=holds or rule.accepted, expectation=f"{rule.expectation}({arguments})",
        observed=observed if holds or not rule.accepted else f"{observed}, accepted by quality.accepted",
        sample=[shown(row) for row in sample[:SAMPLE_ROWS]],
        offending=frozenset(places) if holds or places else None,
    )  # fmt: skip


def _observed(result: Mapping[str, Any], *, of: int) -> str:
    """What Great Expectations saw: a figure, or how many rows of the frame offend, and with what."""
    raised = result.get("exception_info") or {}
    problem = _exception(raised)
    if problem:
        return f"could not be judged: {problem}"
    found = result["result"]
    if "observed_value" in found:
        return _figure(found["observed_value"])
    offending = int(found.get("unexpected_count") or 0)
    if not offending:
        return f"holds for all {of:,}" if of != 1 else "holds"
    values = list(dict.fromkeys(_figure(value) for value in found.get("unexpected_list") or ()))
    more = ", …" if len(values) > _SHOWN_VALUES else ""
    return f"{', '.join(values[:_SHOWN_VALUES])}{more} ({offending:,} of {of:,})"


def _exception(raised: Mapping[str, Any]) -> str:
    """The message of an expectation that raised; Great Expectations nests it by metric."""
    if raised.get("raised_exception"):
        return str(raised.get("exception_message"))
    nested = [_exception(value) for value in raised.values() if isinstance(value, Mapping)]
    return next((message for message in nested if message), "")


def _figure(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"
    return _cell(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value)


def _cell(value: object) -> str:
    text = redact(" ".join(str(value).split())).text
    return text if len(text) <= _CELL_CHARS else text[: _CELL_CHARS - 1] + "…"
