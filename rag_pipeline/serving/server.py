"""The process that listens: uvicorn, told to be impatient with clients and to end in order."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
from collections.abc import Mapping
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from rag_pipeline.serving.app import make_app
from rag_pipeline.serving.compose import services_of
from rag_pipeline.serving.logs import LOGGING
from rag_pipeline.settings import Settings

_GRACE_S: Final = 30
_HEADERS_TIMEOUT_S: Final = 15.0
_KEEP_ALIVE_S: Final = 75
"""Longer than clients and proxies keep idle connections (5 to 60 s), or a request may meet one that is being closed."""
_MOST_CONNECTIONS: Final = 1_000


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(
    settings: Settings, *, environ: Mapping[str, str], host: str, port: int, log_config: dict[str, Any] | None = LOGGING
) -> None:
    """Answer requests until this process is told to stop; those that have begun are finished first.

    Raises:
        ConfigError: a model cannot be made as it is configured.
        DatabaseUnavailable: the embedded server does not start.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        # uvicorn sends itself the signal again when it has ended; by default that would end us before we have.
        signal.signal(number, _stop)
    with services_of(settings, environ, is_local=is_loopback(host)) as services:
        uvicorn.Server(server_config(make_app(services), host=host, port=port, log_config=log_config)).run()


def server_config(
    app: ASGIApp, *, host: str, port: int, log_config: dict[str, Any] | None,
    headers_timeout_s: float = _HEADERS_TIMEOUT_S,
) -> uvicorn.Config:  # fmt: skip
    """How the server is run; `log_config` None leaves logs as they are."""
    protocol = type("Impatient", (_Impatient,), {"headers_timeout_s": headers_timeout_s})
    return uvicorn.Config(
        app, host=host, port=port, http=protocol, ws="none", log_config=log_config, access_log=False,
        server_header=False, proxy_headers=False, limit_concurrency=_MOST_CONNECTIONS, lifespan="on",
        timeout_graceful_shutdown=_GRACE_S, timeout_keep_alive=_KEEP_ALIVE_S,
    )  # fmt: skip


def _stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise SystemExit(0)


class _Impatient(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's own protocol, which waits for ever for the headers of a request; this one hangs up."""

    headers_timeout_s = _HEADERS_TIMEOUT_S
    _hanging_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, error: Exception | None) -> None:
        self._be_calm()
        super().connection_lost(error)

    def _watch(self) -> None:
        if not self._is_between_requests():
            self._be_calm()
        elif self._hanging_up is None:
            # Once for each request: whoever sends a byte now and then gains nothing.
            self._hanging_up = self.loop.call_later(self.headers_timeout_s, self._hang_up)

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _hang_up(self) -> None:
        self._hanging_up = None
        if self._is_between_requests() and not self.transport.is_closing():
            self.transport.close()

    def _be_calm(self) -> None:
        if self._hanging_up is not None:
            self._hanging_up.cancel()
            self._hanging_up = None
