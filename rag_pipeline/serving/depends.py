"""What routes ask for: the services, and a caller who may read, or write."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.errors import refusal
from rag_pipeline.serving.gate import Credentials
from rag_pipeline.serving.services import Services

_bearer = HTTPBearer(auto_error=False, description="A key of `rag-pipeline keys create`.")
_header = APIKeyHeader(
    name="X-API-Key", auto_error=False, description="The same key, for those who cannot send Bearer."
)
_RELAYED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


def _services(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services


ServicesOf = Annotated[Services, Depends(_services)]
"""The services of the app that a request came to."""


async def _reader(
    request: Request,
    services: ServicesOf,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    header: Annotated[str | None, Security(_header)],
) -> Caller:
    key = header or (bearer.credentials if bearer else None)
    shown = Credentials(
        key=key, host=request.headers.get("host", ""), is_relayed=any(name in request.headers for name in _RELAYED)
    )
    caller = await services.workers.run(lambda: services.gate.admit(shown))
    request.state.caller = caller
    return caller


Reader = Annotated[Caller, Depends(_reader)]
"""Whoever may read: the holder of any key, or anybody on this machine where that is allowed."""


async def _writer(caller: Reader) -> Caller:
    if caller.role != "write":
        raise refusal(403, "this takes a key that may write: create one with `rag-pipeline keys create --role write`")
    return caller


Writer = Annotated[Caller, Depends(_writer)]
"""Whoever may write; nobody does without a key."""
