"""`PUT` and `DELETE /v1/documents/{source_type}/{id}`: a document becomes a drop, and is indexed by the next run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path
from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from rag_pipeline.errors import ItemError
from rag_pipeline.model import Json
from rag_pipeline.notebook_json import CONTENT_TYPE as NOTEBOOK
from rag_pipeline.serving.caller import Caller
from rag_pipeline.serving.depends import ServicesOf, Writer
from rag_pipeline.serving.errors import documented, refusal
from rag_pipeline.serving.fields import Storable, Strict, storable
from rag_pipeline.serving.services import Services
from rag_pipeline.sources.drops.received import INBOX, Received
from rag_pipeline.sources.kinds.registry import blocks_that_hold, kinds

router = APIRouter(tags=["documents"])
_log = logging.getLogger(__name__)
_COME_BACK_S: Final = 5.0
Markup = Literal["asciidoc", "html", "markdown", "notebook", "rst", "text"]
_CONTENT_TYPES: Final[Mapping[Markup, str]] = {
    "asciidoc": "text/asciidoc", "html": "text/html", "markdown": "text/markdown",
    "notebook": NOTEBOOK, "rst": "text/x-rst", "text": "text/plain",
}  # fmt: skip


def _storable_values(values: dict[str, Any]) -> dict[str, Any]:
    """Refuses texts, however deep they are, that PostgreSQL cannot hold."""
    left: list[Any] = [values]
    while left:
        value = left.pop()
        if isinstance(value, str):
            storable(value)
        elif isinstance(value, dict):
            left += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            left += value
    return values


SourceType = Annotated[str, Path(max_length=64, description="Such as `knowledge`: lower-case letters, digits and `_`.")]
Identity = Annotated[str, Path(alias="id", max_length=500, description="Of the document among those of its type.")]
Words = Annotated[str, StringConstraints(max_length=2_000), Storable]
Metadata = Annotated[dict[str, Any], AfterValidator(_storable_values)]


class NewDocument(Strict):
    """A document, whole."""

    content: Annotated[str, StringConstraints(max_length=100_000_000), Storable]
    title: Words | None = None
    content_type: Words | None = None
    """By default `text/markdown`; instead of `markup`."""
    markup: Markup | None = None
    url: Words | None = None
    """Where people can read it."""
    metadata: Metadata = Field(default_factory=dict)
    scope: Words | None = None
    """Only queries that name it see the document; without one, all of the tenant do."""
    repository: Words | None = None
    """To find it by; by default `inbox`."""
    updated_at: datetime | None = None
    """When it last changed; by default now."""


class Dropped(BaseModel):
    """It is on disk, and the next run of the pipeline takes it in."""

    status: Literal["accepted", "duplicate"]
    """`duplicate`: it is so already, and nothing was written."""
    name: str
    """Of the drop."""


@router.put("/v1/documents/{source_type}/{id:path}", status_code=202, responses=documented(404, 409))
async def put_document(
    source_type: SourceType, identity: Identity, body: NewDocument, caller: Writer, services: ServicesOf
) -> Dropped:
    """Put a document into the index, in place of what was there under its type and id.

    Of several that are put one after the other, the last one stays, whatever their `updated_at` says.
    """
    caller.scoped([body.scope] if body.scope is not None else [])
    if body.content_type is not None and body.markup is not None:
        raise refusal(422, "content_type and markup say the same: send one of them")
    _require_own(services, source_type, body.repository or INBOX, caller)
    record = _record(body) | {"source_type": source_type, "id": identity, "tenant": caller.tenant}
    return await services.workers.run(lambda: _put(services, record, repository=body.repository or INBOX))


@router.delete("/v1/documents/{source_type}/{id:path}", status_code=202, responses=documented(404))
async def delete_document(source_type: SourceType, identity: Identity, caller: Writer, services: ServicesOf) -> Dropped:
    """Take a document out of the index; no error when there is none."""
    _require_own(services, source_type, INBOX, caller)
    record: dict[str, Json] = {"source_type": source_type, "id": identity, "tenant": caller.tenant, "deleted": True}
    return await services.workers.run(lambda: _drop(services, record, repository=INBOX))


def _record(body: NewDocument) -> dict[str, Json]:
    """What of the body goes into the drop; the order of the keys does not depend on that of the body."""
    content_type = body.content_type or (_CONTENT_TYPES[body.markup] if body.markup else None)
    found: dict[str, Json] = {
        "content": body.content, "title": body.title, "content_type": content_type, "url": body.url,
        "metadata": body.metadata, "scope": body.scope,
        "updated_at": body.updated_at.isoformat() if body.updated_at else None,
    }  # fmt: skip
    return {key: value for key, value in found.items() if value is not None}


def _require_own(services: Services, source_type: str, repository: str, caller: Caller) -> None:
    """Refuse what is read from a source of its own: the next reading would be at odds with what was put."""
    settings = services.settings
    kinds_here = {kind.name: kind for kind in kinds()}
    if source_type in kinds_here:
        raise refusal(422, f"source_type {source_type!r} is read from its own source: give another")
    names = {r.name for r in settings.repositories if (r.tenant or settings.tenant) == caller.tenant}
    for kind in kinds_here.values():
        names |= {block.name for _, block in blocks_that_hold(kind, settings) if block.tenant == caller.tenant}
    if repository in names:
        raise refusal(422, f"repository {repository!r} is read from its own source: give another, or none")


def _put(services: Services, record: Mapping[str, Json], *, repository: str) -> Dropped:
    try:
        item = services.documents.understood(record, repository=repository)
    except ItemError as error:
        raise refusal(422, f"the document cannot be taken: {error}") from None
    if services.settings.forgotten(services.clock()).covers(item):
        raise refusal(
            409, "this document was forgotten, or is older than its type is kept: `rag-pipeline forget --undo` allows "
            "it again",
        )  # fmt: skip
    return _drop(services, record, repository=repository)


def _drop(services: Services, record: Mapping[str, Json], *, repository: str) -> Dropped:
    try:
        received: Received = services.documents.receive(record, repository=repository)
    except ItemError as error:
        raise refusal(422, f"the document cannot be taken: {error}") from None
    except Exception:
        # Each store has errors of its own.
        _log.exception("a document could not be written to the inbox")
        raise refusal(
            503, "the inbox cannot be written at the moment: send the document again", retry_after_s=_COME_BACK_S
        ) from None
    return Dropped(status="accepted" if received.is_new else "duplicate", name=received.name)
