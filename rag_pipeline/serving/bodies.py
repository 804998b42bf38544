"""Bodies: so large and no larger, of bounded JSON, and all there before a route begins, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_pipeline.bounded_json import read_checked
from rag_pipeline.errors import ItemError
from rag_pipeline.serving.errors import error_response, refusal

READ_TIMEOUT_S: Final = 30.0


class BodyLimit:
    """Refuses bodies that are too large (413), whether or not they say so, and those that do not arrive in time (408).

    JSON that is nested too deeply, holds a key twice, NaN or a number without end is refused, too (422).

    `is_exempt`: whether a path reads its own body, by limits of its own.
    """

    def __init__(
        self, app: ASGIApp, *, max_bytes: int, read_timeout_s: float, is_exempt: Callable[[str], bool]
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._read_timeout_s = read_timeout_s
        self._is_exempt = is_exempt

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http" or self._is_exempt(scope["path"]):
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > self._max_bytes:
            await self._refuse_large(scope, receive, send)
            return
        body = bytearray()
        try:
            async with asyncio.timeout(self._read_timeout_s):
                is_complete = await self._read(receive, body)
        except TimeoutError:
            answer = error_response(
                refusal(408, "the body did not arrive in time", headers={"Connection": "close"})
            )  # fmt: skip
            assert answer is not None
            await answer(scope, receive, send)
            return
        if len(body) > self._max_bytes:
            await self._refuse_large(scope, receive, send)
        elif wrong := _wrong_json(bytes(body)):
            await self._refuse(422, f"the body {wrong}", scope, receive, send)
        elif is_complete:
            await self._app(scope, _replay(bytes(body), receive), send)

    async def _read(self, receive: Receive, body: bytearray) -> bool:
        """Whether it came to its end, or grew too large; False: whoever sent it hung up."""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return False
            body += message.get("body", b"")
            if len(body) > self._max_bytes or not message.get("more_body", False):
                return True

    async def _refuse_large(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._refuse(413, f"the body is larger than {self._max_bytes:,} bytes", scope, receive, send)

    async def _refuse(self, status: int, reason: str, scope: Scope, receive: Receive, send: Send) -> None:
        answer = error_response(refusal(status, reason))
        assert answer is not None
        await answer(scope, receive, send)


def _wrong_json(body: bytes) -> str:
    """What no route may be given: JSON beyond the limits, or with a key twice. What is no JSON, the routes refuse."""
    try:
        read_checked(body)
    except ItemError as error:
        return str(error)
    return ""


def _replay(body: bytes, receive: Receive) -> Receive:
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()  # nothing comes any more but the end of the connection
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
