"""Whoever asks a service in a test, without a key."""

from __future__ import annotations

from typing import Literal

from fastapi import FastAPI

from rag_pipeline.serving import depends
from rag_pipeline.serving.caller import Caller


def come_as(
    app: FastAPI, tenant: str = "acme", *, role: Literal["read", "write"] = "write", scopes: tuple[str, ...] = ()
) -> None:
    """Let all further requests be this caller's."""
    caller = Caller(tenant=tenant, role=role, scopes=scopes, key_id="0123456789ab")
    let_in(app, caller)


def let_in(app: FastAPI, caller: Caller) -> None:
    """Take this for the caller of all further requests."""

    async def admitted(*, timeout_s: float | None = None) -> Caller:
        del timeout_s
        return caller

    app.dependency_overrides[depends._admission] = lambda: admitted
