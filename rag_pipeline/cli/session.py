"""What commands share: the settings of this process, entering Dagster, and JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rag_pipeline.settings import Settings

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
MAX_PORT = 65_535
chosen: dict[str, Path | None] = {"file": None}
"""The configuration file that `--config` names."""


def settings_of_process() -> Settings:
    """The settings that the command line and the environment ask for; raises as `load_settings`."""
    from rag_pipeline.settings import load_settings  # not for `--help`

    return load_settings(config_file=chosen["file"])


def enter_dagster(settings: Settings) -> None:
    """Make this process one of Dagster's: its variables are set before it is imported."""
    from rag_pipeline.cli.environment import dagster_environment

    os.environ.update(dagster_environment(settings))
    Path(os.environ["RAG_DAGSTER_STORAGE"]).mkdir(parents=True, exist_ok=True)


def print_json(value: object) -> None:
    """For scripts; what JSON has no word for is printed as text."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))
