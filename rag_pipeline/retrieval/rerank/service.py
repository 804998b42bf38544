"""What the rerankers behind a network have in common: a key, what refusals mean, and how long they are waited for."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, TypeVar

from rag_pipeline.embedding.retry import retry_after_s, retrying
from rag_pipeline.errors import ConfigError, ItemError, PermanentError, RagPipelineError, TransientError
from rag_pipeline.settings import Rerank

R = TypeVar("R")

_TRANSIENT: Final = frozenset({408, 409, 425, 429})
_REFUSED_INPUT: Final = frozenset({400, 413, 422})
_SHORTEST_SECRET: Final = 8


def key_variable(settings: Rerank) -> str:
    """The environment variable that holds the provider's key."""
    return settings.api_key_env or ("OPENAI_API_KEY" if settings.provider == "openai" else "RERANK_API_KEY")


def api_key(settings: Rerank, environ: Mapping[str, str]) -> str:
    """The key, or an empty text for a server that was named and may need none.

    Raises:
        ConfigError: the variable is not set, though it was named or the service is known to need a key.
    """
    variable = key_variable(settings)
    key = environ.get(variable, "").strip()
    if not key and (settings.api_key_env or not settings.base_url):
        raise ConfigError(
            f"rerank.provider is {settings.provider!r}, but the environment variable {variable} is not set: "
            "set it, or name another with rerank.api_key_env"
        )
    return key


def required_model(settings: Rerank) -> str:
    """The model's name.

    Raises:
        ConfigError: there is none.
    """
    if not settings.model:
        raise ConfigError(f"rerank.provider is {settings.provider!r}, but rerank.model is empty: name the model")
    return settings.model


def refusal(
    status: int, reason: str, *, url: str, settings: Rerank, headers: Mapping[str, str], now: datetime
) -> RagPipelineError:
    """The error that a status code of a service stands for; `reason` is what it said, shortened and without the key."""
    where = f"{url} answered {status} for model {settings.model!r}: {reason}"
    if status == 429 and "insufficient_quota" in reason:
        return PermanentError(f"{where}: the quota is spent: add credit or raise the limit")
    if status in _TRANSIENT or status >= 500:
        return TransientError(where, retry_after_s=retry_after_s(headers, now=now))
    if status in _REFUSED_INPUT:
        return ItemError(f"{where}: if the passages are too long or too many, lower rerank.top_n")
    if status in (401, 403):
        return ConfigError(f"{where}: check the key in the environment variable {key_variable(settings)}")
    if status == 404:
        return ConfigError(f"{where}: check rerank.model and rerank.base_url")
    return PermanentError(where)


def patiently(
    call: Callable[[float], R],
    *,
    settings: Rerank,
    sleep: Callable[[float], object] | None = None,
    jitter: Callable[[], float] = random.random,
    clock: Callable[[], float] = time.monotonic,
) -> R:
    """The result of `call(seconds that are left)`, repeated after a TransientError while the settings' patience lasts.

    Whoever asked a question waits for this: a service that wants to be left alone for longer than what is left of
    `rerank.timeout_s` is given up on at once.

    Raises:
        TransientError: the last one.
    """
    stopped = threading.Event()
    deadline = clock() + settings.timeout_s

    def attempt() -> R:
        left = deadline - clock()
        if left <= 0:
            stopped.set()
            raise TransientError(f"no answer within {settings.timeout_s:g} s")
        try:
            return call(left)
        except TransientError as error:
            if (error.retry_after_s or 0.0) >= deadline - clock():
                stopped.set()
            raise

    def wait(seconds: float) -> None:
        (sleep or stopped.wait)(max(0.0, min(seconds, deadline - clock())))

    return retrying(attempt, max_retries=settings.max_retries, sleep=wait, stopped=stopped, jitter=jitter)


def without_key(value: object, key: str) -> str:
    """What a service said, on one line, shortened; some repeat the key they refuse."""
    text = " ".join(str(value).split())
    if len(key) >= _SHORTEST_SECRET:
        text = text.replace(key, "***")
    return text if len(text) <= 300 else f"{text[:300]}…"
