"""Files as they are dropped, and what is found in them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_pipeline.errors import ItemError
from rag_pipeline.model import SourceItem
from rag_pipeline.sources.drops.parse import Parsed, parse_drop

NOW = datetime(2024, 5, 2, 0, 30, tzinfo=UTC)
WRITTEN = datetime(2024, 5, 1, 23, 0, tzinfo=UTC)
RECORD = {"id": "faq-1", "content": "# Hello"}


def parse(content: object, name: str = "a.json", **overrides: Any) -> Parsed:
    """What a file with this content holds, as JSON when it is not text already."""
    data = (
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
    )
    parsed = parse_drop(name, data, **({"modified_at": WRITTEN, "now": NOW, "tenant": "acme"} | overrides))
    assert parsed is not None
    return parsed


def item(content: object, name: str = "a.json", **overrides: Any) -> SourceItem:
    """The one item of such a file."""
    parsed = parse(content, name, **overrides)
    assert parsed.delivery is None
    assert not parsed.bad_lines
    (found,) = parsed.items
    return found


def refusal(content: object, name: str = "a.json", **overrides: Any) -> str:
    """Why such a file is refused."""
    with pytest.raises(ItemError) as caught:
        parse(content, name, **overrides)
    return str(caught.value)
