"""Whether a value is what its name promises: a password that a person chose, or a token that a machine made."""

from __future__ import annotations

import re
from typing import Final

from rag_pipeline.documents.redaction.addresses import is_basic_auth
from rag_pipeline.documents.redaction.names import Sensitivity, is_weak, sensitivity
from rag_pipeline.documents.redaction.values import (
    entropy,
    is_hex,
    is_jumble,
    is_placeholder,
    is_plain,
    is_random,
    is_reference,
    is_uuid,
    is_words,
)

_CALL = re.compile(r"[A-Za-z_][\w.:]*(?:\(|\[)")
_DIGIT = re.compile(r"\d")
_SYMBOL = re.compile(r"[!\"#$%&'*+;<=>?@\\^`{|}~]")
"""Of ASCII: what other scripts write between words is none."""
_VARIABLE = re.compile(
    r"\$(?:[A-Za-z_]\w*(?:->\w+|\[[^\]]*\]|::?\w+|[./:-][\w./${}:-]*)*|[({].*|\$.*|[\d@*#?!])?", re.DOTALL
)
_SECRETS_OF_PEOPLE: Final = 12
"""Characters of a secret that a person chose, for what machines choose elsewhere."""
_NO_PASSWORD = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.]+|[A-Za-z_]+[:=,%!?]|%\w+|#[\w-]+|:[a-z_]+"
    r"|[a-z_]+(?::[\w,]+)?(?:\|[a-z_]+(?::[\w,]+)?)+|%env\(.*\)%|@\w[\w.]*\(.*\)"
)
_PATTERN = re.compile(r"\(\?|/?\^")
_CHARACTER_CLASS = re.compile(r".{0,80}(?:a-z|A-Z|0-9|\\[dws])(?:A-Z|0-9|_|-)*\]")
"""Regular expressions, which drawn values may begin like."""
_SERIAL = re.compile(r"(?=(?:[A-Za-z]*\d){5})(?=\d*[A-Za-z])[A-Za-z0-9]{20,}[-_=]*")
"""Letters and digits in a row, as no name has them."""
_DIGEST = re.compile(r"(?:sha\d{1,3}|md5)[-:]")
_ELSEWHERE: Final = ("http://", "https://", "file:", "arn:", "~/", "vault:", "ssm:", "env:", "op://")
_PUBLIC: Final = ("ssh-", "-----BEGIN CERT", "-----BEGIN PUB", "data:")


def is_secret(name: str, value: str) -> bool:
    """Whether a value that stands under a name, as in front matter, is a secret."""
    promised = sensitivity(name)
    return promised is not None and is_plausible(name, promised, value, quoted=True, loose=False)


def is_plausible(name: str, promised: Sensitivity, value: str, *, quoted: bool, loose: bool) -> bool:
    """Whether the value is what its name promises; `loose`: it stands where words and code stand as well."""
    value = value.strip().removeprefix("{noop}")
    if len(value) < 4 or is_placeholder(value) or is_words(value) or value.startswith(_ELSEWHERE):
        return False
    if value.startswith("$") and (not quoted or _VARIABLE.fullmatch(value)):
        return False
    if promised == "auth":
        return is_basic_auth(value)
    if promised == "password":
        return _is_password(value, quoted=quoted, loose=loose)
    if promised in ("env-key", "described"):
        odd = is_random(value) and not is_uuid(value) and not is_plain(value) and not _CHARACTER_CLASS.match(value)
        return is_jumble(value) or (len(value) >= 20 and odd and entropy(value) > 3.3 and " " not in value)
    return _is_token(name, value, quoted=quoted, loose=loose)


def _is_password(value: str, *, quoted: bool, loose: bool) -> bool:
    if value.startswith("$ANSIBLE_VAULT;"):
        return True  # a password opens it
    if len(value) > 256 or is_plain(value) or " " in value or _PATTERN.match(value) or _CHARACTER_CLASS.match(value):
        return False
    if is_random(value) or is_jumble(value):
        return quoted or not _CALL.match(value)
    symbol, digit, letter = _SYMBOL.search(value), _DIGIT.search(value), any(c.isalpha() for c in value)
    if not quoted and (is_reference(value) or _CALL.match(value)):
        # `hunter2` without quotes is a password in YAML and a variable in code.
        return not loose and bool(digit and letter) and value.isalnum() and len(value) >= 6
    if not quoted and loose:
        return bool(symbol and digit and letter) and len(value) >= 8 and not value.startswith(("(", "[", "{", "*", "&"))
    if _CALL.match(value) and value.endswith((")", "]")):
        return False
    return len(value) >= 5 and letter and bool(digit or symbol) and not _NO_PASSWORD.fullmatch(value)


def _is_token(name: str, value: str, *, quoted: bool, loose: bool) -> bool:
    if len(value) < (16 if loose or is_weak(name) else 10) or " " in value or is_plain(value):
        return False
    if (
        value.startswith(_PUBLIC)
        or _CHARACTER_CLASS.match(value)
        or _DIGEST.match(value)
        or (not quoted and _CALL.match(value))
    ):
        return False
    if is_uuid(value):
        return not (loose and is_weak(name))
    if is_hex(value):
        return len(value) >= 20 and not value.isdigit() and entropy(value) > 2.5
    if quoted and name.lower().endswith("secret") and not is_weak(name) and len(value) >= _SECRETS_OF_PEOPLE:
        return is_random(value) or bool(_SYMBOL.search(value) and _DIGIT.search(value) and not _CALL.match(value))
    if is_jumble(value) or (not loose and not is_weak(name) and _SERIAL.fullmatch(value)):
        return True
    return is_random(value) and entropy(value) > (3.0 if len(value) >= 16 else 2.7)
