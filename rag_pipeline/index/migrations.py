"""Brings a database's schema up to date: numbered SQL files, each applied once, in order, in its own transaction.

A well-kept library was weighed (yoyo, alembic): both bring their own language or an ORM for what is here one advisory
lock, one table and a checksum.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from rag_pipeline.errors import DatabaseUnavailable, MigrationError
from rag_pipeline.index.database import Connection, connect
from rag_pipeline.index.sql_files import queries, sql_folder

_FILE = re.compile(r"^(\d{4})_(\w+)\.sql$")
_NO_TRIGRAMS: Final = (
    "misspelt words of questions are not corrected, because the database has no pg_trgm: install PostgreSQL's contrib "
    "modules, or let an administrator run CREATE EXTENSION pg_trgm"
)
_EARLIER = {
    # Edited twice after it had landed: a grant to readers, and a comment. 0011 brings the grant.
    9: (
        "9b005d453a5efebd7600bf1738cd05f4a3e2c5e3c48e9044f770b7e675c32a65",
        "f48ebcc3be9249396ef3492b2420c6fd43d50263ab7975454116ff9666c36dcf",
    ),
}
"""Checksums of earlier texts of a migration, which databases out there were migrated with."""
_LOCK = 0x52414750  # any number of our own: one migration at a time per database


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered file."""

    version: int
    name: str
    sql: str
    checksum: str


def read_migrations(folder: Path | None = None) -> list[Migration]:
    """The migrations on disk, in order.

    Raises:
        MigrationError: a number is missing or used twice.
    """
    folder = folder or sql_folder() / "migrations"
    found = []
    for path in sorted(folder.glob("*.sql")):
        match = _FILE.match(path.name)
        if not match:
            raise MigrationError(f"{path} is not named like 0001_what_it_does.sql: rename it")
        sql = path.read_text(encoding="utf-8")
        checksum = hashlib.sha256(sql.encode()).hexdigest()
        found.append(Migration(version=int(match[1]), name=match[2], sql=sql, checksum=checksum))
    if [m.version for m in found] != list(range(1, len(found) + 1)):
        raise MigrationError(
            f"the migrations in {folder} are not numbered 0001, 0002, … without gaps: renumber the newest"
        )
    return found


def migrate(url: str, *, migrations: Sequence[Migration] | None = None) -> list[Migration]:
    """Apply what is missing and return it; safe when several processes start at once.

    Raises:
        MigrationError: an applied file was changed, or the database is newer than this code.
        DatabaseUnavailable: no connection, no pgvector, or no right to create it.
    """
    wanted = read_migrations() if migrations is None else migrations
    sql = queries("migrations")
    with connect(url) as connection:
        # The lock ends with the connection, however that ends.
        connection.execute(sql["lock"], {"lock": _LOCK})
        _ensure_table(connection)
        applied = {row[0]: row[1] for row in connection.execute(sql["applied"])}
        _check(wanted, applied, url)
        missing = [m for m in wanted if m.version not in applied]
        for migration in missing:
            _apply(connection, migration)
        _ensure_trigrams(connection)
        return missing


def pending(url: str) -> list[Migration]:
    """The migrations that a database still lacks; changes nothing."""
    with connect(url) as connection:
        return lacking(connection)


def lacking(connection: Connection) -> list[Migration]:
    """As `pending`, over an open connection."""
    present = connection.execute(queries("migrations")["present"]).fetchone()
    applied = (
        {row[0] for row in connection.execute(queries("migrations")["applied"])} if present and present[0] else set()
    )
    return [m for m in read_migrations() if m.version not in applied]


def has_trigrams(connection: Connection) -> bool:
    """Whether misspelt words of questions can be corrected: pg_trgm is there."""
    found = connection.execute(queries("migrations")["has_trigrams"]).fetchone()
    return bool(found and found[0])


def lacks_trigrams(url: str) -> str:
    """What is done without, and what to do about it, where the database has no pg_trgm; empty where it has."""
    with connect(url) as connection:
        return "" if has_trigrams(connection) else _NO_TRIGRAMS


def _ensure_trigrams(connection: Connection) -> None:
    """Create pg_trgm where the server has it and lets us; no migration, because everything else works without it."""
    if has_trigrams(connection):
        return
    with suppress(psycopg.Error):
        connection.execute(queries("migrations")["create_trigrams"])


def _check(wanted: Sequence[Migration], applied: dict[int, str], url: str) -> None:
    known = {m.version: m for m in wanted}
    for version, checksum in applied.items():
        if version not in known:
            raise MigrationError(
                f"the database has migration {version:04d}, which this code does not know: update the code"
            )
        if checksum not in (known[version].checksum, *_EARLIER.get(version, ())):
            raise MigrationError(
                f"sql/migrations/{version:04d}_{known[version].name}.sql was changed after it was applied: "
                "restore it and put the change into a new migration"
            )


def _ensure_table(connection: Connection) -> None:
    present = connection.execute(queries("migrations")["present"]).fetchone()
    if present and present[0]:
        return
    try:
        connection.execute(queries("migrations")["ensure_table"])
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseUnavailable(
            f"the schema `rag` cannot be created: {str(error).splitlines()[0]}. "
            "This user needs the right to create a schema"
        ) from error


def _apply(connection: Connection, migration: Migration) -> None:
    try:
        with connection.transaction():
            connection.execute(migration.sql.encode())
            connection.execute(
                queries("migrations")["record"],
                {"version": migration.version, "name": migration.name, "checksum": migration.checksum},
            )
    except (
        psycopg.errors.UndefinedFile,
        psycopg.errors.FeatureNotSupported,
        psycopg.errors.InsufficientPrivilege,
    ) as error:
        brief = str(error).splitlines()[0]
        raise DatabaseUnavailable(
            f"migration {migration.version:04d} cannot be applied: {brief}. The server needs pgvector 0.8 or newer, "
            "and this user the right to create its extension, a schema and a role"
        ) from error
    except psycopg.Error as error:
        raise MigrationError(
            f"sql/migrations/{migration.version:04d}_{migration.name}.sql failed and was undone: "
            f"{str(error).splitlines()[0]}: put it right, then migrate again"
        ) from error
