"""The benchmark reads the public sets of other scanners with their labels, and says what it leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_pipeline.errors import ConfigError
from rag_pipeline_tests.bench.secrets_gitleaks import gitleaks_cases
from rag_pipeline_tests.bench.secrets_public import detect_secrets_cases

_TABLES = """
KEY = 'k9Qw3Er7TzU1pLx8'
CONFIG_TEST_CASES = [
    ('password = "{}"'.format(KEY), KEY),
    ('api_key = ""', None),
    ("api_key = '{}';".format(KEY), None),
]

@pytest.mark.parametrize('payload, should_flag', [
    ('ibm_key: {key}'.format(key=KEY[:8]), True),
    ('AKCxxxxxxxxxx', True),
    ('sl-key: 0123456789', True),
    (f'foo:{KEY}', False),
])
def test_it(payload, should_flag): ...

@pytest.mark.parametrize('line', ['xoxb-34532454', ('xoxp-523423')])
def test_one(line): ...
"""
_RULES = """
func Rule() *config.Rule {
	tps := []string{
		"token = \\"k9Qw3Er7TzU1pLx8\\"", // said in a comment, "not a case"
		`raw, with "quotes"`,
		"made" + secrets.NewSecret("x"),
		utils.GenerateSampleSecret("a", "b"),
	}
	tps = append(tps, "more")
	fps := []string{"harmless", "x k9Qw3Er7TzU1pLx8 x"}
	return utils.Validate(r, tps, fps)
}
"""


def test_tables_of_detect_secrets_are_read_with_labels(tmp_path: Path) -> None:
    (tmp_path / "tests" / "plugins").mkdir(parents=True)
    (tmp_path / "tests" / "plugins" / "some_test.py").write_text(_TABLES, encoding="utf-8")
    public = detect_secrets_cases(tmp_path)
    assert [(case.text, case.is_secret, case.value) for case in public.cases] == [
        ('password = "k9Qw3Er7TzU1pLx8"', True, "k9Qw3Er7TzU1pLx8"),
        ('api_key = ""', False, None),
        ("ibm_key: k9Qw3Er7", True, None),
        ("xoxb-34532454", True, None),
        ("xoxp-523423", True, None),
    ]
    assert sorted(public.left_out.values()) == [2, 2]


def test_literal_lines_of_gitleaks_are_read_with_labels(tmp_path: Path) -> None:
    folder = tmp_path / "cmd" / "generate" / "config" / "rules"
    folder.mkdir(parents=True)
    (folder / "some.go").write_text(_RULES, encoding="utf-8")
    public = gitleaks_cases(tmp_path)
    assert [(case.text, case.is_secret) for case in public.cases] == [
        ('token = "k9Qw3Er7TzU1pLx8"', True),
        ('raw, with "quotes"', True),
        ("more", True),
        ("harmless", False),
    ]
    assert list(public.left_out.values()) == [1]


def test_another_folder_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    for read in (detect_secrets_cases, gitleaks_cases):
        with pytest.raises(ConfigError, match="give --"):
            read(tmp_path)
