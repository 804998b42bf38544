"""What a kind of source has to be: the one protocol, and the nouns in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

from pydantic import Field, field_validator

from rag_pipeline.model import Json
from rag_pipeline.settings.sections import Section, plain_name


class SourceBlock(Section):
    """One `[[sources.KIND]]` block: what every kind has; a kind's own keys are fields of a subclass."""

    name: str = Field(min_length=1)
    """What it is called in the index, beside the repositories' names."""
    tenant: str = ""
    """Whose knowledge it is; by default the file's `tenant`."""
    start_date: date | None = None
    """Its first daily partition; everything older is in that one. By default the file's `start_date`."""
    max_removed_items: int = Field(default=10, ge=0)
    """A listing that lacks more known items than this …"""
    max_removed_share: Annotated[float, Field(ge=0, le=1)] = 0.1
    """… and a larger share of them than this is not believed; 1 accepts any."""

    @field_validator("name")
    @classmethod
    def _name_is_plain(cls, name: str) -> str:
        return plain_name(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a kind gets from outside, so that tests decide."""

    base: Path
    """Where relative paths of the configuration file start."""
    environ: Mapping[str, str]
    """Where secrets are; blocks only name the variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One thing that a source holds now, as its listing shows it."""

    source_id: str
    """What it is, for ever: a number of the source's own, else its path. Unique within the block."""
    version: str
    """Another one whenever reading it would give something else: an ETag, a revision, time and size of a file."""
    changed_at: datetime
    """Its last change, with a time zone: decides its partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What reading one thing gave; how it is cleaned follows from `path`, else from `content_type`."""

    content: bytes
    title: str | None = None
    path: str | None = None
    content_type: str = "text/plain"
    """`text/markdown`, `text/html`, `text/x-rst`, `text/asciidoc`, …, for what has no path."""
    language: str | None = None
    url: str | None = None
    anchor: str | None = None
    scope: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)


Block = TypeVar("Block", bound=SourceBlock)


class SourceKind(Protocol[Block]):
    """A kind of source."""

    name: str
    """Lower case: its `[[sources.NAME]]` blocks, its asset `raw_NAME`, and the source type of its documents."""
    description: str
    """Of the asset, for people: what it holds, and which changes it sees."""
    version: str
    """Raised whenever reading the same things gives something else; all of them are then read again."""
    block: type[Block]
    """What a block of it may hold."""

    def list(self, block: Block, outside: Outside) -> Iterable[Listed]:
        """Everything that is there now; what is no longer listed was deleted.

        Raises:
            RagPipelineError: it cannot be listed; nothing is then taken for deleted.
        """

    def read(self, block: Block, outside: Outside, listed: Listed) -> Content:
        """One thing of the listing.

        Raises:
            ItemError: it cannot be read; it is quarantined, and the rest goes on.
        """
