"""The one typed `Settings`: read from `rag_pipeline.toml` and the environment, validated, frozen.

Nothing here touches the network, a database or a repository.
"""

from __future__ import annotations

from rag_pipeline.settings.answering import Answering
from rag_pipeline.settings.budget import Budget, Limits
from rag_pipeline.settings.evaluation import Evaluation
from rag_pipeline.settings.freshness import Freshness
from rag_pipeline.settings.load import CONFIG_NAME, load_settings, repository_name, resolve_source
from rag_pipeline.settings.model import Settings, fingerprint
from rag_pipeline.settings.prices import DEFAULT_PRICES, Price, TokenPrices, cost_of, embedding_prices, price_of, usd
from rag_pipeline.settings.quality import Quality
from rag_pipeline.settings.report import Report
from rag_pipeline.settings.rerank import Rerank
from rag_pipeline.settings.retention import Retention
from rag_pipeline.settings.retrieval import Retrieval
from rag_pipeline.settings.schedules import Schedules
from rag_pipeline.settings.sections import (
    Chunking,
    Context,
    Documents,
    Drops,
    Embedding,
    FileType,
    GitHub,
    GitLimits,
    Redaction,
    Repository,
    Threads,
    Webhooks,
)
from rag_pipeline.settings.serving import Serving

__all__ = [
    "CONFIG_NAME",
    "DEFAULT_PRICES",
    "Answering",
    "Budget",
    "Chunking",
    "Context",
    "Documents",
    "Drops",
    "Embedding",
    "Evaluation",
    "FileType",
    "Freshness",
    "GitHub",
    "GitLimits",
    "Limits",
    "Price",
    "Quality",
    "Redaction",
    "Report",
    "Repository",
    "Rerank",
    "Retention",
    "Retrieval",
    "Schedules",
    "Serving",
    "Settings",
    "Threads",
    "TokenPrices",
    "Webhooks",
    "cost_of",
    "embedding_prices",
    "fingerprint",
    "load_settings",
    "price_of",
    "repository_name",
    "resolve_source",
    "usd",
]
