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
    app.dependency_overrides[depends._reader] = lambda: caller
