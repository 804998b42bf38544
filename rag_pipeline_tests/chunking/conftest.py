"""Documents to chunk."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from rag_pipeline.model import Document, document_id


@pytest.fixture(scope="session")
def make_document() -> Callable[..., Document]:
    """A document with this text; every field can be overridden."""

    def make(text: str, path: str | None = "guide.md", **overrides: Any) -> Document:
        fields: dict[str, Any] = {
            "tenant": "acme", "source_type": "docs", "source_id": f"handbook:{path}", "repository": "handbook",
            "document_id": document_id(tenant="acme", source_type="docs", source_id=f"handbook:{path}"),
            "day": date(2024, 5, 1), "source_updated_at": datetime(2024, 5, 1, 9, tzinfo=UTC),
            "observed_at": datetime(2024, 5, 2, tzinfo=UTC), "path": path, "text": text,
        }  # fmt: skip
        return Document(**(fields | overrides))

    return make
