"""The one typed `Settings`: read from `rag_pipeline.toml` and the environment, validated, frozen.

Nothing here touches the network, a database or a repository.
"""

from __future__ import annotations

from rag_pipeline.settings.evaluation import Evaluation
from rag_pipeline.settings.load import CONFIG_NAME, load_settings, repository_name, resolve_source
from rag_pipeline.settings.model import Settings, fingerprint
from rag_pipeline.settings.quality import Quality
from rag_pipeline.settings.rerank import Rerank
from rag_pipeline.settings.retrieval import Retrieval
from rag_pipeline.settings.sections import (
    Chunking,
    Context,
    Documents,
    Drops,
    Embedding,
    GitHub,
    GitLimits,
    Redaction,
    Repository,
    Threads,
    Webhooks,
)

__all__ = [
    "CONFIG_NAME",
    "Chunking",
    "Context",
    "Documents",
    "Drops",
    "Embedding",
    "Evaluation",
    "GitHub",
    "GitLimits",
    "Quality",
    "Redaction",
    "Repository",
    "Rerank",
    "Retrieval",
    "Settings",
    "Threads",
    "Webhooks",
    "fingerprint",
    "load_settings",
    "repository_name",
    "resolve_source",
]
