"""Forgetting: marked first, so that nothing writes it again, then taken out of every place that holds it.

Taking out goes by the marks alone, all of them, and finds the same whether it is done for the first time or after a
kill. The same look without taking anything out is the proof. A new place is one entry in `_places`.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID

from rag_pipeline.forgotten import Forgotten, Mark, tenant_mark, write_marks
from rag_pipeline.index import forgetting as index
from rag_pipeline.index.database import Connection
from rag_pipeline.index.feedback import LoggedQuery, logged_queries, remove_queries
from rag_pipeline.index.pg_search import is_whole, sync_pg_search
from rag_pipeline.lake.store import Lake
from rag_pipeline.refresh.forgotten_parts import (
    PartFindings,
    find_parts,
    held_texts,
    remove_from_part,
    stages_of,
    unread_parts,
)
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.forgotten_drops import purge_inbox
from rag_pipeline.sources.drops.stage import inbox_of
from rag_pipeline.sources.git.mirror import mirror_of
from rag_pipeline.sources.github.forgetting import holds_stubs, purge_mirror, remove_mirrors
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.kinds.memory import remove_memories


@dataclass(slots=True, kw_only=True)
class ForgetReport:
    """What was found of what is forgotten, and what is left of it, by place."""

    found: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    cut: int = 0
    """Documents of others that lost what was said in them: they are in the index again after the next refresh."""
    still_configured: list[str] = field(default_factory=list)
    """Forgotten repositories that the settings name."""

    @property
    def is_gone(self) -> bool:
        """Whether nothing is left anywhere."""
        return not self.left.total()


@dataclass(kw_only=True)
class _Look:
    """One pass over all places; with `remove`, what it finds is taken out."""

    settings: Settings
    lake: Lake
    connection: Connection
    forgotten: Forgotten
    names: Sequence[str]
    now: datetime
    remove: bool
    whole: bool = True
    """Whether postings and vectors of nothing count, too: later edits of other documents make some again."""
    parts: list[PartFindings] = field(default_factory=list)
    documents: set[UUID] = field(default_factory=set)
    """Of the index, that leave it."""
    tenants: set[str] = field(default_factory=set)
    """Whose data may hold something."""
    cut: set[UUID] = field(default_factory=set)

    def run(self) -> Counter[str]:
        """What there is, or was, by place."""
        self.parts = list(find_parts(self.lake, self.forgotten))
        self.cut = {id_ for found in self.parts for id_ in found.raw.cut}
        # What is gone is known by itself here, too: a state in the lake may be too old, and a newer one is not.
        for indexed in index.indexed_documents(self.connection):
            document = indexed.document
            if document.document_id in self.cut or self.forgotten.covers(document):
                self.documents.add(document.document_id)
                self.tenants.add(document.tenant)
        self.tenants |= {found.part.tenant for found in self.parts} | {mark.tenant for mark in self.forgotten.marks}
        known = {tenant for tenant, _ in index.remembered(self.connection)}
        self.tenants |= {tenant for tenant in known if tenant_mark(tenant) in self.forgotten.marks}
        self.tenants.discard("")
        found: Counter[str] = Counter()
        for place in _places():
            found.update(place(self))
        return found


def _places() -> Iterator[Callable[[_Look], dict[str, int]]]:
    """Where something may be, in the order in which it is taken out: what others are found by goes last."""
    yield _questions
    yield _index
    yield _postings
    yield _vectors
    yield _failures
    yield _memories
    yield _lake
    yield _github_mirrors
    yield _git_mirrors
    yield _listings
    yield _inbox


def expected(
    settings: Settings, lake: Lake, connection: Connection, new: Sequence[Mark], *, now: datetime,
    names: Sequence[str] = (),
) -> ForgetReport:  # fmt: skip
    """What forgetting these would find; changes nothing. `names` is what they are called, as far as it is known."""
    return _found(settings, lake, connection, index.marks(connection) | set(new), names=names, now=now)


def forget(
    settings: Settings, lake: Lake, connection: Connection, new: Sequence[Mark], *, now: datetime,
    names: Sequence[str] = (),
) -> ForgetReport:  # fmt: skip
    """Forget these and whatever else is marked or too old, everywhere, and look whether anything is left.

    Killed at any moment and done again, it ends in the same.

    Raises:
        TransientError: a run is at work for longer than we wait.
    """
    with index.alone(connection):
        index.add_marks(connection, new, now=now)
        marks = index.marks(connection)
        write_marks(settings.home, marks)
        look = _look(settings, lake, connection, marks, names=names, now=now, remove=True)
        report = ForgetReport(found=look.run(), cut=len(look.cut))
        write_marks(settings.home, index.marks(connection))
        report.left = _found(settings, lake, connection, index.marks(connection), names=names, now=now).found
    index.vacuum(connection)
    report.still_configured = [repository.name for repository in settings.forgotten_repositories]
    return report


def verify(settings: Settings, lake: Lake, connection: Connection, *, now: datetime) -> ForgetReport:
    """Look for all that was ever forgotten; what is found is left, too."""
    look = _look(settings, lake, connection, index.marks(connection), names=(), now=now, remove=False)
    look.whole = False
    found = look.run()
    return ForgetReport(found=found, left=found, cut=len(look.cut))


def apply_retention(settings: Settings, lake: Lake, connection: Connection, now: datetime) -> ForgetReport:
    """Take out what is older than its source type is kept, and what a restored backup brought back; for maintenance.

    Raises:
        TransientError: a run is at work for longer than we wait.
    """
    if not settings.retention.kept_from(now) and not index.marks(connection):
        return ForgetReport()
    return forget(settings, lake, connection, (), now=now)


def undo(settings: Settings, lake: Lake, connection: Connection, old: Sequence[Mark], *, repository: str | None) -> int:
    """Allow it again: the next refresh reads it again where its source still has it; how many marks there were.

    What cannot be read again, such as a drop, has to be dropped again.
    """
    with index.alone(connection):
        dropped = index.drop_marks(connection, old)
        write_marks(settings.home, index.marks(connection))
        if dropped:
            tenants = {mark.tenant for mark in old if mark.tenant} or {r.tenant for r in settings.repositories}
            for tenant in tenants:
                index.look_again(connection, tenant=tenant, repository=repository)
                unread_parts(lake, tenant, repository)
                _reread(settings, tenant, repository)
    return dropped


def _reread(settings: Settings, tenant: str, repository: str | None) -> None:
    """Delete mirrors that hold stubs: only GitHub still has what stood there."""
    for configured in settings.github_repositories:
        mirror = GitHubMirror(settings, configured)
        if configured.tenant == tenant and repository in (None, configured.name) and holds_stubs(mirror):
            with mirror.locked():
                for path in mirror.files():
                    path.unlink(missing_ok=True)


def _found(
    settings: Settings, lake: Lake, connection: Connection, marks: frozenset[Mark], *, names: Sequence[str],
    now: datetime,
) -> ForgetReport:  # fmt: skip
    look = _look(settings, lake, connection, marks, names=names, now=now, remove=False)
    return ForgetReport(found=look.run(), cut=len(look.cut))


def _look(
    settings: Settings, lake: Lake, connection: Connection, marks: frozenset[Mark], *, names: Sequence[str],
    now: datetime, remove: bool,
) -> _Look:  # fmt: skip
    forgotten = Forgotten(marks=marks, kept_from=settings.retention.kept_from(now))
    return _Look(
        settings=settings, lake=lake, connection=connection, forgotten=forgotten, names=names, now=now, remove=remove
    )


# The places -----------------------------------------------------------------------------------------------------------


def _index(look: _Look) -> dict[str, int]:
    ids = sorted(look.documents)
    found = {"documents": len(ids), **index.count_rows(look.connection, ids)}
    if look.remove:
        for part in {(f.part.tenant, f.part.repository) for f in look.parts if f.raw.cut}:
            index.look_again(look.connection, tenant=part[0], repository=part[1], parts=True)
        index.remove_documents(look.connection, ids)
    return found


def _questions(look: _Look) -> dict[str, int]:
    """Before the documents: while they are there, it is known by them whose questions found them.

    Afterwards, and of what was found in the meantime, by what they name and the index knows nothing of.
    """
    words = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE) for name in look.names if name]
    gone = [asked for asked in logged_queries(look.connection, look.tenants) if _is_forgotten(look, asked, words)]
    if look.remove:
        remove_queries(look.connection, [asked.query_id for asked in gone])
    return {"questions": len(gone), "feedback": sum(asked.feedback for asked in gone)}


def _is_forgotten(look: _Look, asked: LoggedQuery, words: Sequence[re.Pattern[str]]) -> bool:
    tenant, forgotten = asked.tenant, look.forgotten
    return (
        asked.is_dangling
        or tenant_mark(tenant) in forgotten.marks
        or not look.documents.isdisjoint(asked.documents)
        or forgotten.author(tenant, asked.parameters.get("author"))
        or forgotten.repository(tenant, str(asked.parameters.get("repository", "")))
        or any(word.search(asked.question) for word in words)
    )


def _postings(look: _Look) -> dict[str, int]:
    """After the documents: by then, what is left of them here belongs to no chunk."""
    if not look.whole:
        return {}
    found = sum(index.stale_postings(look.connection, tenant, without=look.documents) for tenant in look.tenants)
    if look.remove:
        for tenant in sorted(look.tenants):
            index.merge_away(look.connection, tenant)
            if is_whole(look.connection, tenant=tenant):
                sync_pg_search(look.connection, tenant=tenant)
    return {"postings": found}


def _vectors(look: _Look) -> dict[str, int]:
    if not look.whole:
        return {}
    leaving = {found.part: found.documents for found in look.parts}
    found = 0
    for tenant in sorted(look.tenants):
        held = held_texts(look.lake, tenant, leaving)
        found += index.orphaned_vectors(look.connection, tenant, held=held, without=look.documents, remove=look.remove)
    return {"vectors": found}


def _failures(look: _Look) -> dict[str, int]:
    return {"quarantine": index.forgotten_failures(look.connection, look.forgotten, remove=look.remove)}


def _memories(look: _Look) -> dict[str, int]:
    found: Counter[str] = Counter()
    known = index.remembered(look.connection)
    for tenant in sorted({tenant for tenant, _ in known}):
        if tenant_mark(tenant) in look.forgotten.marks:
            found.update(index.memories(look.connection, tenant, None, remove=look.remove))
    for tenant, repository in known:
        is_whole_tenant = tenant_mark(tenant) in look.forgotten.marks
        if repository and not is_whole_tenant and look.forgotten.repository(tenant, repository):
            found.update(index.memories(look.connection, tenant, repository, remove=look.remove))
    return dict(found)


def _lake(look: _Look) -> dict[str, int]:
    rows: Counter[str] = Counter()
    for found in look.parts:
        rows.update({f"lake {stage}": count for stage, count in found.rows.items()})
        if look.remove:
            remove_from_part(look.settings, look.lake, look.connection, found, look.forgotten)
    folders = 0
    for stage in stages_of(look.lake):
        for tenant, repository in look.lake.repositories(stage):
            if look.forgotten.repository(tenant, repository):
                folders += 1
                if look.remove:
                    look.lake.remove_folder(stage, tenant=tenant, repository=repository)
    return {**rows, "lake folders": folders}


def _github_mirrors(look: _Look) -> dict[str, int]:
    found = 0
    for repository in look.settings.github_repositories:
        found += purge_mirror(GitHubMirror(look.settings, repository), now=look.now, remove=look.remove).found
    files = remove_mirrors(look.settings, look.forgotten, remove=look.remove)
    return {"github mirror": found, "github mirror files": files}


def _git_mirrors(look: _Look) -> dict[str, int]:
    """Clones of forgotten repositories; one that another repository or tenant reads, too, stays."""
    forgotten, kept = set[Path](), set[Path]()
    for repository in look.settings.repositories:
        if repository.source:
            path = mirror_of(repository, home=look.settings.home).path
            is_forgotten = look.forgotten.repository(repository.tenant, repository.name)
            (forgotten if is_forgotten else kept).add(path)
    there = [path for path in forgotten - kept if path.exists()]
    if look.remove:
        for path in there:
            shutil.rmtree(path)
            path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    return {"git clones": len(there)}


def _listings(look: _Look) -> dict[str, int]:
    """What listings of further kinds of sources showed."""
    return {"listings": remove_memories(look.settings.home, look.forgotten, remove=look.remove)}


def _inbox(look: _Look) -> dict[str, int]:
    found = purge_inbox(
        inbox_of(look.settings), look.forgotten, look.settings, names=look.names, now=look.now, remove=look.remove
    )
    return {f"inbox {place}": count for place, count in found.items()}
