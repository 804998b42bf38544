"""How long a model is waited for, and when it is asked again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from rag_pipeline.answering.language_model import Piece
from rag_pipeline.errors import TransientError
from rag_pipeline.remote.retry import backoff_s

Attempt = Callable[[], AsyncGenerator[Piece, None]]
"""Asks once; raises a TransientError when asking again may help."""


async def patiently(
    attempt: Attempt,
    *,
    who: str,
    timeout_s: float,
    max_retries: int,
    sleep: Callable[[float], Awaitable[object]],
    jitter: Callable[[], float],
) -> AsyncGenerator[Piece, None]:
    """The pieces of the first attempt that gives one.

    `timeout_s` is for the first piece, all attempts together, and again for each further one. Nothing is repeated once
    a piece was given: it would be read twice. A service that wants to be left alone for longer than what is left is
    given up on at once.

    Raises:
        TransientError: the last one, or that the time is over.
    """
    clock = asyncio.get_running_loop().time
    deadline, has_begun, last = clock() + timeout_s, False, ""
    for number in range(max_retries + 1):
        async with aclosing(attempt()) as pieces:
            try:
                while True:
                    try:
                        async with asyncio.timeout_at(deadline):
                            piece = await anext(pieces)
                    except TimeoutError:
                        what = "fell silent for" if has_begun else "did not answer within"
                        raise TransientError(f"{who} {what} {timeout_s:g} s{last}") from None
                    yield piece
                    deadline, has_begun = clock() + timeout_s, True
            except StopAsyncIteration:
                return
            except TransientError as error:
                wait_s = backoff_s(number, asked=error.retry_after_s, jitter=jitter)
                if has_begun or number == max_retries or clock() + wait_s >= deadline:
                    raise
                last = f"; before that: {error}"
        await sleep(wait_s)
