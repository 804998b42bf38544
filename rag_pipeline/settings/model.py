"""The one typed `Settings`: validated, frozen, and what follows from it. Reading it is `load`'s business."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, field_validator, model_validator

from rag_pipeline.forgotten import Forgotten, read_marks
from rag_pipeline.settings.alerts import Alerts
from rag_pipeline.settings.answering import Answering
from rag_pipeline.settings.backfills import Backfills
from rag_pipeline.settings.budget import Budget
from rag_pipeline.settings.evaluation import Evaluation
from rag_pipeline.settings.freshness import Freshness
from rag_pipeline.settings.maintenance import Maintenance
from rag_pipeline.settings.pools import Pools
from rag_pipeline.settings.prices import DEFAULT_PRICES, Price
from rag_pipeline.settings.quality import Quality
from rag_pipeline.settings.quarantine import Quarantine
from rag_pipeline.settings.report import Report
from rag_pipeline.settings.rerank import Rerank
from rag_pipeline.settings.retention import Retention
from rag_pipeline.settings.retrieval import Retrieval
from rag_pipeline.settings.schedules import Schedules
from rag_pipeline.settings.sections import (
    Chunking,
    Documents,
    Drops,
    Embedding,
    GitHub,
    GitLimits,
    Redaction,
    Repository,
    Section,
    Threads,
    Webhooks,
)  # fmt: skip
from rag_pipeline.settings.serving import Serving


class Settings(Section):
    """Everything that can be configured."""

    tenant: str = Field(default="default", min_length=1)
    """Whose knowledge it is, unless a repository says otherwise."""
    start_date: date | None = None
    """The first daily partition; by default one week before this RAG_HOME was first used."""
    repositories: tuple[Repository, ...] = ()
    sources: dict[str, tuple[dict[str, Any], ...]] = Field(default_factory=dict)
    """Blocks of further kinds of sources, by kind; each kind says what its blocks may hold."""
    git: GitLimits = GitLimits()
    github: GitHub = GitHub()
    threads: Threads = Threads()
    redaction: Redaction = Redaction()
    drops: Drops = Drops()
    webhooks: Webhooks = Webhooks()
    documents: Documents = Documents()
    chunking: Chunking = Chunking()
    embedding: Embedding = Embedding()
    prices: Mapping[str, Price] = DEFAULT_PRICES
    """Of models, in USD per million tokens: a number, or `{input = …, output = …}` for a language model; what the file
    says is added to the table that is built in."""
    budget: Budget = Budget()
    retrieval: Retrieval = Retrieval()
    rerank: Rerank = Rerank()
    answering: Answering = Answering()
    serving: Serving = Serving()
    evaluation: Evaluation = Evaluation()
    quality: Quality = Quality()
    freshness: Freshness = Freshness()
    schedules: Schedules = Schedules()
    retention: Retention = Retention()
    report: Report = Report()
    maintenance: Maintenance = Maintenance()
    alerts: Alerts = Alerts()
    pools: Pools = Pools()
    backfills: Backfills = Backfills()
    quarantine: Quarantine = Quarantine()
    sample_question: str = "How do I get started?"
    """Answered after `rag-pipeline up`, and the default of the `query` asset."""

    home: Path = Field(default=Path(".rag"), exclude=True)
    lake: str = Field(default="", exclude=True)
    database_url: str | None = Field(default=None, exclude=True, repr=False)
    replica_url: str | None = Field(default=None, exclude=True, repr=False)
    config_file: Path | None = Field(default=None, exclude=True)

    @field_validator("prices")
    @classmethod
    def _known_prices_stay(cls, prices: Mapping[str, Price]) -> Mapping[str, Price]:
        return {**DEFAULT_PRICES, **prices}

    @model_validator(mode="after")
    def _a_replica_has_a_primary(self) -> Settings:
        if self.replica_url and not self.database_url:
            raise ValueError(
                "RAG_REPLICA_URL is the address of a replica of the database at DATABASE_URL: set DATABASE_URL, too"
            )
        return self

    @model_validator(mode="after")
    def _names_are_unique(self) -> Settings:
        seen: dict[tuple[str, str], str] = {}
        for repository in self.repositories:
            key = (repository.tenant, repository.name)
            if key in seen:
                raise ValueError(
                    f"repositories {seen[key]!r} and {repository.source!r} are both named {repository.name!r} "
                    f"for tenant {repository.tenant!r}: give one of them another `name`"
                )
            seen[key] = repository.source
        return self

    @property
    def git_repositories(self) -> tuple[Repository, ...]:
        """Those whose files are indexed."""
        return tuple(repository for repository in self._readable if repository.source)

    @property
    def github_repositories(self) -> tuple[Repository, ...]:
        """Those whose pull requests and issues are indexed."""
        return tuple(repository for repository in self._readable if repository.github)

    @property
    def forgotten_repositories(self) -> tuple[Repository, ...]:
        """Those that are configured and were forgotten: they are not read."""
        marks = Forgotten(marks=read_marks(self.home))
        return tuple(r for r in self.repositories if marks.repository(r.tenant, r.name))

    def forgotten(self, now: datetime) -> Forgotten:
        """What must not be there, as it is known in this RAG_HOME, and what is too old at this moment."""
        return Forgotten(marks=read_marks(self.home), kept_from=self.retention.kept_from(now))

    @property
    def _readable(self) -> tuple[Repository, ...]:
        forgotten = self.forgotten_repositories
        return tuple(repository for repository in self.repositories if repository not in forgotten)

    @property
    def lake_url(self) -> str:
        """Where stage data lies: any fsspec URL, by default a folder in RAG_HOME."""
        return self.lake or str(self.home / "lake")

    @property
    def inbox_url(self) -> str:
        """Where drops arrive: any fsspec URL, by default a folder in RAG_HOME."""
        return self.drops.inbox or str(self.home / "inbox")

    @property
    def base(self) -> Path:
        """Where relative paths in the file start."""
        return self.config_file.parent if self.config_file else Path.cwd()

    @property
    def first_day(self) -> date:
        """The first daily partition of the code location (UTC)."""
        days = [r.start_date for r in self.repositories if r.start_date]
        if self.start_date is None and len(days) < max(1, len(self.repositories)):
            days.append(_first_use(self.home) - timedelta(days=7))
        if self.start_date is not None:
            days.append(self.start_date)
        return min(days)

    def first_day_of(self, repository: Repository) -> date:
        """The first daily partition of one repository (UTC)."""
        return repository.start_date or self.start_date or self.first_day


def fingerprint(section: BaseModel | Mapping[str, object]) -> str:
    """A short hash of settings, to tell whether what was made with them is still what they would make."""
    data = section.model_dump(mode="json") if isinstance(section, BaseModel) else section
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest()


def fingerprint_of(settings: Settings, *sections: str) -> str:
    """The `fingerprint` of several sections together."""
    return fingerprint({name: getattr(settings, name).model_dump(mode="json") for name in sections})


def _first_use(home: Path) -> date:
    """The day this RAG_HOME was first used; kept in a file, so that partitions do not slide."""
    marker = home / "first_use"
    try:
        return date.fromisoformat(marker.read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        today = datetime.now(UTC).date()
        home.mkdir(parents=True, exist_ok=True)
        marker.write_text(today.isoformat() + "\n", encoding="utf-8")
        return today
