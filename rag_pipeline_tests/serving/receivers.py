"""A receiver that listens, and deliveries signed as GitHub signs them."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from rag_pipeline.sources.drops.inbox import Inbox

SECRET = "it's a secret to everybody"
NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
MAX_BODY_BYTES = 50_000
PAYLOAD = {"action": "opened", "issue": {"number": 7, "title": "Größe \U0001f680"}}
DELIVERY = "72d3162e-cc78-11e3-81ab-4c9367dc0958"


def signed(body: bytes, *, secret: str = SECRET, **headers: str) -> dict[str, str]:
    """The headers that GitHub sends with a body."""
    return {
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
        "X-GitHub-Event": "issues", "X-GitHub-Delivery": DELIVERY, "Content-Type": "application/json",
    } | {name.replace("_", "-"): value for name, value in headers.items()}  # fmt: skip


@dataclass
class Running:
    """A receiver that listens, and its inbox."""

    client: httpx.Client
    inbox: Inbox
    folder: Path

    def post(self, body: bytes | dict[str, object], *, drop: str = "", **headers: str) -> httpx.Response:
        """Send a delivery as GitHub does, without the header `drop`."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {name: value for name, value in signed(content, **headers).items() if name != drop}
        return self.client.post("/webhooks/github", content=content, headers=sent)

    @property
    def drops(self) -> list[str]:
        """Every file there is, hidden ones included."""
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file()) if self.folder.exists() else []
