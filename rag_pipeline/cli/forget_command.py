"""`rag-pipeline forget` as it is typed; `forget` does what it says."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_pipeline.cli.session import AsJson, print_json, settings_of_process
from rag_pipeline.errors import ConfigError


def forget(
    document: Annotated[str, typer.Option(help="A document, by its URL, path, source id or document id.")] = "",
    repo: Annotated[str, typer.Option(help="All that came from this repository, by its name.")] = "",
    tenant: Annotated[str, typer.Option(help="All of this tenant; beside another option: whose it is.")] = "",
    author: Annotated[str, typer.Option(help="All that this login opened or said.")] = "",
    expired: Annotated[bool, typer.Option("--expired", help="What is older than [retention] keeps it.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Only look for what was ever forgotten.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Allow it again; the next refresh reads it again.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take something out of lake, index, mirrors and inbox, keep it from coming back, and prove that it is gone.

    --expired also takes out whatever was forgotten before and is there again, as from a restored backup.
    """
    from rag_pipeline.cli import forget as forgetting

    settings = settings_of_process()
    target = forgetting.target_of(settings, document=document, repo=repo, tenant=tenant, author=author)
    if (target is not None) + expired + verify != 1 or (undo and target is None):
        raise ConfigError("name one thing to forget: --document, --repo, --tenant, --author, --expired, or --verify")
    if expired:
        row = forgetting.forget_expired(settings)
    elif target is None:
        row = forgetting.verify_forgotten(settings)
    elif undo:
        row = forgetting.undo_target(settings, target)
    else:
        row = forgetting.forget_target(settings, target, yes=yes)
    if as_json:
        print_json(row)
    else:
        forgetting.print_forgotten(row)
    forgetting.require_gone(row)
