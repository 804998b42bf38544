"""Documents that the index does not know yet: COPY (binary) straight into their tables, with all indexes in place.

What is staged first is written twice and looked at row by row; for what is new there is nothing to look at. Rows go in
in the order of document ids, as those of every other writer, so that nobody waits for anybody in a circle; of two who
write the same document, the second fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_pipeline.index.database import Connection
from rag_pipeline.index.rows import CHUNK_TYPES, DOCUMENT_TYPES, LINK_TYPES, Row, chunk_row, link_rows
from rag_pipeline.index.segments import Worded, add_segments
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lexical.postings import Vocabulary

if TYPE_CHECKING:
    from rag_pipeline.index.writer import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """Rows beside those of the documents."""

    chunks: int
    links: int


def insert_new(
    connection: Connection, entries: Sequence[Entry], document_rows: Sequence[Row], *, vocabulary: Vocabulary
) -> Inserted:
    """Write documents with their chunks, links and postings; inside a transaction.

    Raises:
        psycopg.errors.UniqueViolation: the index knows one of them by now; the transaction is to be rolled back.
    """
    sql = queries("writer")
    order = sorted(range(len(entries)), key=lambda index: entries[index].document.document_id)
    ordered = [entries[index] for index in order]
    with connection.cursor() as cursor:
        with cursor.copy(sql["insert_documents"]) as copy:
            copy.set_types(DOCUMENT_TYPES)
            for index in order:
                copy.write_row(document_rows[index])
        worded = _insert_chunks(connection, ordered)
        links = [row for entry in ordered for row in link_rows(entry.document)]
        if links:
            with cursor.copy(sql["insert_links"]) as copy:
                copy.set_types(LINK_TYPES)
                for row in links:
                    copy.write_row(row)
    add_segments(connection, added=worded, removed=(), vocabulary=vocabulary)
    return Inserted(chunks=len(worded), links=len(links))


def _insert_chunks(connection: Connection, entries: Sequence[Entry]) -> list[Worded]:
    """Their numbers are taken beforehand, so that what the postings need does not have to be read back."""
    sql = queries("writer")
    count = sum(len(entry.chunks) for entry in entries)
    if not count:
        return []
    numbers = iter(connection.execute(sql["next_numbers"], {"count": count}).fetchall())
    worded = []
    with connection.cursor() as cursor, cursor.copy(sql["insert_chunks"]) as copy:
        copy.set_types((*CHUNK_TYPES, "int8"))
        for entry in entries:
            for chunk in entry.chunks:
                row, (number,) = chunk_row(chunk, entry.document), next(numbers)
                copy.write_row((*row, number))
                # Text and lead as they are stored.
                worded.append(Worded(chunk.tenant, entry.document.scope, number, lead=str(row[-1]), text=str(row[5])))
    return worded
