"""The report on disk: whoever opens it sees the old one or the new one, never half of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

PAGE_NAME = "pipeline_report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Where the report lies."""

    page: Path
    picture: Path


def write_report(folder: Path, *, page: str, picture: bytes, name: str = PAGE_NAME) -> Written:
    """Write both files into a folder; the picture is named like the page."""
    folder.mkdir(parents=True, exist_ok=True)
    written = Written(page=folder / name, picture=(folder / name).with_suffix(".png"))
    _replace(written.page, page.encode("utf-8", "replace"))
    _replace(written.picture, picture)
    return written


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
