"""Documents to chunk."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest

from rag_pipeline.model import Document, Markup, document_id

MARKUPS: dict[str, Markup] = {".md": "markdown", ".adoc": "asciidoc", ".rst": "rst"}
LANGUAGES = {
    ".py": "python", ".go": "go", ".ts": "typescript", ".tsx": "tsx", ".js": "javascript", ".rs": "rust",
    ".java": "java", ".kt": "kotlin", ".c": "c", ".cpp": "cpp", ".cs": "csharp", ".rb": "ruby", ".php": "php",
    ".swift": "swift", ".scala": "scala", ".sh": "bash", ".sql": "sql", ".tf": "terraform", ".yaml": "yaml",
    ".toml": "toml", ".json": "json",
}  # fmt: skip


def layout(path: str | None, source_type: str) -> tuple[Markup, str | None]:
    """How cleaning would call the text of such a file, and the language it is in."""
    suffix = PurePosixPath(path or "a.md").suffix
    if source_type == "code":
        return "code", LANGUAGES.get(suffix)
    return MARKUPS.get(suffix, "text"), None


@pytest.fixture(scope="session")
def make_document() -> Callable[..., Document]:
    """A document with this text; every field can be overridden."""

    def make(text: str, path: str | None = "guide.md", **overrides: Any) -> Document:
        markup, language = layout(path, overrides.get("source_type", "docs"))
        fields: dict[str, Any] = {
            "markup": markup, "language": language,
            "tenant": "acme", "source_type": "docs", "source_id": f"handbook:{path}", "repository": "handbook",
            "document_id": document_id(tenant="acme", source_type="docs", source_id=f"handbook:{path}"),
            "day": date(2024, 5, 1), "source_updated_at": datetime(2024, 5, 1, 9, tzinfo=UTC),
            "observed_at": datetime(2024, 5, 2, tzinfo=UTC), "path": path, "text": text,
        }  # fmt: skip
        return Document(**(fields | overrides))

    return make
