"""Whether what a search of a tenant may find has changed: what is cached of it is good until then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """What a tenant's searches find, as a value to compare: equal as long as nothing was written."""

    space_id: int | None
    """The active embedding space; None: nothing is indexed yet."""
    changes: int
    newest: int
    digest: str


def index_state(connection: Connection, tenant: str) -> IndexState:
    """The state at this moment. What is read of the index afterwards is this state, or a newer one."""
    row = connection.execute(queries("changes")["state"], {"tenant": tenant}).fetchone()
    assert row is not None
    return IndexState(space_id=row[0], changes=row[1], newest=row[2], digest=row[3])


def note_changes(connection: Connection, tenants: Iterable[str]) -> None:
    """Note what no trigger sees: that texts of these tenants have vectors now, without a document having changed."""
    connection.execute(queries("changes")["note"], {"tenants": sorted(set(tenants))})


def compact_changes(connection: Connection, *, before: datetime | None = None) -> int:
    """Keep the newest row of each tenant, and what is not older than `before`; returns how many went.

    Each row costs every search a look; that one goes costs a tenant what is cached for it.
    """
    return connection.execute(queries("changes")["compact"], {"before": before}).rowcount
