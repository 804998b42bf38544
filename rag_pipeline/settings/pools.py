"""Settings of the concurrency pools: how many at once may use what is limited."""

from __future__ import annotations

from pydantic import Field

from rag_pipeline.settings.sections import Section


class Pools(Section):
    """Across all runs of the installation, backfills included; what is more waits for its turn."""

    git: int = Field(default=4, ge=1, le=1000)
    """Git repositories that are read at once, of one run or of several; and steps that read any."""
    github: int = Field(default=1, ge=1, le=1000)
    """Repositories of which GitHub's API is asked at once; and steps that ask it."""
    drops: int = Field(default=1, ge=1, le=1000)
    """Steps that take drops from the inbox."""
    embedding: int = Field(default=2, ge=1, le=1000)
    """Steps that ask embedding models."""
    maintenance: int = Field(default=1, ge=1, le=1000)
