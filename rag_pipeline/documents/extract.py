"""What an extractor gives: the text of one kind of source, with what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_pipeline.model import Json, Markup, Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """Text to be chunked; `source_lines` and `sections` as in `Document`."""

    text: str
    markup: Markup
    title: str | None = None
    source_lines: Sequence[int] | None = None
    sections: Sequence[Section] | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
