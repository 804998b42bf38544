"""Tests over Redis and workers are for those who ask for them: `make test-distributed`."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out of every selection that does not name their marker, such as "not slow"."""
    if "distributed" in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("distributed")]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
