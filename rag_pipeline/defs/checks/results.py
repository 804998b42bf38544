"""Findings as Dagster's check results: one per check, with what was expected, what was found, and how to mend it."""

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from rag_pipeline.defs.metadata import Metadata, table
from rag_pipeline.quality import Finding, Outcome, Rule


def check_specs(asset: str, rules: Sequence[Rule]) -> list[dg.AssetCheckSpec]:
    """One check for all rules that share its name; it blocks when one of them does.

    Checks are not partitioned: Dagster would keep one event for each day and check, and three years have a thousand
    days. A run's checks speak of the run's days.
    """
    return [
        dg.AssetCheckSpec(
            name, asset=asset, description="; ".join(rule.expects for rule in mine) + ".",
            blocking=any(blocks(rule) for rule in mine),
        )
        for name, mine in _by_check(rules).items()
    ]  # fmt: skip


def blocks(rule: Rule) -> bool:
    """Whether what comes after a stage is not made when the rule does not hold."""
    return rule.severity == "error" and not rule.accepted


def check_results(
    asset: str, rules: Sequence[Rule], outcomes: Sequence[Outcome], *, about: Mapping[str, object]
) -> Iterator[dg.AssetCheckResult]:
    """A result for every check of `rules`; without a finding about it, there was nothing new to look at.

    `about` says what was looked at, for the metadata.
    """
    found = [finding for outcome in outcomes for finding in outcome.findings]
    for name, mine in _by_check(rules).items():
        findings = [finding for finding in found if finding.rule.check == name]
        failed = [finding for finding in findings if not finding.passed]
        severe = any(finding.blocks for finding in failed)
        yield dg.AssetCheckResult(
            asset_key=asset, check_name=name, passed=not failed,
            severity=dg.AssetCheckSeverity.ERROR if severe or not failed else dg.AssetCheckSeverity.WARN,
            description=" · ".join(sentence(asset, finding) for finding in failed) or _passed(findings, mine),
            metadata=_metadata(findings) | _effort(outcomes if findings else ()) | {
                **{key: dg.MetadataValue.text(str(value)) for key, value in about.items()},
            },
        )  # fmt: skip


def _effort(outcomes: Sequence[Outcome]) -> Metadata:
    """What was looked at; nothing of a run in which there was nothing, or every second point of a plot would be 0."""
    if not outcomes:
        return {}
    return {
        "rows_checked": dg.MetadataValue.int(sum(outcome.rows for outcome in outcomes)),
        "seconds": dg.MetadataValue.float(round(sum(outcome.seconds for outcome in outcomes), 2)),
    }


def sentence(asset: str, finding: Finding) -> str:
    """A finding in a line: which, what was expected, what was found, and what to do."""
    name = f"{asset}.{finding.rule.name}"
    accept = f"or accept it with quality.accepted = [{name!r}]".replace("'", '"')
    return (
        f"{name} failed: expected that {finding.rule.expects}; observed {finding.observed}. "
        f"What to do: {finding.rule.remedy}, {accept}"
    )


def _passed(findings: Sequence[Finding], rules: Sequence[Rule]) -> str:
    if not findings:
        return "nothing new to look at: what there is has passed as it is"
    return f"{len(rules)} of {len(rules)} expectations hold"


def _by_check(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.check, []).append(rule)
    return found


def _metadata(findings: Sequence[Finding]) -> Metadata:
    if not findings:
        return {}
    rows = [
        (f.rule.name, f.rule.expects, f.expectation, f.observed, "yes" if f.passed else f.rule.severity, f.rule.remedy)
        for f in findings
    ]
    metadata: Metadata = {
        "expectations": table(
            ("finding", "expected", "expectation", "observed", "passed", "how to fix or accept"), rows
        )
    }
    for finding in findings:
        if finding.sample:
            columns = list(dict.fromkeys(name for row in finding.sample for name in row))
            shown = [[row.get(name, "") for name in columns] for row in finding.sample]
            metadata[f"sample_of_{finding.rule.name}"] = table(columns, shown)
    return metadata
