"""`rag-pipeline webhooks`: the receiver of GitHub's deliveries, as a process of its own."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from rag_pipeline.cli.session import MAX_PORT, settings_of_process


def webhooks(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=MAX_PORT, help="Port to listen on.")] = 8008,
) -> None:
    """Receive GitHub's deliveries at POST /webhooks/github and put them into the inbox."""
    from rag_pipeline.cli.dagster_ui import require_free_port
    from rag_pipeline.serving.webhooks import serve_webhooks

    settings = settings_of_process()
    require_free_port(host, port)
    serve_webhooks(settings, environ=os.environ, host=host, port=port)
