"""Rules are judged by Great Expectations, and what they find can be read."""

from __future__ import annotations

import pandas as pd

from rag_pipeline.quality import Rule, validate

FRAME = pd.DataFrame(
    {"repository": ["a", "b", "c"], "duplicates": [0, 3, 0], "share": [0.0, 0.25, 0.5], "rows": [10, 20, 30]}
)


def rule(name: str = "unique", **changes: object) -> Rule:
    return Rule(**{
        "name": name, "check": "identities", "expects": "every id occurs once",
        "expectation": "ExpectColumnValuesToBeBetween",
        "arguments": {"column": "duplicates", "max_value": 0}, "remedy": "materialize chunks again", **changes,
    })  # fmt: skip


def test_a_rule_that_holds_passes():
    outcome = validate(FRAME, [rule(arguments={"column": "duplicates", "max_value": 3})])
    assert outcome.passed
    assert outcome.failed == []
    assert outcome.findings[0].observed == "holds for all 3"
    assert outcome.rows == 3


def test_a_rule_that_does_not_hold_shows_the_expectation_what_was_found_and_where():
    outcome = validate(FRAME, [rule()], rows=60)
    (finding,) = outcome.failed
    assert finding.expectation == "ExpectColumnValuesToBeBetween(column='duplicates', max_value=0)"
    assert finding.observed == "3 (1 of 3)"
    assert [row["repository"] for row in finding.sample] == ["b"]
    assert finding.blocks
    assert outcome.rows == 60


def test_samples_of_the_rows_inside_a_part_are_shown_in_place_of_the_part():
    sample = [{"chunk_id": n} for n in range(30)]
    (finding,) = validate(FRAME, [rule()], samples={"unique": sample}).findings
    assert [row["chunk_id"] for row in finding.sample] == [str(n) for n in range(10)]


def test_samples_show_no_secret_and_are_cut():
    secret = "ghp_" + "x9Kq2LmN4pRsT6vWyZ1aBc3dEf5gHi7jKl8m"
    sample = [{"text": f"token = {secret} " + "word " * 100}]
    (finding,) = validate(FRAME, [rule()], samples={"unique": sample}).findings
    (row,) = finding.sample
    assert secret not in str(row["text"])
    assert "[REDACTED:" in str(row["text"])
    assert len(str(row["text"])) <= 160


def test_figures_over_a_whole_column_are_observed_values():
    arguments = {"column": "rows", "min_value": 100}
    (finding,) = validate(FRAME, [rule(expectation="ExpectColumnSumToBeBetween", arguments=arguments)]).findings
    assert not finding.passed
    assert finding.observed == "60"


def test_warnings_fail_without_blocking_and_come_last():
    outcome = validate(FRAME, [rule("a", severity="warn"), rule("b")])
    assert [finding.rule.name for finding in outcome.failed] == ["b", "a"]
    assert [finding.blocks for finding in outcome.failed] == [True, False]


def test_a_rule_about_a_column_that_is_not_there_fails_and_says_so():
    (finding,) = validate(FRAME, [rule(arguments={"column": "no_such_column", "max_value": 0})]).findings
    assert not finding.passed
    assert "could not be judged" in finding.observed
    assert "no_such_column" in finding.observed


def test_nothing_is_written_to_the_terminal(capfd):
    validate(FRAME, [rule()])
    assert capfd.readouterr() == ("", "")


def test_no_rules_and_no_rows_pass():
    assert validate(FRAME, []).passed
    assert validate(FRAME.iloc[:0], [rule()]).passed
