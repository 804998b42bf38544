"""A repository made to order, and how it is observed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.sources.git.reading import Source


@pytest.fixture
def source(repository: GitRepository, tmp_path: Path) -> Source:
    """The repository of the `repository` fixture, as a source that was not fetched yet."""
    return Source(path=repository.path, home=tmp_path / "home")
