"""How many secrets are redacted, and how many look-alikes: by the product's own `redact`, with every miss printed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Final

from rag_pipeline.cli.console import err
from rag_pipeline.documents.redaction import redact
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.secrets_gitleaks import gitleaks_cases
from rag_pipeline_tests.bench.secrets_made import Case, held_out_cases, tuned_cases
from rag_pipeline_tests.bench.secrets_public import PublicCases, detect_secrets_cases

_SECTION: Final = "secrets"
_MISSED_AT_MOST: Final = 5.0
"""Per cent of true secrets."""
_FLAGGED_AT_MOST: Final = 2.0
"""Per cent of look-alikes."""


def bench_secrets(
    repository: str,
    report: Report,
    *,
    start_date: date | None = None,
    secrets_data: Path | None = None,
    gitleaks_data: Path | None = None,
) -> None:
    """Judge the sets that are made here, and detect-secrets' where a checkout of it is given."""
    _judge(report, "syntaxes used to tune", tuned_cases())
    _judge(report, "syntaxes held out", held_out_cases())
    if secrets_data is not None:
        _judge_public(report, "detect-secrets", detect_secrets_cases(secrets_data))
    if gitleaks_data is not None:
        _judge_public(report, "gitleaks", gitleaks_cases(gitleaks_data))
    report.show(_SECTION)


def is_redacted(case: Case) -> bool:
    """Whether the case was taken for a secret; of a known value nothing may be left."""
    done = redact(case.text)
    return bool(done.spans) and (case.value is None or case.value not in done.text)


def _judge_public(report: Report, name: str, public: PublicCases) -> None:
    for rule, number in public.left_out.items():
        err.print(f"{name}: left out {number}: {rule}", markup=False, highlight=False)
    _judge(report, name, public.cases)


def _judge(report: Report, name: str, cases: Sequence[Case]) -> None:
    true = [case for case in cases if case.is_secret]
    false = [case for case in cases if not case.is_secret]
    missed = [case for case in true if not is_redacted(case)]
    flagged = [case for case in false if redact(case.text).spans]
    for what, wrong in (("missed", missed), ("flagged", flagged)):
        for case in wrong:
            err.print(f"{name}: {what} {case.name}: {case.text[:160]!r}", markup=False, highlight=False)
    rates = (
        ("secrets missed", missed, true, _MISSED_AT_MOST),
        ("look-alikes flagged", flagged, false, _FLAGGED_AT_MOST),
    )
    for what, wrong, of, most in rates:
        note = f"{len(wrong)} of {len(of)}"
        report.figure(_SECTION, f"{name}: {what}", 100 * len(wrong) / len(of), "%", at_most=most, note=note)
