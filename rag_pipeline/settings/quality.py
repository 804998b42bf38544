"""Settings of data quality: what is too much to be right, and what somebody has looked at and accepts."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, field_validator

from rag_pipeline.settings.index_checks import EmbeddingChecks, IndexChecks
from rag_pipeline.settings.sections import Section

_RULE = re.compile(r"^[a-z_]+\.[a-z_]+$")


class Quality(Section):
    """When a run must not look healthy."""

    in_refresh: bool = True
    """Whether checks run in each refresh, and stop it; otherwise only when somebody launches them."""
    max_failures: int = Field(default=50, ge=0)
    max_failure_share: Annotated[float, Field(ge=0, le=1)] = 0.05
    """A source is stopped when more of its items than `max_failures` and a larger share than this failed in a run."""
    accepted: tuple[str, ...] = ()
    """Findings of checks that block nothing any more, as they name themselves: `stage.finding`."""
    min_history: int = Field(default=8, ge=2)
    """Comparable days that there must be before a drop in items is told from a quiet day."""
    max_drop_share: Annotated[float, Field(ge=0, le=1)] = 0.8
    """A day with so much fewer items than the median of comparable days, and fewer than on any of them, is a drop."""
    max_deleted_items: int = Field(default=100, ge=0)
    max_deleted_share: Annotated[float, Field(ge=0, le=1)] = 0.3
    """A day is suspicious that deletes more items than `max_deleted_items` and a larger share of what is indexed."""
    max_empty_documents: int = Field(default=5, ge=0)
    max_empty_share: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Documents without a word, of one repository and day: more than the number and a larger share than this block."""
    secrets_chars: int = Field(default=2_000_000, ge=0)
    """Characters of a repository's day in which secrets are searched again with every detector; in what is more than
    that only with those that are quick."""
    max_replaced_share: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Characters of a text that were lost in decoding."""
    max_small_chunk_share: Annotated[float, Field(ge=0, le=1)] = 0.9
    """Chunks of one repository and day below `chunking.min_tokens`; short threads and files have no other."""

    embeddings: EmbeddingChecks = EmbeddingChecks()
    knowledge_index: IndexChecks = IndexChecks()

    @field_validator("accepted")
    @classmethod
    def _name_a_stage_and_a_finding(cls, accepted: tuple[str, ...]) -> tuple[str, ...]:
        for name in accepted:
            if not _RULE.match(name):
                raise ValueError(f"{name!r} must be a stage and a finding, such as 'documents.no_secrets'")
        return accepted
