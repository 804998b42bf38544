"""The addresses that are answered, a module for each group; `ROUTERS` is all of them."""

from collections.abc import Sequence
from typing import Final

from fastapi import APIRouter

from rag_pipeline.serving import page
from rag_pipeline.serving.routes import health, webhooks

ROUTERS: Final[Sequence[APIRouter]] = (
    health.router,
    webhooks.router,
    page.router,
)
