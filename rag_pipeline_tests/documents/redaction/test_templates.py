"""Which values are placeholders of templates, and which only hold the same signs."""

from __future__ import annotations

import pytest

from rag_pipeline.documents.redaction import redact

_PLACEHOLDERS = (
    "password: {{ vault_db_password }}",
    "password: {{db.password}}",
    "password: \"{{ lookup('env', 'DB_PW') }}\"",
    'password: "{{ .Values.auth.password | default (randAlphaNum 10) | quote }}"',
    "password: ${{ secrets.DB_PASSWORD }}",
    "password: ${DB_PASSWORD:-${FALLBACK}}",
    "password: ${PASSWORD:?must be set}",
    'password = "${var.prefix}-${random_id.x.hex}"',
    "password: \"#{ENV['DB_PASSWORD']}\"",
    "password: $(cat /run/secrets/db)",
    'password = "%(password)s"',
    "password: <your password>",
    'password: <%= ENV["DB_PASSWORD"] %>',
    "password: ((db-password))",
    'SECRET_KEY = "{secret}"',
    "secret: `${prefix}:${id}`",
)
_SIGNS = ("p{{q}W)x${", "zLm#t>k]w*~", "a!b@c#d$e%", "Zk${r!pQw#")
_ORDINARY = (
    'password_regex = "^(?=.*[A-Za-z])(?=.*[0-9])[A-Za-z0-9@$!%*#?&]{8,}$"',
    "SANITIZE = re.compile(r'([^&;]*(?:password|token)[^=]*=)[^&;]+')",
    "longopt_pat = r'[a-zA-Z](?:[a-zA-Z0-9-]*)'",
    'password_symbols = "!@#$%^&*()"',
    'if (password == "") {',
    'if ("password" == field.name) {',
    'if ("confirmPassword" !== passwordField) {',
    'password_hint: "Your first pet?"',
    'apiKeyLabel: "API key (required)"',
    "secrets: inherit",
    "secrets = client.secrets.list()",
    "curl -u <user:password> https://api.corp.io",
    "curl -u user: https://api.corp.io",
    'curl -u "${TOKEN}:" https://api.corp.io',
    "BUNDLE_GEMS__CORP__COM: user:password",
    'BUNDLE_PATH: "vendor/bundle"',
)


def _joined(*parts: str) -> str:
    """A made-up secret, which stands in one piece nowhere in this file."""
    return "".join(parts)


@pytest.mark.parametrize("line", [*_PLACEHOLDERS, *_ORDINARY])
def test_whole_placeholders_and_ordinary_lines_stay(line: str) -> None:
    assert redact(line).text == line


@pytest.mark.parametrize(
    "line",
    [
        'password = "{}"',
        "api_key: '{}'",
        "db_pass = {}",
        "passwd := {},",
        'std::string secret("{}");',
        'secret.assign("{}", 17);',
        'if ("{}" === private_key) {{',
        'if ("{}" != settings.password) {{',
        'password_for_jenkins = @"{}";',
        "apikey_myservice: `{}`",
        'apiKeyForBilling: "{}"',
    ],
)
@pytest.mark.parametrize("half", _SIGNS)
def test_values_full_of_signs_are_values(line: str, half: str) -> None:
    value = half + _SIGNS[1]
    done = redact(line.format(value))
    assert done.spans
    assert value[:8] not in done.text
    assert value[-8:] not in done.text


def test_drawn_text_next_to_a_placeholder_is_a_secret() -> None:
    assert redact(f'password: "{{{{x}}}}{_joined("k9Qw3Er7", "TzU1pL")}"').spans


@pytest.mark.parametrize(
    "line",
    [
        f"curl -u '{_joined('k9Qw3Er7', 'TzU1pLx8')}:' https://api.corp.io",
        f"curl -u :'{_joined('k9Qw3!', 'Er7Tz')}' https://api.corp.io",
        f"curl -u bob:'{_joined('k9Qw3', 'Er7Tz')}' https://api.corp.io",
        f"BUNDLE_GEMS__CORP__COM=bob:{_joined('h8sd', 'f7s2')}",
        f"Authorization: Basic {_joined('djJlNEpYa0NJUHZ5', 'a2FWT0VRXzRqZ/+/ZUdDkw')}",
        f"{_joined('eyJhbGciOiJub', '25lIn0')}.{_joined('eyJzdWIiOiJqYW5lIiwi', 'cm9sZSI6ImFkbWluIn0')}.",
        f"softlayer_key = '{_joined('a1b2', 'c3d4') * 8}'",
        f"{_joined('gl', 'ptt-')}{_joined('Need5T00', 'be3xactly9') * 2}x1y2",
    ],
)
def test_vendors_formats_and_commands(line: str) -> None:
    assert redact(line).spans


@pytest.mark.parametrize(
    "line",
    [
        f"{_joined('gl', 'ptt-')}hellOworld380_testin",
        f"{_joined('gl', 'agent-')}{'X' * 200}",
        f"icons/video.{_joined('ic', 'o-')}7a388b69018576d24b59331fd60aab0c.png",
        f"{_joined('py', 'pi-')}AgEIcHlwaS5vcmcCJDU3OTM1MjliLWIyYTYtNDEwOC05NzRk",
    ],
)
def test_tokens_of_another_length_are_no_tokens(line: str) -> None:
    assert not redact(line).spans
