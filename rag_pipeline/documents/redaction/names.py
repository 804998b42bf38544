"""Which names say that their value is a secret: `DB_PASSWORD`, `api-key`, `clientSecret`, `client-key-data`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

Sensitivity = Literal["password", "token", "auth", "env-key", "described"]
"""`password`: people choose the value; `token`: machines do; `auth`: base64 of `user:password`; `env-key`: `…_KEY=`;
`described`: other words follow the telling one, so that the value must speak for itself.
"""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TRAILING = re.compile(
    r"(?:value|base|b64|base64|plain|plaintext|text|string|str|raw|live|test|prod|production|dev|staging|primary|secondary"
    r"|old|new|current|default|main|v?\d{1,3})$"
)
_PASSWORD = re.compile(
    r"(?:password|passwd|passwort|passphrase|passcode|kennwort|motdepasse|contrasena|pwd|pswd|passw|pw|psw"
    r"|requirepass|masterauth)$"
)
# In `bandpass` and `encompass` it is the end of another word.
_PASS_WORDS: Final = frozenset(
    [
        "pass",
        "dbpass",
        "userpass",
        "smtppass",
        "mailpass",
        "ftppass",
        "mypass",
        "sqlpass",
        "pgpass",
        "adminpass",
        "rootpass",
        "storepass",
        "keypass",
        "deststorepass",
        "srcstorepass",
        "destkeypass",
        "srckeypass",
    ]
)
_TOKEN = re.compile(
    r"(?:secrets?e?|token|jwt|pat|bearer|credential|credentials|creds|cred|signature|sig"
    r"|(?:api|app|auth|access|secret|private|encryption|encrypt|decryption|signing|sign|signature|account|master|license"
    r"|licence|admin|service|storage|shared|sharedaccess|consumer|client|hmac|jwt|write|ingest|ingestion|integration"
    r"|routing|session|cookie|security|webhook|deploy|deployment|ssh|application|functions|host|developer|subscription"
    r"|product|crypto|aes|fernet|registration|join|unseal|recovery|root|system|user|bot|project|instrumentation"
    r"|datadog|openai|anthropic|stripe|sendgrid|mailgun|mailchimp|twilio|google|gemini|groq|mistral|cohere|algolia"
    r"|newrelic|heroku|fastly|cloudflare|linode|pagerduty|okta|zendesk|intercom|postmark|airtable|figma|asana|notion"
    r"|huggingface|hf|maps|aws|azure|gcp)key"
    r"|secretkeybase|keydata|railsmasterkey|psk|mnemonic)$"
)
# Whole words of a name, of which one says that anybody may see the value.
_PUBLIC: Final = frozenset(
    [
        "public",
        "pub",
        "publishable",
        "page",
        "next",
        "prev",
        "previous",
        "continuation",
        "sync",
        "cursor",
        "idempotency",
        "csrf",
        "xsrf",
        "authenticity",
        "partition",
        "cache",
        "sort",
        "primary",
        "foreign",
        "dedup",
        "dedupe",
        "bypass",
        "num",
        "max",
        "min",
        "total",
        "bos",
        "eos",
        "pad",
        "unk",
        "cls",
        "sep",
        "mask",
        "stop",
        "special",
        "input",
        "output",
        "prompt",
        "completion",
        "separator",
        "delimiter",
        "keyword",
        "operator",
        "comment",
        "image",
        "audio",
        "sub",
    ]
)
_WEAK: Final = frozenset(
    [
        "secret",
        "token",
        "credential",
        "credentials",
        "cred",
        "creds",
        "pass",
        "pw",
        "pat",
        "psk",
        "sig",
        "signature",
        "jwt",
        "bearer",
        "keydata",
        "hostkey",
        "userkey",
        "systemkey",
        "rootkey",
        "productkey",
        "projectkey",
    ]
)
_MOST_WORDS: Final = 6
_AUTH: Final = frozenset({"auth", "dockerauth", "httpauth", "basicauth", "userauth"})
_ENVIRONMENT_KEY = re.compile(r"(?:^|[A-Z0-9]_)[A-Z0-9]*KEY")

_DESCRIBED: Final = re.compile(
    r"(?:password|passwd|pwd|(?:db|database|key|user|admin|root)pass|secrete?|(?:api|auth|account|private|client|access)key)"
)
"""What a name may say before it says which one: `password_for_jenkins`, `apikey_myservice`."""
_ABOUT: Final = re.compile(
    r"ids?|names?|fields?|inputs?|labels?|policy|hash\w*|digest|checksum|sha|md|len|length|size|count\w*|min|max|limit"
    r"|ur[il]|path|file\w*|dir|type|kind|regex|pattern|rules?|format|header|prefix|suffix|refs?|reference|arn|version"
    r"|expir\w+|ttl|timeout|date|time|at|age|endpoint|provider|manager|store|source|algo\w*|encod\w+|strength|prompt"
    r"|hint|message|msg|error|title|text|placeholder|help|desc|description|class|cls|selector|xpath|css|element"
    r"|button|form|page|link|reset|changed?|updated|required|enabled|disabled|status|state|valid|invalid|is|has|test"
    r"|fixture|schema|params?|arg|column|attr\w*|propert\w+|props|config|mode|method|scheme|namespace|engine|list|map"
    r"|env|var\w*|finder|detector|scanner|template|resource|group|scopes?|owner"
)
"""Words behind it that say what else the value is."""


@lru_cache(maxsize=8192)
def sensitivity(name: str) -> Sensitivity | None:
    """What a name promises of its value; None: nothing secret."""
    words = [word.lower() for word in _WORD.findall(name)]
    plain = "".join(words)[-60:]
    if plain in _AUTH:
        return "auth"
    if not _PUBLIC.isdisjoint(words):
        return None
    if not _PASS_WORDS.isdisjoint(words[-1:]):
        return "password"
    for candidate in (plain, _TRAILING.sub("", plain)):
        if _PASSWORD.search(candidate):
            return None if words[0] in {"no", "nopasswd", "lock"} else "password"
        if _TOKEN.search(candidate):
            return "token"
    if len(words) <= _MOST_WORDS and _DESCRIBED.search(plain) and not any(map(_ABOUT.fullmatch, words)):
        return "described"
    return "env-key" if _ENVIRONMENT_KEY.fullmatch(name[-40:].split(".")[-1]) or name.endswith("_KEY") else None


def is_weak(name: str) -> bool:
    """Whether the name alone, such as `token`, is used for much that is no secret."""
    return "".join(word.lower() for word in _WORD.findall(name)) in _WEAK
