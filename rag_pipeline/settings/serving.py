"""The `[serving]` section: what the HTTP service takes, keeps, and lets pass."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rag_pipeline.settings.sections import Section


class Serving(Section):
    """Limits of `rag-pipeline serve`."""

    anonymous: Literal["loopback", "never"] = "loopback"
    """Who may read without a key, as the configured tenant and without scopes: those on this machine, when the service
    listens on a loopback address, or nobody."""
    max_concurrent: int = Field(default=8, ge=1, le=200)
    """Requests at work at once, each with a connection to the database; others wait."""
    max_waiting: int = Field(default=100, ge=0)
    """More requests than these are told to come back later (503)."""
    request_timeout_s: float = Field(default=30.0, gt=0)
    """For waiting and work, without the writing of an answer by a language model."""
    max_body_bytes: int = Field(default=2_000_000, ge=1_000)
    """Of requests, documents that are put included."""
    cors_origins: tuple[str, ...] = ()
    """Web pages of these origins (`https://wiki.example.com`) may ask; empty: none but the search page itself."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that the service is called by (Host header); empty: any, except where nobody needs a key."""
    requests_per_minute: int = Field(default=600, ge=1)
    """Of one tenant, in this process."""
    requests_per_month: int | None = Field(default=None, ge=1)
    """Of one tenant (UTC); none: no quota."""
    embedding_timeout_s: float = Field(default=5.0, gt=0)
    """For the vector of a question; without it, the words alone are searched."""
    context_timeout_ms: int = Field(default=5_000, ge=50, le=60_000)
    """`POST /v1/context` answers within this time, whatever hangs, unless a request names its own `timeout_ms`."""
    most_context_tokens: int = Field(default=4_000, ge=100, le=100_000)
    """The largest budget that a context may be asked for with."""
    embedding_cache: int = Field(default=2_048, ge=0)
    """So many questions' vectors are remembered."""
    answer_cache: int = Field(default=512, ge=0)
    """So many results and answers are remembered, until the index changes."""
    answer_cache_s: float = Field(default=3_600.0, ge=0)
    replica_lag_s: float = Field(default=60.0, gt=0)
    """A replica (`RAG_REPLICA_URL`) that is further behind its primary makes `/health` say `degraded`."""
    query_log: bool = True
    """Whether questions, what was found, and feedback are kept for evaluation."""
    query_log_days: int = Field(default=90, ge=1)
    """Maintenance removes what is older."""
