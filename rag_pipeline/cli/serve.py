"""`rag-pipeline serve`: the HTTP service."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from rag_pipeline.cli.console import err
from rag_pipeline.cli.session import MAX_PORT, settings_of_process


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=MAX_PORT, help="Port to listen on.")] = 8080,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log what goes wrong, and not every request.")] = False,
) -> None:
    """Answer searches and questions over HTTP; see docs/serving.md.

    On a loopback address, people of this machine need no key to read. On any other, every request needs one.
    """
    from rag_pipeline.cli.dagster_ui import require_free_port
    from rag_pipeline.embedded import database_url
    from rag_pipeline.index import migrations
    from rag_pipeline.serving import server
    from rag_pipeline.serving.logs import logging_of

    settings = settings_of_process()
    if ":" not in host:
        require_free_port(host, port)
    if not settings.database_url:
        # Our own server may be new, or have slept through an update; without the schema it would seem to be away.
        migrations.migrate(database_url(settings))
    shown = f"[{host}]" if ":" in host else host
    if not server.is_loopback(host):
        err.print(
            f"{host} is reached from elsewhere: every request needs a key (`rag-pipeline keys create`), and keys need "
            "TLS, which a proxy in front of this gives"
        )
    elif settings.serving.anonymous == "never":
        err.print("every request needs a key: `rag-pipeline keys create` makes one")
    if not quiet:
        err.print(f"Serving on http://{shown}:{port} (Ctrl-C stops it)", markup=False)
    server.serve(settings, environ=os.environ, host=host, port=port, log_config=logging_of(is_quiet=quiet))
