"""What people call a thing that is to be forgotten, and the marks that stand for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Literal
from uuid import UUID

from rag_pipeline.errors import ConfigError, SourceNotFound
from rag_pipeline.forgotten import Mark, author_mark, document_mark, repository_mark, tenant_mark
from rag_pipeline.index.database import Connection
from rag_pipeline.index.forgetting import indexed_documents, marks, remembered
from rag_pipeline.lake.derive import parts_in
from rag_pipeline.lake.schemas import items_of
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange, document_id
from rag_pipeline.refresh.parts import RAW_STAGES
from rag_pipeline.settings import Settings

_COLUMNS = ("tenant", "source_type", "source_id", "path", "url")
_ALL_DAYS = DayRange(first=date.min, last=date.max)
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What somebody wants forgotten, in their words."""

    kind: Literal["document", "repository", "tenant", "author"]
    name: str
    """Of a document: its URL, path, source id or document id."""
    tenant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A target that was found."""

    mark: Mark
    names: Sequence[str] = ()
    """What it is called, to look for it in what no program can read."""
    document: UUID | None = None
    known: bool = True
    """Whether it is there, or was forgotten before."""


def named(target: Target, settings: Settings, lake: Lake, connection: Connection) -> Named:
    """The mark of a target.

    Raises:
        SourceNotFound: nothing is called that, and nothing of that name was forgotten.
        ConfigError: several documents are called that.
    """
    if target.kind == "document":
        return _document(target, settings, lake, connection)
    if target.kind == "author":
        return Named(mark=author_mark(target.tenant, target.name), names=[target.name])
    if target.kind == "repository":
        mark = repository_mark(target.tenant, target.name)
        there = {name for tenant, name in _places(settings, lake, connection) if tenant == target.tenant}
        there |= {repository.github for repository in settings.repositories if repository.name in there}
    else:
        mark = tenant_mark(target.name)
        there = {tenant for tenant, _ in _places(settings, lake, connection)}
    if target.name not in there and mark not in marks(connection):
        known = ", ".join(sorted(name for name in there if name)[:_SHOWN]) or "nothing"
        raise SourceNotFound(f"there is no {target.kind} {target.name!r}: it is one of {known}, …")
    return Named(mark=mark)


def _places(settings: Settings, lake: Lake, connection: Connection) -> Iterator[tuple[str, str]]:
    yield from ((repository.tenant, repository.name) for repository in settings.repositories)
    yield from remembered(connection)
    for stage in (*RAW_STAGES, "documents"):
        yield from lake.repositories(stage)


def _document(target: Target, settings: Settings, lake: Lake, connection: Connection) -> Named:
    found = _indexed(target, connection) or _in_lake(target, lake)
    if len(found) > 1:
        shown = ", ".join(sorted(source_id for _, source_id, _ in found.values())[:_SHOWN])
        raise ConfigError(f"{target.name!r} names {len(found)} documents ({shown}): name one by its source id")
    if found:
        ((id_, (_, source_id, url)),) = found.items()
        return Named(mark=document_mark(target.tenant, id_), document=id_, names=[n for n in (source_id, url) if n])
    known = marks(connection)
    for id_ in _candidates(target, settings):
        if document_mark(target.tenant, id_) in known:
            return Named(mark=document_mark(target.tenant, id_), document=id_, names=[target.name])
    raise SourceNotFound(
        f"no document of tenant {target.tenant!r} is called {target.name!r}: give its URL, path, source id or "
        "document id as `rag-pipeline search --json` shows them"
    )


def _indexed(target: Target, connection: Connection) -> dict[UUID, tuple[str, str, str | None]]:
    found = {}
    for indexed in indexed_documents(connection):
        d = indexed.document
        names = {str(d.document_id), d.source_id, d.path, indexed.url}
        if d.tenant == target.tenant and (target.name in names or target.name.partition("#")[0] == indexed.url):
            found[d.document_id] = (d.source_type, d.source_id, indexed.url)
    return found


def _in_lake(target: Target, lake: Lake) -> dict[UUID, tuple[str, str, str | None]]:
    """Documents that never reached the index, or have left it."""
    found = {}
    for part in parts_in(lake, RAW_STAGES, _ALL_DAYS):
        if part.tenant != target.tenant:
            continue
        for stage in RAW_STAGES:
            for batch in lake.read_or_give_up(stage, part, columns=_COLUMNS):
                for item in items_of(batch):
                    id_ = document_id(tenant=item.tenant, source_type=item.source_type, source_id=item.source_id)
                    if target.name in (str(id_), item.source_id, item.path, item.url):
                        found[id_] = (item.source_type, item.source_id, item.url)
    return found


def _candidates(target: Target, settings: Settings) -> Iterator[UUID]:
    """Documents that it might be, of which nothing but a mark is left."""
    with suppress(ValueError):
        yield UUID(target.name)
    repositories = [repository.name for repository in settings.repositories if repository.tenant == target.tenant]
    for source_id in (target.name, *(f"{name}:{target.name}" for name in repositories)):
        for source_type in ("docs", "code", "github_issue", "github_pull_request", "knowledge"):
            yield document_id(tenant=target.tenant, source_type=source_type, source_id=source_id)
