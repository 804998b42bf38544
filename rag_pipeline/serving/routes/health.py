"""`GET /health` and `GET /health/live`: whether it runs, and whether it can answer."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

router = APIRouter(tags=["health"])


class Live(BaseModel):
    """The process runs and its event loop turns."""

    status: Literal["ok"] = "ok"
    live: Literal[True] = True


@router.get("/health/live")
async def live() -> Live:
    """Whether the process runs; says nothing of the database."""
    return Live()
