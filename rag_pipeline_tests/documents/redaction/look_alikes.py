"""What looks like a secret and is none: ids, hashes, placeholders, documented examples, code that names a secret."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator

from rag_pipeline_tests.documents.redaction.planted import BASE64, HEX, LOWER, run, uuid

PLACEHOLDERS = (
    "your-api-key", "YOUR_API_KEY", "<token>", "<your-token-here>", "xxxxxxxxxxxxxxxx", "XXXX-XXXX",
    "changeme", "change-me",
    "${VAR}", "${API_KEY}", "$SECRET", "{{ var }}", "{{ secrets.TOKEN }}", "${{ secrets.GITHUB_TOKEN }}",
    "%(password)s",
    "********", "...", "null", "None", "true", "example", "my-secret-token", "insert-key-here", "REPLACE_ME", "test",
    "password", "secret", "token123", "{password}", "%PASSWORD%", "@@TOKEN@@", "process.env.API_KEY",
    "os.environ['KEY']",
    "settings.secret_key", "get_secret()", "config.get('token')", "vault:secret/data/app#key", "self._token",
    "dummy-value",
)  # fmt: skip
NAMES = ("password", "api_key", "API_TOKEN", "client_secret", "secret")
CODE = (
    "password = getpass.getpass()", "token = tokens[index]", "def login(user: str, password: str) -> None: ...",
    "secret: str | None = None", "api_key=api_key", "self.password = password", "if token == expected_token:",
    "token_count = 12345678", "max_tokens: 4096", "next_page_token = response.next_page_token", "pad_token = '[PAD]'",
    "password_hash = hash_password(password)", "tokens = tokenizer.encode(text)", "key = sorted(keys)[0]",
    "TOKEN_URL = 'https://auth.corp.io/oauth/token'", "primary_key = 'user_account_id'",
    "secretKeyRef: {name: db, key: pw}",
    "password_file: /run/secrets/db_password", "token_type: bearer", "public_key = 'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A'",
    "Authorization: Bearer <token>", "Authorization: Bearer $TOKEN", "curl -u user:password https://x.io",
    "curl -u $USER:$PASS https://x.io", "postgres://user:password@localhost/db", "redis://localhost:6379/0",
    "postgres://$USER:$PASSWORD@db/app", "https://github.com/a/b/pull/3", "git@github.com:owner/name.git",
    "mailto:someone@corp.io", "http://localhost:8080/@scope/pkg", "ssh -p 2222 host", "mysql -u root -p shop",
    "docker run -p 8080:80 nginx", "the token is invalid", "Your password is expired.", "the secret is out",
    "a basic authentication scheme", "bearer tokens are opaque strings", "v1.2.3-beta.4+build.20240501",
    "sha256:", "keyboard: qwerty", "monkey-patching", "class TokenAuthentication(BaseAuthentication):",
)  # fmt: skip


def look_alikes(rng: random.Random) -> Iterator[str]:
    """Lines that must stay as they are."""
    yield from CODE
    yield from (f"{name} = {value}" for name in NAMES for value in PLACEHOLDERS)
    yield from (f'{name}: "{value}"' for name in NAMES for value in PLACEHOLDERS)
    for _ in range(12):
        yield f"request id {uuid(rng)} failed"
        yield f"id: {uuid(rng)}"
        yield f"commit {run(HEX, 40)(rng)}"
        yield f"sha256:{run(HEX, 64)(rng)}"
        yield f'"integrity": "sha512-{run(BASE64, 86)(rng)}==",'
        yield f"--hash=sha256:{run(HEX, 64)(rng)} \\"
        yield f'etag: W/"{run(HEX, 32)(rng)}"'
        yield f'checksum = "{run(HEX, 64)(rng)}"'
        yield f"![logo](data:image/png;base64,iVBORw0KGgo{run(BASE64, 120)(rng)})"
        yield f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{run(BASE64, 43)(rng)} bob@host"
        yield f"image: app@sha256:{run(HEX, 64)(rng)}"
        yield f"cache_key: {run(LOWER, 32)(rng)}"
        yield "AK" + f"IAIOSFODNN7{'EXAMPLE'}"
        yield (
            "-----BEGIN CERTIFICATE-----\n"
            + base64.b64encode(rng.randbytes(200)).decode()
            + "\n-----END CERTIFICATE-----"
        )
        yield (
            "-----BEGIN PUBLIC KEY-----\n"
            + base64.b64encode(rng.randbytes(100)).decode()
            + "\n-----END PUBLIC KEY-----"
        )
        yield "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----"
        yield f'resolved "https://npm.corp.io/a/-/a-1.0.{rng.randint(0, 99)}.tgz#{run(HEX, 40)(rng)}"'
