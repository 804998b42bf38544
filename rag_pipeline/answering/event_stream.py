"""Server-sent events, read from bytes as they come (https://html.spec.whatwg.org/multipage/server-sent-events.html).

Lines end at line feeds only: the HTTP library's own lines also end at U+2028 and its like, which JSON texts may hold.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Final

from rag_pipeline.errors import PermanentError

_LONGEST_LINE: Final = 4_000_000  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event; `name` is empty where the stream gives none."""

    name: str
    data: str


async def events_of(chunks: AsyncIterable[bytes]) -> AsyncGenerator[Event, None]:
    """The events of a stream; comments are passed over, and so is an event that the stream breaks off in.

    Raises:
        PermanentError: a line of it does not end.
    """
    name, data = "", list[str]()
    async for line in _lines(chunks):
        if not line:
            if data:
                yield Event(name=name, data="\n".join(data))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif field == "event":
            name = value.strip()


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[str]:
    begun = b""
    async for chunk in chunks:
        *whole, begun = (begun + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").removesuffix("\r")
        if len(begun) > _LONGEST_LINE:
            raise PermanentError(f"a line of an event stream is longer than {_LONGEST_LINE} bytes")
