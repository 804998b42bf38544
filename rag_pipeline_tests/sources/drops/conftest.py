"""Inboxes to work on: in a local folder, and in a filesystem that is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from rag_pipeline_tests.sources.drops.places import Place


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    url = str(tmp_path / "inbox") if request.param == "local" else f"memory://{uuid4().hex}/inbox"
    yield Place(url)
    if request.param == "memory":
        with suppress(FileNotFoundError):
            fsspec.filesystem("memory").rm(url, recursive=True)


@pytest.fixture
def local(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "inbox"))
