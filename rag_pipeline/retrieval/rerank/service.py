"""What the rerankers behind a network have in common: a key, a name for messages, and how long they are waited for."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from rag_pipeline.errors import ConfigError, TransientError
from rag_pipeline.remote.refusals import Service
from rag_pipeline.remote.retry import retrying
from rag_pipeline.settings import Rerank

R = TypeVar("R")


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


def service_of(settings: Rerank, *, url: str) -> Service:
    """Whom messages are about."""
    return Service(
        url=url, model=settings.model, section="rerank", key_variable=key_variable(settings),
        when_refused="if the passages are too long or too many, lower rerank.top_n",
    )  # fmt: skip


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
