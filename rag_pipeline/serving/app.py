"""The application: routes, and what surrounds all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from rag_pipeline.serving.bodies import READ_TIMEOUT_S, BodyLimit
from rag_pipeline.serving.depends import WRITE
from rag_pipeline.serving.errors import handle_errors
from rag_pipeline.serving.headers import AllowedHosts, SecurityHeaders
from rag_pipeline.serving.measured import MeasuredApp
from rag_pipeline.serving.quotas import FLUSH_EVERY_S
from rag_pipeline.serving.request_log import RequestLog
from rag_pipeline.serving.routes import ROUTERS
from rag_pipeline.serving.routes.webhooks import PATH as WEBHOOKS
from rag_pipeline.serving.services import Services

_SHOWN_TO_PAGES: Final = ("X-Request-ID", "Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_log = logging.getLogger(__name__)


def make_app(services: Services, *, read_timeout_s: float = READ_TIMEOUT_S) -> FastAPI:
    """The application over these services; whoever made them closes them.

    The pages that FastAPI shows its documentation on load their scripts from elsewhere, so there are none:
    `/openapi.json` is for tools.
    """
    app = FastAPI(
        title="rag-pipeline", version="1", docs_url=None, redoc_url=None, openapi_url="/openapi.json",
        description="Search, answers with citations, and the way in for documents.", lifespan=_alive,
        redirect_slashes=False,
    )  # fmt: skip
    app.state.services = services
    handle_errors(app)
    for router in ROUTERS:
        app.include_router(router)
    _surround(app, services, read_timeout_s=read_timeout_s)
    _document_anonymous(app, services)
    return app


def _surround(app: FastAPI, services: Services, *, read_timeout_s: float) -> None:
    """What every request goes through; what is added last is outermost."""
    serving = services.settings.serving
    app.add_middleware(
        BodyLimit, max_bytes=serving.max_body_bytes, read_timeout_s=read_timeout_s,
        is_exempt=lambda path: path == WEBHOOKS,  # GitHub's deliveries are larger
    )  # fmt: skip
    app.add_middleware(AllowedHosts, names=serving.allowed_hosts)
    if serving.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=serving.cors_origins, allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=("Authorization", "X-API-Key", "X-Request-ID", "Content-Type"),
            expose_headers=_SHOWN_TO_PAGES,
        )  # fmt: skip
    app.add_middleware(MeasuredApp, metrics=services.metrics)
    app.add_middleware(RequestLog)
    app.add_middleware(SecurityHeaders)


@asynccontextmanager
async def _alive(app: FastAPI) -> AsyncIterator[None]:
    """What goes on beside requests: counts are written."""
    services: Services = app.state.services
    writing = asyncio.create_task(_write_counts(services))
    yield
    writing.cancel()
    with suppress(asyncio.CancelledError):
        await writing


async def _write_counts(services: Services) -> None:
    while True:
        await asyncio.sleep(FLUSH_EVERY_S)
        try:
            await services.spare.run(services.quotas.flush)
        except Exception as error:
            # They are kept until the database is back.
            _log.warning("requests could not be counted: %s", type(error).__name__)


def _document_anonymous(app: FastAPI, services: Services) -> None:
    """Say in the OpenAPI document that reading needs no key, where that is so."""
    make = app.openapi

    def openapi() -> dict[str, Any]:
        document = make()
        if services.gate.lets_anonymous_in:
            for path in document["paths"].values():
                for operation in path.values():
                    security = operation.get("security")
                    if security and {} not in security and not any(WRITE in s for s in security[0].values()):
                        security.insert(0, {})
        return document

    app.openapi = openapi  # type: ignore[method-assign]
