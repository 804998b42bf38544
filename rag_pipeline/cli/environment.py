"""The variables that Dagster's processes need, and where Dagster's own files lie."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.index.database import sibling_url
from rag_pipeline.settings import Settings

_PACKAGE = Path(__file__).resolve().parent.parent


def dagster_environment(settings: Settings, *, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What `dagster` and the processes it starts must find in their environment, beside what is there."""
    wanted = {
        "RAG_HOME": str(settings.home),
        "DAGSTER_HOME": str(dagster_home(settings, environ=environ)),
        "DAGSTER_POSTGRES_URL": dagster_postgres_url(settings, environ=environ),
        "RAG_DAGSTER_STORAGE": environ.get("RAG_DAGSTER_STORAGE") or str(settings.home / "dagster"),
        # One event per asset and batch instead of one per partition: see docs/operations.md.
        "DAGSTER_EVENT_BATCH_SIZE": environ.get("DAGSTER_EVENT_BATCH_SIZE", "1000"),
        "DAGSTER_EMIT_PARTITION_SUBSET_IN_PLANNED_EVENTS": environ.get(
            "DAGSTER_EMIT_PARTITION_SUBSET_IN_PLANNED_EVENTS", "true"
        ),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }
    if settings.config_file is not None:
        wanted["RAG_CONFIG"] = str(settings.config_file)
    if settings.lake:
        wanted["RAG_LAKE"] = settings.lake
    if environ.get("RAG_REPO"):
        wanted["RAG_REPO"] = environ["RAG_REPO"]
    return wanted


def dagster_home(settings: Settings, *, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of `dagster.yaml`: as set, of the current folder, of the checkout, else a copy in RAG_HOME."""
    if environ.get("DAGSTER_HOME"):
        return Path(environ["DAGSTER_HOME"]).resolve()
    for folder in (Path.cwd(), _PACKAGE.parent):
        if (folder / "dagster.yaml").is_file() and (folder / "workspace.yaml").is_file():
            return folder
    home = settings.home / "dagster_home"
    home.mkdir(parents=True, exist_ok=True)
    for name in ("dagster.yaml", "workspace.yaml"):
        shutil.copyfile(_PACKAGE / "_deploy" / name, home / name)
    return home


def dagster_postgres_url(settings: Settings, *, environ: Mapping[str, str] = os.environ) -> str:
    """The address of Dagster's own database: as set, else `dagster` on the server of the knowledge database."""
    if environ.get("DAGSTER_POSTGRES_URL"):
        return environ["DAGSTER_POSTGRES_URL"]
    if settings.database_url is None:
        return EmbeddedPostgres(settings.home).dagster_url()
    return sibling_url(settings.database_url, database="dagster")
