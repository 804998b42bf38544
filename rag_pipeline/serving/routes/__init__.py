"""The addresses that are answered, a module for each group; `ROUTERS` is all of them."""

from collections.abc import Sequence
from typing import Final

from fastapi import APIRouter

from rag_pipeline.serving import page
from rag_pipeline.serving.routes import ask, chunk, context, documents, feedback, health, metrics, search, webhooks

ROUTERS: Final[Sequence[APIRouter]] = (
    health.router,
    search.router,
    ask.router,
    context.router,
    chunk.router,
    documents.router,
    feedback.router,
    metrics.router,
    webhooks.router,
    page.router,
)
