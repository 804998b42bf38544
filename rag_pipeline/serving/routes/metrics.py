"""`GET /metrics`: the service's figures for Prometheus."""

from __future__ import annotations

import logging
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from rag_pipeline.index.freshness import worst_lags
from rag_pipeline.serving.depends import ServicesOf
from rag_pipeline.serving.errors import documented
from rag_pipeline.serving.services import Services

router = APIRouter(tags=["metrics"])
_log = logging.getLogger(__name__)
_PATIENCE_S: Final = 2.0
_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}
}


@router.get("/metrics", response_class=Response, responses=_TEXT | documented(500, only=(400,)))
async def figures(request: Request, services: ServicesOf) -> Response:
    """Figures of this process since it started, and how far the index is behind; no tenant, question or key is in it.

    Answers, without what it would have to ask the database for, when the database does not.
    """
    try:
        lag_s = await services.spare.run(lambda: _lags(services), timeout_s=_PATIENCE_S)
        condition = await services.conditions.now() if services.settings.replica_url else None
    except Exception as error:
        # Whatever it is: the figures are wanted most of all when something is wrong.
        _log.info("how far the index is behind is not known: %s", error)
        services.metrics.fresh(None)
    else:
        services.metrics.fresh(lag_s)
        if condition is not None and condition.replica is not None:
            services.metrics.replica(condition.replica.lag)
    content, content_type = services.metrics.text(request.headers.get("accept", ""))
    return Response(content, headers={"Content-Type": content_type})


def _lags(services: Services) -> dict[str, float]:
    with services.reads.connection(patience_s=_PATIENCE_S / 2) as connection:
        return worst_lags(connection, now=services.clock())
