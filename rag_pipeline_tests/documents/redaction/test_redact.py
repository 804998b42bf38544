"""No planted secret survives, look-alikes stay, and what was redacted can be told from its place."""

from __future__ import annotations

import base64
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.documents.redaction import Redacted, engine_version, redact
from rag_pipeline_tests.documents.redaction.contexts import ANYWHERE
from rag_pipeline_tests.documents.redaction.contexts import NAMED as NAMED_CONTEXTS
from rag_pipeline_tests.documents.redaction.look_alikes import look_alikes
from rag_pipeline_tests.documents.redaction.planted import NAMED, PLACED, TOKENS, word

SEED = 20240501
CODE = {"go", "ruby", "typescript"}


def leaked(text: str, value: str, *, code: bool = False) -> bool:
    """Whether the value, or the greater part of it, is still there."""
    left = redact(text, code=code).text
    return value in left or value[4:-4] in left or value[len(value) // 2 :] in left


def test_enough_kinds_are_planted() -> None:
    assert len(TOKENS) + len(NAMED) + len(PLACED) >= 80


@pytest.mark.parametrize("kind", TOKENS)
def test_a_format_is_found_wherever_it_stands(kind: str) -> None:
    rng = random.Random(SEED)
    for context, template in ANYWHERE.items():
        value = TOKENS[kind](rng)
        if context != "url" or "/" not in value:
            assert not leaked(template.format(value), value), context


@pytest.mark.parametrize("kind", PLACED)
def test_a_value_is_found_by_its_place(kind: str) -> None:
    rng = random.Random(SEED)
    template, make = PLACED[kind]
    value = make(rng)
    assert not leaked(template.format(value), value), kind


def test_a_value_is_found_by_its_name() -> None:
    rng = random.Random(SEED)
    missed, tried = [], 0
    for kind, (name, make) in NAMED.items():
        for context, template in NAMED_CONTEXTS.items():
            value, tried = make(rng), tried + 1
            if leaked(template.format(name=name, value=value), value, code=context in CODE):
                missed.append((kind, context))
    # People choose passwords: a few read like words.
    assert len(missed) <= tried * 0.005, missed


def test_look_alikes_stay() -> None:
    lines = list(look_alikes(random.Random(SEED)))
    redacted = [line for line in lines if redact(line).spans]
    assert len(lines) >= 300
    assert len(redacted) <= len(lines) * 0.02, redacted


def key_block(rng: random.Random, label: str, newline: str = "\n") -> str:
    body = base64.b64encode(rng.randbytes(600)).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return newline.join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])


@pytest.mark.parametrize(
    "label",
    [f"{kind}PRIVATE KEY" for kind in ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ")]
    + ["PGP PRIVATE KEY BLOCK"],
)
@pytest.mark.parametrize("newline", ["\n", "\\n", "\n    ", "\n# ", '\\n"\n  "'])
def test_private_keys_go_and_their_lines_stay(label: str, newline: str) -> None:
    block = key_block(random.Random(SEED), label, newline)
    text = f"before\n{block}\nafter\n"
    done = redact(text)
    assert [span.kind for span in done.spans] == ["private-key"]
    assert done.text.count("\n") == text.count("\n")
    assert done.text.startswith("before\n[REDACTED:private-key]\n")
    assert done.text.endswith("\nafter\n")


def test_a_private_key_that_nothing_closes_goes_too() -> None:
    block = key_block(random.Random(SEED), "RSA PRIVATE KEY").rpartition("\n")[0]
    assert (
        redact(f"{block}\n\nThe rest of the page.").text.strip()
        == "[REDACTED:private-key]" + "\n" * block.count("\n") + "\n\nThe rest of the page."
    )


def test_only_the_value_is_replaced() -> None:
    value = word(random.Random(SEED))
    assert redact(f"DB_PASSWORD={value}\n").text == "DB_PASSWORD=[REDACTED:password]\n"
    assert (
        redact(f"postgres://app:{value.replace('@', 'x')}@db/x").text
        == "postgres://app:[REDACTED:password-in-url]@db/x"
    )


def test_a_value_that_was_given_away_once_goes_everywhere() -> None:
    value = NAMED["api-key"][1](random.Random(SEED))
    assert redact(f"api_key = '{value}'\n\nlater: {value} again").text.count("[REDACTED:api-key]") == 2


ENTRIES = st.sampled_from(
    ["password", "ssh2_auth_password", "db_auth_9", "(?i)secret9!", "ssh2_exec!", "pwd_1!", "token", "api_key"]
)


@given(entries=st.lists(ENTRIES, min_size=2, max_size=30), between=st.sampled_from([",\n    ", ", ", ",\n", " | "]))
def test_a_list_of_names_is_done_in_one_go(entries: list[str], between: str) -> None:
    text = f"NAMES = [{between.join(repr(entry) for entry in entries)}]"
    done = redact(text, code=True)
    assert redact(done.text, code=True).spans == ()
    # What follows a marker is not its value.
    assert all("REDACTED" not in text[span.start : span.end] for span in done.spans)


def test_of_a_list_with_a_line_for_each_name_nothing_is_the_value_of_the_one_before() -> None:
    names = ["ssh2_auth_none", "ssh2_auth_password", "ssh2_auth_pubkey_file", "ssh2_connect_9!", "(?i)pwd", "(?i)x9"]
    lines = ",\n    ".join(f"'{name}'" for name in names)
    assert redact(f"'SSH2': ({lines})", code=True).spans == ()
    value = NAMED["password"][1](random.Random(SEED))
    assert value not in redact(f"login('ada',\n    'password',\n    '{value}')", code=True).text
    assert redact("run(['db',\n  '--password',\n  'hunter2!'])").text == (
        "run(['db',\n  '--password',\n  '[REDACTED:password]'])"
    )


@pytest.mark.parametrize("next_entry", ["hunter2!x", "ssh2_connect_9!"])
def test_the_kind_in_a_marker_is_no_name(next_entry: str) -> None:
    assert redact(f"['[REDACTED:password]', '{next_entry}']", code=True).spans == ()


def test_a_mark_for_scanners_excuses_nothing() -> None:
    value = TOKENS["github-classic"](random.Random(SEED))
    assert value not in redact(f'x = "{value}"  # gitleaks:allow').text


def test_addresses_go_when_asked() -> None:
    text = "Ask ada.lovelace@corp.io or docs@example.com, never noreply@corp.io; clone git@github.com:a/b."
    assert redact(text).spans == ()
    assert redact(text, emails=True).text == text.replace("ada.lovelace@corp.io", "[REDACTED:email]")


def test_allowed_values_stay() -> None:
    value = NAMED["api-key"][1](random.Random(SEED))
    assert redact(f"api_key = '{value}'", allowed=(value[:4] + ".*",)).spans == ()


def assert_sound(text: str, done: Redacted) -> None:
    assert done.text.count("\n") == text.count("\n")
    assert redact(done.text).spans == ()
    at = 0
    for span in done.spans:
        assert at <= span.start < span.end <= len(text)
        at = span.end
    for span in done.spans:
        assert done.text[: done.moved(span.end)].endswith(span.replacement)


PIECES = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["password: ", "token=", "\n", '"', " | ", "://u:", "@h", "api_key = ", "Bearer ", "[REDACTED:x]", "İ"]
    ),
    st.builds(
        lambda kind, seed: TOKENS[kind](random.Random(seed)), st.sampled_from(sorted(TOKENS)), st.integers(0, 99)
    ),
    st.builds(lambda seed: word(random.Random(seed)), st.integers(0, 999)),
)


@given(pieces=st.lists(PIECES, max_size=12))
def test_redaction_is_idempotent_and_keeps_lines_and_places(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert_sound(text, redact(text))


@pytest.mark.parametrize(
    "line",
    [
        "a" * 5_000_000,
        "api_key=" * 600_000,
        '"' * 5_000_000,
        "http://a:" * 550_000,
        "%2F" * 1_600_000,
        "eyJ" * 1_600_000,
        "\n" + " " * 2_500_000 + "|-|",
        "|password|\n|-|\n" * 300_000,
    ],
)
def test_hostile_lines_take_no_time(line: str) -> None:
    redact("x")
    began = time.process_time()
    redact(line)
    assert time.process_time() - began < 30  # hours, where the time grows with the square


def test_many_secrets_are_found_again_in_one_pass() -> None:
    rng = random.Random(SEED)
    tokens = [NAMED["cohere"][1](rng) for _ in range(3000)]
    text = "".join(f'{{"id": {number}, "api_token": "{token}"}},\n' for number, token in enumerate(tokens))
    text += "again: " + " ".join(tokens[::100])
    redact("x")
    began = time.process_time()
    done = redact(text)
    assert time.process_time() - began < 30  # hours, where the time grows with the square
    assert not any(token in done.text for token in tokens)


def test_the_detector_has_a_version() -> None:
    assert engine_version()[0].isdigit()
