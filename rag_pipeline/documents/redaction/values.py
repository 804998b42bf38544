"""What a value looks like by itself: chosen at random, a placeholder, or a name of something else. Pure functions."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from itertools import pairwise
from typing import Final

from rag_pipeline.documents.redaction.templates import is_balanced, outside_placeholders

_WORDS = (
    "a|abc|access|account|actual|add|admin|allowed|an|and|any|api|app|apikey|application|are|at|auth|authorization|aws|azure|bad|bar|basic|baz|"
    "bearer|bot|change|changed|changeit|changeme|choose|client|code|config|correct|credential|credentials|custom|data|database|db|"
    "default|demo|dev|docs|dummy|empty|enter|env|example|expired|fake|file|fill|fixme|foo|foobar|for|from|generate|"
    "generated|get|git|github|gitlab|go|google|guest|has|hello|here|hidden|id|in|incorrect|input|insert|invalid|is|it|jwt|key|letmein|live|local|"
    "localhost|login|long|masked|me|missing|mock|mongo|must|my|mysql|name|new|no|none|not|null|nil|number|oauth|of|old|one|only|"
    "openai|or|original|paste|pass|passphrase|password|passwd|personal|placeholder|please|postgres|postgresql|private|prod|production|project|provide|public|"
    "put|pwd|qux|rabbitmq|random|read|real|redacted|redis|refresh|removed|replace|replaced|request|required|reset|root|"
    "same|sample|sandbox|scope|scott|tiger|repo|branch|secret|secrets|secure|see|server|service|session|set|shared|should|signing|slack|some|something|spam|staging|static|"
    "string|stripe|strong|super|test|tester|testing|text|that|the|this|to|todo|token|two|undefined|unset|use|used|user|username|valid|"
    "value|var|very|weak|webhook|with|world|write|wrong|xxx|you|your|yours|hash|hashed|encrypted|plain|plaintext|salt|e\\.?g|etc|eggs|ham|true|false|yes|off|on|optional|unknown|unused|temp|tmp|sekret|sekrit|pw|ok|by|url|uri|host|path|type|base64|utf8|sha256|md5|rsa|ssh|x509"
)
_WEAK = re.compile(rf"(?:(?:{_WORDS})s?[ _.\-/:]*){{1,12}}[\d!@#$*._\- ]{{0,6}}", re.IGNORECASE)
_NEXT = "|".join(f"{a}(?={b})" for a, b in (*pairwise(string.ascii_lowercase), *pairwise(string.digits), "90"))
_MASKED = re.compile(r"\*{3,}|\.{3,}")
_FILLER = re.compile(rf"(?i)x{{4,}}|_{{4,}}|-{{4,}}|([0-9a-z])\1{{7,}}|qwerty|(?:{_NEXT}){{5,}}[a-z0-9]")
"""What fills up a value that stands for another: one character many times, or the alphabet."""
_FEWEST_DIGITS, _SHORTEST_EASY = 5, 6
_RANDOM_REST = 24
"""Characters that make a real value, whatever filler stands between them."""
_EXAMPLE = re.compile(
    r"(?i)(?:^|[^a-z]|[a-z0-9](?=EX))(?:example|placeholder|changeme|change[-_]me|your[-_]|dummy|redacted|insert[-_]|replace[-_]"
    r"|not[-_]?a[-_]?real|not[-_]?real|[-_]here\b|my[-_](?:secret|api|token|password|key)|sample[-_]|fake[-_]|test[-_](?:key|token|secret|password))"
)
# Documented examples: AWS's, jwt.io's signature, Azurite's and Cosmos' emulator keys, Stripe's of the documentation.
_DOCUMENTED = re.compile(
    r"EXAMPLE(?:KEY)?$|\.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ$|SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c|Eby8"
    r"vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq"
    r"|C2y6yDjf5/R\+ob0N8A7Cgv30VRDJIWEHLM\+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw|sk_te"
    r"st_4eC39HqLyjWDarjtT1zdp7dc"
)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{16,}")
_IDENTIFIER = re.compile(r"[A-Za-z_$@][\w$]*(?:(?:\.|::|->|\?\.|-|/)[\w$]*)*")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?|v?\d+(?:\.\d+)+(?:[-+.]\w+)*|\d+(?:px|ms|s|m|h|d|kb|mb|%)?", re.IGNORECASE
)
_PATH = re.compile(
    r"(?:~|\.{1,2}|/[\w.@-]+|[A-Za-z]:\\)(?:[/\\][\w.@ -]*)+|(?:[\w.-]+/){2,}[\w.-]*"
    r"|[\w-]+\.(?:py|js|ts|json|ya?ml|toml|pem|crt|key|txt|md|html|com|org|net|io|env|cfg|ini|sh|xml)"
)
_CAMEL_CASE = re.compile(r"[A-Za-z_.]*[a-z][A-Za-z0-9_.]*")
_SYMBOLS = re.compile(r"[^A-Za-z0-9]+")
_LONGEST_WORDS = 64
_JUDGED = 256  # characters of a value, as its beginning tells
_ODD = frozenset("!@#$%^&*()=+")
_MANY, _FEWEST_ODD = 20, 5
_PLAIN_SIGNS: Final = frozenset("_-./:,;'\"=+&% \t\n")
"""Those that names, paths, queries and numbers hold."""
_FEWEST_SIGNS: Final = 5
_REGEX = re.compile(r"\[\^|\(\?|[\])][*+?{]|\.[*+]")
_DRAWN = re.compile(r"(?=[^\d]*\d)[A-Za-z0-9!@#$%^&*()_=+-]+")


def is_placeholder(value: str) -> bool:
    """Whether it stands for a value: `<token>`, `${VAR}`, `changeme`, `xxxx`, `your-api-key`, a documented example."""
    if len(set(value)) <= 3 or (len(value) <= 512 and _is_template(value)) or _DOCUMENTED.search(value):
        return True
    if len(value) > 120:
        return 2 * Counter(value).most_common(1)[0][1] > len(value)
    return bool(_MASKED.search(value)) or is_words(value) or _is_filled(value)


def _is_template(value: str) -> bool:
    """Whether placeholders make it up, with nothing around them that a machine drew."""
    around = outside_placeholders(value)
    return around is not None and not any(is_random(text) for text in around)


def _is_filled(value: str) -> bool:
    """Whether it is put together from filler and words that say so, with no random value between them."""
    rest = _EXAMPLE.sub("", _FILLER.sub("", value))
    return rest != value and not (len(rest) >= max(_RANDOM_REST, len(value) // 2) and looks_drawn(rest))


def is_words(value: str) -> bool:
    """Whether it is made of words that documentation uses, as in `my-secret-token-1`."""
    return len(value) <= _LONGEST_WORDS and bool(_WEAK.fullmatch(value))


def is_uuid(value: str) -> bool:
    """Whether it is a UUID, as most ids and a few vendors' keys are."""
    return bool(_UUID.fullmatch(value))


def is_hex(value: str) -> bool:
    """Whether it is a number in hex of 64 bits or more, as hashes and some keys are."""
    return bool(_HEX.fullmatch(value))


def is_plain(value: str) -> bool:
    """Whether it is a date, a version, a number, a path or a file's or host's name."""
    return bool(_DATE.fullmatch(value)) or (len(value) <= 300 and bool(_PATH.fullmatch(value)) and not is_random(value))


def is_reference(value: str) -> bool:
    """Whether it reads as code that names something else: `settings.api_key`, `tokens[0]`, `get_token()`."""
    named = _IDENTIFIER.match(value[:200])
    if named is None:
        return False
    rest = value[named.end() :]
    return not is_random(named.group()) and (not rest or rest[0] in "([{?")


def entropy(value: str) -> float:
    """Shannon entropy of its characters, in bits per character."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) if size else 0.0


def is_random(value: str) -> bool:
    """Whether it looks chosen by a machine: letters, digits and cases mixed as no word or name mixes them."""
    value = value[:_JUDGED]
    if _is_camel_case(value):
        return False
    if len(value) >= _MANY and len(_ODD.intersection(value)) >= _FEWEST_ODD and _DRAWN.fullmatch(value):
        return True  # as Django draws them
    runs = _SYMBOLS.split(value)
    joined = "".join(runs)
    if len(runs) > 1 and len(joined) >= 10 and any(c.isdigit() for c in joined) and _mixed(joined) >= 0.36:
        return True
    best = max(runs, key=len)
    digits = sum(c.isdigit() for c in best)
    if len(best) < 8 or digits == len(best):
        return False
    if digits == 0:
        return len(best) >= 12 and (_case_switches(best) >= 0.36 or _unpronounceable(best))
    if digits == 1:
        odd = _mixed(best) >= 0.34 or _case_switches(best) >= 0.4
        return (len(best) >= 10 and odd) or (len(best) >= 16 and _unpronounceable(best))
    long_enough = len(best) >= 16 and _unpronounceable(best)
    return _mixed(best) >= 0.3 or long_enough or (len(best) >= 24 and _mixed(best) >= 0.24)


def is_jumble(value: str) -> bool:
    """Whether it is full of signs as no name, address or code is: brackets that do not close, or no brackets at all."""
    if len(set(value) - _PLAIN_SIGNS) < _FEWEST_SIGNS or len(value) > _JUDGED or "\\" in value:
        return False
    signs = {c for c in value if _is_sign(c)}
    has_letter = any(c.isalpha() for c in value)
    if _REGEX.search(value):
        return False
    return len(signs) >= _FEWEST_SIGNS and has_letter and not (signs & set("([{") and is_balanced(value))


def _is_sign(character: str) -> bool:
    return character < "\u0100" and not character.isalnum() and character not in _PLAIN_SIGNS


def is_easy(value: str) -> bool:
    """Whether it is a password such as `Winter2023`, which may be the name of something as well."""
    digits = sum(c.isdigit() for c in value)
    return len(value) >= _SHORTEST_EASY and value.isalnum() and 2 <= digits < len(value)


def looks_drawn(value: str) -> bool:
    """Whether a machine drew it, as it draws every token; ordinary names begin with the same few letters."""
    return is_random(value) or sum(c.isdigit() for c in value) >= _FEWEST_DIGITS


def _is_camel_case(value: str) -> bool:
    """Whether it is put together from words that begin with capitals: `Ed25519PublicKey`."""
    if len(value) > 200 or not _CAMEL_CASE.fullmatch(value):
        return False
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", value)
    numbers = re.findall(r"\d+", value)
    letters = sum(map(len, words))
    if not numbers and "." not in value and len(words) >= 3 and letters >= 3.2 * len(words):
        return not _unpronounceable(value)
    wordy = letters >= 4.5 * len(words) or (letters >= 3.6 * len(words) and not _unpronounceable(value))
    return len(words) >= 2 and len(numbers) <= 2 and wordy


def _class(character: str) -> int:
    return 0 if character.isdigit() else 1 if character.isupper() else 2


def _mixed(value: str) -> float:
    """The share of neighbours of another class (digit, upper, lower); a capital before a small letter counts half."""
    classes = [_class(c) for c in value]
    switches = sum(a != b and not (a == 1 and b == 2) for a, b in pairwise(classes))
    starts = sum(a == 1 and b == 2 for a, b in pairwise(classes))
    return (switches + 0.5 * starts) / max(1, len(value) - 1)


def _case_switches(value: str) -> float:
    classes = [_class(c) for c in value]
    return sum(a != b for a, b in pairwise(classes)) / max(1, len(value) - 1)


def _unpronounceable(value: str) -> bool:
    """Whether its letters have too few vowels, too many of the rare ones, or long runs without a vowel."""
    letters = re.sub(r"[^a-z]", "", value.lower())
    if len(letters) < 10:
        return False
    vowels = sum(c in "aeiouy" for c in letters) / len(letters)
    rare = sum(c in "jkqvwxz" for c in letters) / len(letters)
    longest = max((len(run) for run in re.findall(r"[^aeiouy]+", letters)), default=0)
    return (vowels < 0.2) + (rare > 0.16) + (longest >= 6) + (rare > 0.24) >= 2
