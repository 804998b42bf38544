"""The `[answering]` section: who writes answers, from how much context, and when to say that nothing is known."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rag_pipeline.settings.sections import ServiceSection


class Answering(ServiceSection):
    """How questions are answered; a key in the environment alone never selects a provider."""

    provider: Literal["none", "openai", "azure-openai", "anthropic"] = "none"
    """`none`: the passages that best support an answer are quoted. `openai`: any OpenAI-compatible chat endpoint.
    `anthropic` needs the extra of that name."""
    model: str = ""
    """As the provider knows it; needed by every provider but `none`."""
    base_url: str = ""
    """Of the service, without `/chat/completions`; empty: the provider's own."""
    api_version: str = ""
    """Of Azure OpenAI."""
    api_key_env: str = ""
    """Environment variable with the key; empty: `OPENAI_API_KEY`, `AZURE_OPENAI_API_KEY` or `ANTHROPIC_API_KEY`."""
    timeout_s: float = Field(default=60.0, gt=0)
    """For one answer, retries included; until its first word when it is streamed."""
    max_retries: int = Field(default=2, ge=0)
    """After transient failures, while nothing has been shown yet."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """None: the model's own; models that reason refuse one."""
    max_answer_tokens: int = Field(default=800, ge=50)
    context_tokens: int = Field(default=2_000, ge=100, le=100_000)
    """So much of what was found is shown to the model."""
    k: int = Field(default=8, ge=1, le=200)
    """So many hits are looked at."""
    min_evidence: float = Field(default=0.35, ge=0, le=1)
    """Below this confidence in what was found, the answer is that nothing is known (docs/answering.md)."""
    follow_ups: int = Field(default=3, ge=0, le=10)
    """So many further questions are suggested at most."""
    history_turns: int = Field(default=6, ge=0, le=50)
    """So much of a conversation is looked at to understand a question."""
