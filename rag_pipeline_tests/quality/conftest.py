from __future__ import annotations

from rag_pipeline_tests.end_to_end.conftest import forge, github, rocket

__all__ = ["forge", "github", "rocket"]
