"""Where the SQL files lie (in a checkout or in the wheel), and the named queries in them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import LiteralString, cast

from rag_pipeline.errors import RagPipelineError

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def sql_folder() -> Path:
    """The `sql` folder: of the checkout when there is one, else the copy in the wheel."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_sql", package.parent / "sql"):
        if (folder / "migrations").is_dir():
            return folder
    raise RagPipelineError(f"no sql folder beside {package}: the installation is incomplete, install the package again")


@cache
def queries(file: str) -> dict[str, LiteralString]:
    """The statements of `sql/queries/<file>.sql` by the name above each (`-- name: …`)."""
    text = (sql_folder() / "queries" / f"{file}.sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)
    # The files ship with the code and hold no input, so they are as literal as a string in a module.
    return {name: cast("LiteralString", body.strip()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}
