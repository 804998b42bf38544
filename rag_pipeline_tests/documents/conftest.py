"""Source items to clean."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from rag_pipeline.documents import clean
from rag_pipeline.model import Document, SourceItem


@pytest.fixture(scope="session")
def make_item() -> Callable[..., SourceItem]:
    """A source item with this content; every field can be overridden."""

    def make(content: bytes | str = b"", path: str | None = "guide.md", **overrides: Any) -> SourceItem:
        fields: dict[str, Any] = {
            "tenant": "acme", "source_type": "docs", "source_id": f"handbook:{path}", "repository": "handbook",
            "day": date(2024, 5, 1), "source_updated_at": datetime(2024, 5, 1, 9, tzinfo=UTC),
            "observed_at": datetime(2024, 5, 2, tzinfo=UTC), "path": path,
            "content": content.encode() if isinstance(content, str) else content,
        }  # fmt: skip
        return SourceItem(**(fields | overrides))

    return make


@pytest.fixture(scope="session")
def cleaned(make_item: Callable[..., SourceItem]) -> Callable[..., Document]:
    """The document of such an item."""
    return lambda *args, **overrides: clean(make_item(*args, **overrides))
