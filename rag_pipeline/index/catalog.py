"""What is wrong with the database's own furniture: indexes, row-level security, policies and the reader's rights.

What must be there is read from `sql/schema.sql`, which a test holds equal to what the migrations build: a new table or
index is expected from the day on which it stands there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import psycopg
from psycopg import sql

from rag_pipeline.index.database import Connection
from rag_pipeline.index.graph import needs_graph
from rag_pipeline.index.inspection import Offences, offences
from rag_pipeline.index.spaces import SpaceRecord, copy_table, space_records
from rag_pipeline.index.sql_files import queries, sql_folder

_TABLE = re.compile(r"CREATE TABLE rag\.(\w+) \((.*?)^\s*\)", re.MULTILINE | re.DOTALL)
_PRIMARY_KEY = re.compile(r"\bPRIMARY KEY\b(?: \(([\w, ]+)\))?")
_UNIQUE = re.compile(r"^\s*UNIQUE \(([\w, ]+)\)", re.MULTILINE)
_COLUMN = re.compile(r"^\s*(\w+) .*\bPRIMARY KEY\b", re.MULTILINE)
_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX (\w+) ON rag\.(\w+)[^;]*")
_POLICY = re.compile(r"CREATE POLICY (\w+) ON rag\.(\w+) FOR SELECT TO rag_reader USING \(([^;']*)\)[;']")
_GRANT = re.compile(r"GRANT SELECT ON (.*?) TO rag_reader")
_FUNCTION = re.compile(r"FUNCTION rag\.create_vector_table.*?\$\$(.*?)\$\$", re.DOTALL)
_EVERYBODY = "everyone"
"""The policy of tables that hold nothing of a tenant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedIndex:
    """An index that must be there."""

    name: str
    table: str
    statement: str
    """What makes it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedSchema:
    """What a database must have."""

    tables: frozenset[str]
    indexes: tuple[ExpectedIndex, ...]
    policies: dict[tuple[str, str], str]
    """(table, policy) to its predicate."""
    readable: frozenset[str]
    """Tables that searches read."""
    copies: frozenset[str] = frozenset()
    """Tables that may be there while a space is laid out anew, with a policy of their own."""


def expected_schema(spaces: Sequence[int]) -> ExpectedSchema:
    """What schema.sql says that a database with these embedding spaces has, but for their graphs."""
    text = _schema()
    made = _FUNCTION.search(text)
    of_spaces = [made[1].replace("vectors_%s", f"vectors_{number}") for number in spaces] if made else []
    whole = "\n".join([text, *of_spaces])
    tables: dict[str, str] = dict(_TABLE.findall(whole))
    indexes = [key for name, body in tables.items() for key in _keys(name, body)]
    indexes += [ExpectedIndex(name=m[1], table=m[2], statement=f"{' '.join(m[0].split())};")
                for m in _INDEX.finditer(whole)]  # fmt: skip
    granted = [name.strip().removeprefix("rag.") for names in _GRANT.findall(whole) for name in names.split(",")]
    return ExpectedSchema(
        tables=frozenset(tables),
        indexes=tuple(indexes),
        policies={(table, name): predicate for name, table, predicate in _POLICY.findall(whole)},
        readable=frozenset(granted) & frozenset(tables),
        copies=frozenset(copy_table(f"vectors_{number}") for number in spaces),
    )


def inspect_catalog(connection: Connection) -> dict[str, Offences]:
    """What is wrong with indexes, row-level security and the reader's rights, by name."""
    records = space_records(connection)
    expected = expected_schema([record.space.space_id for record in records])
    return {
        "missing_tables": _missing_tables(connection, expected),
        **_indexes(connection, expected, records),
        **_row_security(connection, expected),
        "reader_rights": _reader_rights(connection, expected),
        "rows_without_tenant": _rows_without_tenant(connection, expected),
    }


def _missing_tables(connection: Connection, expected: ExpectedSchema) -> Offences:
    present = {row[0] for row in connection.execute(queries("catalog")["tables"])}
    return offences([{"table": f"rag.{name}"} for name in sorted(expected.tables - present)])


def _indexes(connection: Connection, expected: ExpectedSchema, records: Sequence[SpaceRecord]) -> dict[str, Offences]:
    present = {row[1]: (row[0], row[2]) for row in connection.execute(queries("catalog")["indexes"])}
    tables = {row[0] for row in connection.execute(queries("catalog")["tables"])}
    missing = [
        {"index": f"rag.{index.name}", "table": index.table, "remedy": index.statement}
        for index in expected.indexes
        if index.name not in present and index.table in tables
    ]
    graphs = [
        {"index": f"rag.vectors_{number}_hnsw", "table": f"vectors_{number}",
         "remedy": f"rag-pipeline spaces build {number}"}
        for number in (record.space.space_id for record in records if record.space.status == "active")
        if f"vectors_{number}_hnsw" not in present and f"vectors_{number}" in tables
        and needs_graph(connection, next(r.space for r in records if r.space.space_id == number))
    ]  # fmt: skip
    invalid = [
        {"index": f"rag.{name}", "table": table, "remedy": f"REINDEX INDEX rag.{name};"}
        for name, (table, valid) in present.items()
        if not valid
    ]
    return {
        "missing_indexes": offences(missing), "missing_graphs": offences(graphs), "invalid_indexes": offences(invalid)
    }  # fmt: skip


def _row_security(connection: Connection, expected: ExpectedSchema) -> dict[str, Offences]:
    open_tables = [row[0] for row in connection.execute(queries("catalog")["tables"]) if not row[1]]
    present = {(row[0], row[1]): (row[2], row[3]) for row in connection.execute(queries("catalog")["policies"])}
    wrong = []
    for (table, name), predicate in sorted(expected.policies.items()):
        found, for_reader = present.get((table, name), (None, False))
        statement = f"CREATE POLICY {name} ON rag.{table} FOR SELECT TO rag_reader USING ({predicate});"
        if found is None:
            wrong.append({"table": f"rag.{table}", "policy": name, "why": "it is not there", "remedy": statement})
        elif _words(found) != _words(predicate) or not for_reader:
            remedy = f"DROP POLICY {name} ON rag.{table}; {statement}"
            wrong.append({"table": f"rag.{table}", "policy": name, "why": f"it says {found}", "remedy": remedy})
    # Policies add up: one more shows more. Tables of pg_search are made outside the schema.
    wrong += [
        {"table": f"rag.{table}", "policy": name, "why": f"nobody expects it: {predicate}",
         "remedy": f"DROP POLICY {name} ON rag.{table};"}
        for (table, name), (predicate, _) in sorted(present.items())
        if (table, name) not in expected.policies and (table not in expected.copies or name != "tenant")
        and not table.startswith("pg_search_")
    ]  # fmt: skip
    return {
        "tables_without_row_security": offences(
            [{"table": f"rag.{table}", "remedy": f"ALTER TABLE rag.{table} ENABLE ROW LEVEL SECURITY;"}
             for table in open_tables]
        ),
        "policies": offences(wrong),
    }  # fmt: skip


def _reader_rights(connection: Connection, expected: ExpectedSchema) -> Offences:
    role = connection.execute(queries("catalog")["reader"]).fetchone()
    if role is None:
        return offences([{"right": "the role rag_reader is not there", "remedy": "rag-pipeline migrate"}])
    superuser, bypasses, roles, databases, creates, member_of, owns = role
    had = [
        (superuser, "is a superuser", "ALTER ROLE rag_reader NOSUPERUSER;"),
        (bypasses, "bypasses row-level security", "ALTER ROLE rag_reader NOBYPASSRLS;"),
        (roles, "may create roles", "ALTER ROLE rag_reader NOCREATEROLE;"),
        (databases, "may create databases", "ALTER ROLE rag_reader NOCREATEDB;"),
        (creates, "may create things in schema rag", "REVOKE CREATE ON SCHEMA rag FROM rag_reader, PUBLIC;"),
        *((True, f"is a member of {name}", f"REVOKE {name} FROM rag_reader;") for name in member_of),
        *((True, f"owns {name}", f"ALTER TABLE {name} OWNER TO CURRENT_USER;") for name in owns),
    ]
    for table, _, _, readable, writable in connection.execute(queries("catalog")["tables"]).fetchall():
        taken = f"REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON rag.{table} FROM rag_reader, PUBLIC;"
        had.append((writable, f"may write to rag.{table}", taken))
        lacks = table in expected.readable and not readable
        had.append((lacks, f"may not read rag.{table}", f"GRANT SELECT ON rag.{table} TO rag_reader;"))
    return offences([{"right": f"rag_reader {what}", "remedy": remedy} for wrong, what, remedy in had if wrong])


def _rows_without_tenant(connection: Connection, expected: ExpectedSchema) -> Offences:
    """Tables that show the reader rows although no tenant was named: whatever the catalog says, it does not hold."""
    everybodys = {table for table, name in expected.policies if name == _EVERYBODY}
    return offences([
        {"table": f"rag.{table}", "why": "the reader sees rows of it without naming a tenant"}
        for table in sorted(expected.readable - everybodys)
        if _shows_anything(connection, table)
    ])  # fmt: skip


def _shows_anything(connection: Connection, table: str) -> bool:
    asked = sql.SQL(queries("catalog")["shows_anything"]).format(name=sql.Identifier(table))
    try:
        # Undone, because the role would stay until the outermost transaction ends.
        with connection.transaction(force_rollback=True):
            connection.execute(
                queries("search")["enter"],
                {"tenant": "", "scopes": [], "vectors": None, "neighbours": 1, "plans": "auto"},
            )
            found = connection.execute(asked).fetchone()
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
        return False  # which other looks tell
    return bool(found and found[0])


def _keys(table: str, body: str) -> list[ExpectedIndex]:
    """The indexes of a table's own constraints, by the names that PostgreSQL gives them."""
    found = []
    if key := _PRIMARY_KEY.search(body):
        column = _COLUMN.search(body)
        columns = key[1] or (column[1] if column else "")
        found.append(ExpectedIndex(
            name=f"{table}_pkey", table=table, statement=f"ALTER TABLE rag.{table} ADD PRIMARY KEY ({columns});"
        ))  # fmt: skip
    for columns in _UNIQUE.findall(body):
        name = "_".join([table, *re.findall(r"\w+", columns), "key"])
        found.append(
            ExpectedIndex(name=name, table=table, statement=f"ALTER TABLE rag.{table} ADD UNIQUE ({columns});")
        )
    return found


def _words(predicate: str) -> frozenset[str]:
    """A predicate without the ways in which it may be written: PostgreSQL prints it in its own."""
    return frozenset(re.findall(r"\w+", re.sub(r"::\w+", "", predicate).lower())) - {"rag"}


@cache
def _schema() -> str:
    text = (sql_folder() / "schema.sql").read_text(encoding="utf-8")
    return re.sub(r"--.*", "", text)
