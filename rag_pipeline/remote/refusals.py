"""What a service means by a status code, and what may be repeated of what it said. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rag_pipeline.errors import ConfigError, ItemError, PermanentError, RagPipelineError, TransientError
from rag_pipeline.remote.retry import retry_after_s

TRANSIENT: Final = frozenset({408, 409, 425, 429})
OVERLOADED: Final = frozenset({429, 503, 529})
"""529: what Anthropic answers in place of 503."""
REFUSED_INPUT: Final = frozenset({400, 413, 422})
_SHORTEST_SECRET: Final = 8
_MOST_CHARS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Who is asked, as far as a message about it needs to know."""

    url: str
    model: str
    section: str
    """Of the settings: `embedding`, `rerank`, `answering`."""
    key_variable: str
    when_refused: str
    """What to do when the input is refused."""


def refusal(
    status: int, said: str, *, service: Service, headers: Mapping[str, str], now: datetime, code: str = ""
) -> RagPipelineError:
    """The error that a status code stands for.

    `said` is what the service said, shortened and without the key; `code` the short name that it gives the error.
    """
    where = f"{service.url} answered {status} for model {service.model!r}: {said}"
    if 300 <= status < 400:
        to = headers.get("location", "elsewhere")
        return ConfigError(f"{where}: it redirects to {to}, which is not followed: correct {service.section}.base_url")
    if status == 402 or (status == 429 and "insufficient_quota" in f"{code} {said}"):
        return PermanentError(f"{where}: the quota is spent: add credit or raise the limit")
    if status in TRANSIENT or status >= 500:
        return TransientError(where, retry_after_s=retry_after_s(headers, now=now), overloaded=status in OVERLOADED)
    if status in REFUSED_INPUT:
        return ItemError(f"{where}: {service.when_refused}")
    if status in (401, 403):
        return ConfigError(f"{where}: check the key in the environment variable {service.key_variable}")
    if status == 404:
        return ConfigError(f"{where}: check {service.section}.model and {service.section}.base_url")
    return PermanentError(where)


def without_key(value: object, key: str) -> str:
    """What a service said, on one line, shortened; some repeat the key they refuse."""
    text = " ".join(str(value).split())
    if len(key) >= _SHORTEST_SECRET:
        text = text.replace(key, "***")
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
