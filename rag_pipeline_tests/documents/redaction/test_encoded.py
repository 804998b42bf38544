"""Secrets that nothing shows as they are written: encoded as a whole, beside their public half, in several pieces."""

from __future__ import annotations

import base64
import json
import random

import pytest

from rag_pipeline.documents.redaction import redact
from rag_pipeline_tests.documents.redaction.planted import ALNUM, BASE64, HEX, UPPER, run

RNG = random.Random(11)
KEY_ID = "AK" + "IA" + run(UPPER, 16)(RNG)
SECRET = run(ALNUM, 3)(RNG) + "/" + run(BASE64, 35)(RNG) + "x"
PASSWORD = "Gr33nTea9!x"
PEM = "\n".join(
    ["-----BEGIN PRIVATE KEY-----", *(run(BASE64, 64)(RNG) for _ in range(9)), "-----END PRIVATE KEY-----\n"]
)


def encoded(text: str) -> str:
    """In Base64, on one line."""
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("code", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        f"User name,Password,Access key ID,Secret access key\nada,,{KEY_ID},{SECRET}\n", f"{KEY_ID}\n{SECRET}\n",
        f"echo {KEY_ID}:{SECRET} > ~/.passwd-s3fs", f"we used {KEY_ID}/{SECRET} for it",
        f'credentials.NewStaticCredentials("{KEY_ID}", "{SECRET}", "")', f"| {SECRET} | {KEY_ID} |",
    ],
)  # fmt: skip
def test_what_stands_beside_the_id_of_a_key_goes_with_it(text: str, code: bool) -> None:
    done = redact(f"{text}\n", code=code)
    assert KEY_ID not in done.text and SECRET not in done.text
    assert "aws-secret-access-key" in {span.kind for span in done.spans}


@pytest.mark.parametrize("beside", [run(HEX, 40)(RNG), "/".join(["services", "storage", "buckets", "policies", "abc"])])
def test_a_hash_or_a_path_beside_the_id_of_a_key_stays(beside: str) -> None:
    assert redact(f"{KEY_ID} was in {beside}\n").text == f"[REDACTED:aws-access-key-id] was in {beside}\n"


WHOLE = {
    "private key": PEM,
    "service account": json.dumps({"type": "service_account", "private_key": PEM}, indent=2),
    "registries": json.dumps({"auths": {"ghcr.io": {"username": "ada", "password": PASSWORD}}}),
    "address": f"postgresql://ada:{PASSWORD}@db.internal/app",
}


@pytest.mark.parametrize("code", [False, True])
@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("line", ["X_B64={}", "  other: '{}'", '{{"data": {{"x": "{}"}}}}', "echo {} | base64 -d"])
def test_base64_of_a_text_with_a_secret_goes_as_a_whole(kind: str, line: str, code: bool) -> None:
    word = encoded(WHOLE[kind])
    done = redact(line.format(word), code=code)
    assert word[:40] not in done.text and word[-40:] not in done.text
    assert done.text == redact(done.text, code=code).text


def test_base64_that_was_wrapped_goes_with_all_its_lines() -> None:
    lines = [encoded(PEM)[at : at + 76] for at in range(0, len(encoded(PEM)), 76)]
    text = "data:\n  id_rsa: |\n" + "\n".join(f"    {line}" for line in lines) + "\n  known_hosts: example.com\n"
    done = redact(text)
    assert not any(line in done.text for line in lines)
    assert done.text.count("\n") == text.count("\n") and done.text.endswith("\n  known_hosts: example.com\n")


@pytest.mark.parametrize(
    "manifest",
    [
        "apiVersion: v1\nkind: Secret\ndata:\n  user: {0}\n  login: {1}\n",
        'kind: "Secret"\nmetadata: {{name: db}}\ndata:\n  "user": "{0}"\n  "login": "{1}"\n',
        '{{"kind": "Secret", "data": {{\n  "user": "{0}",\n  "login": "{1}"\n}}}}',
    ],
)
def test_of_a_kubernetes_secret_what_holds_one_goes(manifest: str) -> None:
    plain, secret = encoded("ada-lovelace"), encoded(f"DB_PASSWORD={PASSWORD}")
    done = redact(manifest.format(plain, secret))
    assert plain in done.text and secret not in done.text


@pytest.mark.parametrize(
    "text",
    [
        f"tls.crt: {encoded(PEM.replace('PRIVATE KEY', 'CERTIFICATE'))}",
        f"//# sourceMappingURL=data:application/json;base64,{encoded(json.dumps({'version': 3, 'sources': ['a.ts']}))}",
        f"x: {encoded('https://example.com/a/page?of=the&documents=1')}",
        f"kind: ConfigMap\ndata:\n  login: {encoded(f'DB_PASSWORD={PASSWORD}')}\n",
        "kind: Secret\ndata:\n  enabled: dHJ1ZQ==\n  greeting: aGVsbG8gd29ybGQ=\n",
    ],
)
def test_base64_of_anything_else_stays(text: str) -> None:
    assert redact(f"\n{text}\n").spans == ()


@pytest.mark.parametrize("code", [False, True])
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('password = "ab\\"cd9!kX\\"yz77"', 'password = "[REDACTED:password]"'),
        ("{'password': 'p4\\'ss!w0rd\\'x'}", "{'password': '[REDACTED:password]'}"),
        ('password = "C:9!xK\\" # and "more"', 'password = "[REDACTED:password]" # and "more"'),
        (
            'api_key = "Zx81kQpL" + "99aVbTTq3" + "kKlmP0a"',
            'api_key = "[REDACTED:api-key]" + "[REDACTED:api-key]" + "[REDACTED:api-key]"',
        ),
        ("$apiKey = 'Zx81kQpLw0' . 'aVbTTq3kKl';", "$apiKey = '[REDACTED:api-key]' . '[REDACTED:api-key]';"),
        (
            'api_key = (\n    "Zx81kQpLwoE3"\n    "99aVbTTq3kl"\n)',
            'api_key = (\n    "[REDACTED:api-key]"\n    "[REDACTED:api-key]"\n)',
        ),
        ('api_key = "9yKq2LmZx4abc88dkfj3" + "!"', 'api_key = "[REDACTED:api-key]" + "[REDACTED:api-key]"'),
    ],
)
def test_a_literal_goes_with_its_escaped_quotes_and_with_what_is_put_behind_it(
    text: str, left: str, code: bool
) -> None:
    assert redact(text, code=code).text == left


@pytest.mark.parametrize(
    "text",
    ['password = "the " + "words"', 'token = "a\\"b"', 'secret = ("one"\n          "two")', 'key_token = "x" . "y"'],
)
def test_words_in_pieces_stay(text: str) -> None:
    assert redact(text, code=True).spans == ()
