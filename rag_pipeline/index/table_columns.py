"""What the tables of the index hold, read from `sql/schema.sql`, where each column is explained beside its type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from rag_pipeline.index.sql_files import sql_folder

_TABLE = re.compile(r"^CREATE TABLE rag\.(\w+) \(\n(.*?)^\);$", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(
    r"^    (?P<name>[a-z_]+) +(?P<type>[a-z0-9]+(?:\[\]| precision)?)(?P<rest>[^\n]*?)(?: *-- (?P<meaning>.*))?$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column as `schema.sql` declares it."""

    name: str
    type: str
    nullable: bool
    meaning: str
    """What stands beside it; empty when its name says it all."""


@cache
def table_columns(table: str) -> tuple[TableColumn, ...]:
    """The columns of a table of schema `rag`, in order; none when there is no such table."""
    text = (sql_folder() / "schema.sql").read_text(encoding="utf-8")
    bodies = {match[1]: match[2] for match in _TABLE.finditer(text)}
    found = (_COLUMN.match(line) for line in bodies.get(table, "").splitlines())
    return tuple(
        TableColumn(
            name=column["name"], type=column["type"], meaning=(column["meaning"] or "").strip(),
            nullable=not re.search(r"NOT NULL|PRIMARY KEY|AS IDENTITY", column["rest"]),
        )
        for column in found if column
    )  # fmt: skip
