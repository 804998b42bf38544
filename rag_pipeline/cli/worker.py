"""`rag-pipeline worker`: a process that takes runs from Redis and executes them."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_pipeline.cli.session import enter_dagster, settings_of_process
from rag_pipeline.errors import ConfigError
from rag_pipeline.extras import how_to_add


def worker(
    at_once: Annotated[int, typer.Option("--concurrency", min=1, help="Runs at once; each is a process.")] = 1,
    name: Annotated[str, typer.Option(help="Its name, if several of them run on one machine.")] = "worker",
    queue: Annotated[str, typer.Option(help="The queue that it takes runs from.")] = "dagster",
    adopt_home: Annotated[
        bool, typer.Option("--adopt-home", help="Make this RAG_HOME the one that all workers share.")
    ] = False,
    loglevel: Annotated[str, typer.Option(help="What it logs of itself: debug, info, warning, error.")] = "info",
) -> None:
    """Execute Dagster's runs on this machine, beside other workers; see docs/deployment.md.

    Needs the extra `celery`, a DAGSTER_HOME with the dagster.yaml of deploy/celery, and the RAG_HOME, lake and database
    of the other workers. Asked to stop (SIGTERM), it finishes the runs that it is at.
    """
    from rag_pipeline.embedded import database_url

    try:
        import dagster_celery  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"a worker needs dagster-celery: {how_to_add('celery')}, or its requirements-celery.lock"
        ) from error
    import dagster as dg

    from rag_pipeline.cli.dagster_storage import ready_storage
    from rag_pipeline.defs.celery.home import require_shared_home
    from rag_pipeline.defs.celery.worker import app_of, work

    settings = settings_of_process()
    enter_dagster(settings)
    database_url(settings)
    ready_storage(settings.pools)
    with dg.DagsterInstance.get() as instance:
        app = app_of(instance)
        require_shared_home(instance, settings.home, adopt=adopt_home)
    work(app, name=name, at_once=at_once, queue=queue, loglevel=loglevel)
