"""The `[rerank]` section: who reads the best hits a second time, closer, and puts them in order."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rag_pipeline.settings.sections import ServiceSection


class Rerank(ServiceSection):
    """How the best hits of a search are put in order again; a key in the environment alone never selects a provider."""

    provider: Literal["none", "cross-encoder", "hosted", "openai"] = "none"
    """`cross-encoder`: a model of sentence-transformers or fastembed. `hosted`: a service with the `/rerank` endpoint
    of Cohere, Jina and Voyage. `openai`: a language model behind an OpenAI-compatible API."""
    model: str = ""
    """As the provider knows it. `hosted` and `openai` need one; empty for `cross-encoder`: MiniLM, of MS MARCO."""
    base_url: str = ""
    """Of the service, without `/rerank` or `/chat/completions`; `hosted` needs one. Empty for `openai`:
    api.openai.com."""
    api_key_env: str = ""
    """Environment variable with the key; empty: `RERANK_API_KEY` for `hosted`, `OPENAI_API_KEY` for `openai`."""
    top_n: int = Field(default=30, ge=2, le=200)
    """So many of the best hits are put in order again; those after them stay after them."""
    timeout_s: float = Field(default=10.0, gt=0)
    """For one question, retries included; after it the hits keep the order that they had."""
    max_retries: int = Field(default=1, ge=0)
    """Of one question, after transient failures of a service."""
    threads: int = Field(default=0, ge=0)
    """Of a cross-encoder of fastembed; 0: as many as it likes."""
