"""What routes ask for: the services, and a caller who may read, or write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Protocol

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from rag_pipeline.index.pool import PATIENCE_S
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.errors import refusal
from rag_pipeline.serving.gate import Credentials
from rag_pipeline.serving.services import Services

WRITE: Final = "write"
"""What stands beside the security of a route, in the OpenAPI document, that takes a key that may write."""
_BEARER: Final = HTTPBearer(auto_error=False, description="A key of `rag-pipeline keys create`.")
_HEADER: Final = APIKeyHeader(name="X-API-Key", auto_error=False, description="The same, beside another Authorization.")
_RELAYED: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


def _services(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services


ServicesOf = Annotated[Services, Depends(_services)]
"""The services of the app that a request came to."""


def _credentials(
    request: Request,
    services: ServicesOf,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    header: Annotated[str | None, Security(_HEADER)],
) -> Credentials:
    del bearer, header  # for the documentation; to them, what is empty or no Bearer token is nothing
    return credentials_of(request, cors_origins=services.settings.serving.cors_origins)


def credentials_of(request: Request, *, cors_origins: Sequence[str]) -> Credentials:
    """What a request shows of who sent it: a key as `X-API-Key` or `Authorization: Bearer`, or none."""
    key = request.headers.get("x-api-key")
    if key is None and "authorization" in request.headers:
        scheme, _, token = request.headers["authorization"].partition(" ")
        key = token.strip() if scheme.lower() == "bearer" else ""
    is_relayed = any(name in request.headers for name in _RELAYED) or _is_of_another_site(request, cors_origins)
    # Whoever sends two names the service by none.
    host = ", ".join(request.headers.getlist("host"))
    return Credentials(key=key, host=host, is_relayed=is_relayed)


Shown = Annotated[Credentials, Depends(_credentials)]
"""What a request shows of who sent it; nothing of it has been looked at."""


class Admission(Protocol):
    """Finds out who sent the request."""

    async def __call__(self, *, timeout_s: float | None = None) -> Caller:
        """Who asks, once that is known; `timeout_s`: so long it may take, by default as long as any request.

        Raises:
            HTTPException: 401, 429; 503 or 504, it could not be looked up in time.
            DatabaseUnavailable: it cannot be looked up.
        """


def _admission(request: Request, services: ServicesOf, shown: Shown) -> Admission:
    async def admitted(*, timeout_s: float | None = None) -> Caller:
        gate = services.gate
        if gate.blocks(shown):
            patience_s = PATIENCE_S if timeout_s is None else min(PATIENCE_S, timeout_s)
            caller, allowance = await services.workers.run(
                lambda: gate.admit(shown, patience_s=patience_s), timeout_s=timeout_s
            )
        else:
            caller, allowance = gate.admit(shown)
        request.state.caller, request.state.allowance = caller, allowance
        return caller

    return admitted


Admitted = Annotated[Admission, Depends(_admission)]
"""For a route that bounds itself how long it takes to find out who asks."""


async def _reader(admission: Admitted) -> Caller:
    return await admission()


Reader = Annotated[Caller, Depends(_reader)]
"""Whoever may read: the holder of any key, or anybody on this machine where that is allowed."""


async def _writer(caller: Reader) -> Caller:
    if caller.key_id is None:
        raise refusal(
            401, "this takes a key that may write: create one with `rag-pipeline keys create --role write`",
            headers={"WWW-Authenticate": "Bearer"},
        )  # fmt: skip
    if caller.role != "write":
        raise refusal(403, "this key may only read: use one that was created with --role write")
    return caller


Writer = Annotated[Caller, Security(_writer, scopes=[WRITE])]
"""Whoever may write; nobody does without a key."""


def _is_of_another_site(request: Request, cors_origins: Sequence[str]) -> bool:
    """Whether a web page sent this that is neither ours nor one that `serving.cors_origins` names."""
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site") == "cross-site"
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    return origin not in (own, *cors_origins)
