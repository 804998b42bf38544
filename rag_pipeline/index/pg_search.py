"""ParadeDB's pg_search as the lexical index, where the server has that extension: our terms in its BM25 index.

Outside the migrations, because plain servers lack the extension. Chunks are analyzed by us and stored as terms with
spaces between them, so that both lexical legs see the same words; in a table for each tenant, so that no tenant's words
count in another's statistics. What the table holds is a function of `rag.chunks`: a sync compares the two and writes
the difference, so that it may be interrupted, repeated and left out at any time.

The index is not crash-safe (it writes no WAL): see `is_whole`.
"""

from __future__ import annotations

import hashlib

import psycopg
from psycopg import sql

from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.index.database import Connection
from rag_pipeline.index.segments import Worded, lexical_text
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lexical.analyzer import ANALYZER_VERSION, terms_of

_BATCH_CHUNKS = 5_000


def ensure_pg_search(connection: Connection) -> bool:
    """Create the extension and our registry unless they are there; False when the server does not carry pg_search.

    Raises:
        DatabaseUnavailable: this user may not create the extension.
    """
    statements = queries("pg_search")
    found = connection.execute(statements["available"]).fetchone()
    if not (found and found[0]):
        return False
    if not _has_registry(connection):
        try:
            with connection.transaction():
                connection.execute(statements["create_registry"])
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseUnavailable(
                f"pg_search cannot be set up: {str(error).splitlines()[0]}. Create the extension as a superuser, "
                'or set retrieval.lexical to "postings"'
            ) from error
    return True


def sync_pg_search(connection: Connection, *, tenant: str) -> int:
    """Bring a tenant's terms to what its chunks are now, in one transaction; how many rows that wrote or removed.

    An index that may not be whole, because of a crash or another version of the analyzer, is made anew. The statistics
    still count what was removed until the extension merges its segments.
    """
    statements = queries("pg_search")
    with connection.transaction():
        connection.execute(statements["lock"], {"tenant": tenant})
        if is_whole(connection, tenant=tenant):
            changed = connection.execute(on_tenant("remove", tenant), {"tenant": tenant}).rowcount
            return changed + _add_missing(connection, tenant)
        connection.execute(on_tenant("drop", tenant))
        connection.execute(on_tenant("create", tenant))
        changed = _add_missing(connection, tenant)
        connection.execute(on_tenant("build", tenant))
        connection.execute(statements["register"], {"tenant": tenant, "analyzer": ANALYZER_VERSION})
        return changed


def is_whole(connection: Connection, *, tenant: str) -> bool:
    """Whether a tenant's index holds all that the last sync gave it, and was made by this analyzer.

    pg_search writes no WAL: after a crash of the server its index silently lacks what came after the last checkpoint.
    The registry is an unlogged table, which a crash empties. A standby never has such an index.
    """
    if not _has_registry(connection):
        return False
    values = {"tenant": tenant, "analyzer": ANALYZER_VERSION}
    found = connection.execute(queries("pg_search")["is_whole"], values).fetchone()
    return bool(found and found[0])


def on_tenant(name: str, tenant: str) -> sql.Composed:
    """A statement on a tenant's table, which is called by a hash: a tenant's name may be anything."""
    table = f"pg_search_{hashlib.blake2b(tenant.encode(), digest_size=12).hexdigest()}"
    identifiers = {"name": sql.Identifier(table), "index": sql.Identifier(f"{table}_bm25")}
    return sql.SQL(queries("pg_search")[name]).format(**identifiers)


def _has_registry(connection: Connection) -> bool:
    found = connection.execute(queries("pg_search")["present"]).fetchone()
    return bool(found and found[0])


def _add_missing(connection: Connection, tenant: str) -> int:
    added = last = 0
    while True:
        values = {"tenant": tenant, "after": last, "limit": _BATCH_CHUNKS}
        rows = connection.execute(on_tenant("missing", tenant), values).fetchall()
        if not rows:
            return added
        with connection.cursor() as cursor, cursor.copy(on_tenant("copy", tenant)) as copy:
            for worded in map(Worded._make, rows):
                copy.write_row((worded.number, tenant, worded.scope, " ".join(terms_of(lexical_text(worded)))))
        added, last = added + len(rows), rows[-1][2]
