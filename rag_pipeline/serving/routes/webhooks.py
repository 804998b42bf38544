"""`POST /webhooks/github`: the receiver of deliveries, inside the service."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from rag_pipeline.serving.depends import ServicesOf
from rag_pipeline.serving.errors import documented, refusal
from rag_pipeline.serving.webhooks import Receiver

PATH = "/webhooks/github"
router = APIRouter(tags=["webhooks"])


@router.post(
    PATH, status_code=202,
    responses=documented(400, 401, 404, 408, 413, 415, 500, 503, only=()) | {
        200: {"description": "A ping, or known already"}, 202: {"description": "On disk"},
    },
)  # fmt: skip
async def receive(request: Request, services: ServicesOf) -> Response:
    """A delivery of GitHub's into the inbox; it is signed with the secret instead of coming with a key."""
    settings = services.settings.webhooks
    secret = services.environ.get(settings.secret_env, "")
    if not secret.strip():
        raise refusal(
            404, f"this service takes no deliveries: put the webhook's secret into {settings.secret_env} and restart it"
        )
    receiver = Receiver(
        secret=secret,
        inbox=services.inbox,
        max_body_bytes=settings.max_body_bytes,
        clock=services.clock,
        max_drop_bytes=services.settings.drops.max_drop_bytes,
    )
    return await receiver.receive(request)
