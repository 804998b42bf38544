"""`rag-pipeline config …`: whether the configuration can be followed, what is in force, and its schema for editors."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Annotated

import typer

from rag_pipeline.cli import session
from rag_pipeline.cli.console import err, out, rows_table
from rag_pipeline.cli.session import AsJson, print_json
from rag_pipeline.errors import ConfigError

config = typer.Typer(
    name="config", no_args_is_help=True, rich_markup_mode=None,
    help="The configuration: whether it can be followed, which values are in force, and its schema for editors.",
)  # fmt: skip


@config.command(short_help="Find everything that is wrong.")
def check(
    file: Annotated[Path | None, typer.Argument(help="By default the file that other commands would read.")] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Also ask repositories, the database and the models.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find everything that is wrong with the configuration, a line each; exit with 1 when there is an error.

    Errors stop every command. Warnings are what would only show at use: a variable that is not set, a folder that is
    not there, a pattern that matches nothing.
    """
    from rag_pipeline.cli.config_warnings import warnings_of
    from rag_pipeline.settings.check import check_file
    from rag_pipeline.sources.kinds.registry import complaints

    checked = check_file(config_file=file or session.chosen["file"], environ=os.environ, cwd=Path.cwd())
    if checked.settings is not None:
        for wrong in complaints(checked.settings):
            checked.add(wrong)
        for doubt in warnings_of(checked.settings, environ=os.environ, online=online):
            checked.add(doubt, severity="warning")
    problems = sorted(checked.problems, key=lambda problem: (problem.severity, problem.line or 0, problem.key))
    errors = sum(problem.severity == "error" for problem in problems)
    if as_json:
        print_json([dataclasses.asdict(problem) for problem in problems])
    else:
        for problem in problems:
            out.print(str(problem), markup=False)
        name = checked.path if checked.path.is_file() else f"{checked.path} (not there: defaults)"
        err.print(f"{name}: {_counted(errors, 'error')}, {_counted(len(problems) - errors, 'warning')}", markup=False)
    if errors:
        raise typer.Exit(1)


@config.command(short_help="Show the values in force.")
def show(
    defaults: Annotated[bool, typer.Option("--defaults", help="Also what nobody has set.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the values in force, and where each comes from. Secrets are never shown, only whether they are set."""
    from rag_pipeline.cli.config_values import shown_values

    values = shown_values(session.settings_of_process(), environ=os.environ, defaults=defaults)
    if as_json:
        print_json([dataclasses.asdict(value) for value in values])
        return
    rows = [(value.key, _spoken(value.value, is_set=value.is_set), value.origin) for value in values]
    out.print(rows_table("", ("key", "value", "from"), rows))


@config.command(short_help="Print the JSON schema.")
def schema(
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write it to this file.")] = None,
) -> None:
    """Print the JSON schema of rag_pipeline.toml, for editors; installed kinds of sources are in it."""
    from rag_pipeline.settings.schema import json_schema
    from rag_pipeline.sources.kinds import kinds

    made = json_schema({kind.name: kind.block for kind in kinds()})
    text = json.dumps(made, indent=2, ensure_ascii=False, default=str) + "\n"
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{output} cannot be written ({error.strerror}): name another file") from error


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _spoken(value: object, *, is_set: bool | None) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if is_set is None else f"{text} ({'set' if is_set else 'not set'})"
