"""The stage of drops on a folder of its own: what is dropped, what a run takes, and what the lake holds then."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from rag_pipeline.lake.schemas import items_of
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, SourceItem
from rag_pipeline.progress import silent
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.stage import STAGE, DropsReport, read_drops
from rag_pipeline.sources.github.stage import Access

NOWHERE = "http://127.0.0.1:9"
"""An address that nobody listens at."""


@dataclass
class Taking:
    """An inbox, a lake and a clock."""

    home: Path
    repositories: Sequence[Mapping[str, Any]] = ()
    base_url: str = NOWHERE
    now: datetime = datetime(2024, 5, 2, 12, tzinfo=UTC)
    drops: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return Settings.model_validate({
            "home": self.home, "tenant": "acme", "start_date": date(2024, 4, 1), "drops": self.drops,
            "repositories": [{"tenant": "acme", **repository} for repository in self.repositories],
            "github": {"base_url": self.base_url, "max_retries": 0, "timeout_s": 5},
        })  # fmt: skip

    @property
    def lake(self) -> Lake:
        return Lake(self.settings.lake_url)

    def drop(self, name: str, content: object, *, seconds_ago: float = 60) -> Path:
        """Put a file into the inbox, as JSON when it is not text already."""
        path = Path(self.settings.inbox_url) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        written = self.now.timestamp() - seconds_ago
        os.utime(path, (written, written))
        return path

    def take(self, days: DayRange | None = None, *, until: datetime | None = None) -> DropsReport:
        """One run, a minute after the last one."""
        self.now += timedelta(minutes=1)
        today = self.now.date()
        access = Access(environ=self.environ, clock=lambda: self.now, sleep=lambda seconds: None)
        days = days or DayRange(first=today, last=today)
        return read_drops(self.settings, self.lake, days, access=access, progress=silent, until=until)

    def items(self, *, tenant: str = "acme", repository: str = "inbox", day: date | None = None) -> list[SourceItem]:
        """What the lake holds of a day, today's if none is named."""
        part = Part(tenant=tenant, repository=repository, day=day or self.now.date())
        return [item for batch in self.lake.read(STAGE, part) for item in items_of(batch)]

    def contents(self, **where: Any) -> dict[str, str]:
        """The contents of the living items by id."""
        return {item.source_id: item.content.decode() for item in self.items(**where) if not item.deleted}

    def parts(self) -> dict[str, str | None]:
        """The fingerprint of every part that the lake holds."""
        return {
            f"{tenant}/{repository}/{day}": self.lake.fingerprint(
                STAGE, Part(tenant=tenant, repository=repository, day=day)
            )
            for tenant, repository in self.lake.repositories(STAGE)
            for day in self.lake.days(STAGE, tenant=tenant, repository=repository)
        }

    def files(self) -> list[str]:
        """Every file there is in the inbox, by its path below it."""
        root = Path(self.settings.inbox_url)
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())

    def reason(self, name: str) -> str:
        """Why a file was rejected."""
        return Path(self.settings.inbox_url, "rejected", f"{name}.reason.txt").read_text(encoding="utf-8").strip()
