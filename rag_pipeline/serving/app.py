"""The application: routes, and what surrounds all of them."""

from __future__ import annotations

from fastapi import FastAPI

from rag_pipeline.serving.errors import handle_errors
from rag_pipeline.serving.routes import ROUTERS
from rag_pipeline.serving.services import Services


def make_app(services: Services) -> FastAPI:
    """The application over these services; whoever made them closes them.

    The pages that FastAPI shows its documentation on load their scripts from elsewhere, so there are none:
    `/openapi.json` is for tools.
    """
    app = FastAPI(
        title="rag-pipeline", version="1", docs_url=None, redoc_url=None, openapi_url="/openapi.json",
        description="Search, answers with citations, and the way in for documents.",
    )  # fmt: skip
    app.state.services = services
    handle_errors(app)
    for router in ROUTERS:
        app.include_router(router)
    return app
