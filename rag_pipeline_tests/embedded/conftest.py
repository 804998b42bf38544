from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_pipeline_tests.embedded.servers import temporary_home


@pytest.fixture
def home() -> Iterator[Path]:
    with temporary_home() as folder:
        yield folder
