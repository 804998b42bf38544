"""Further kinds of sources: one module each, in this package or in yours; `docs/extending.md` walks through one.

A kind lists what its source holds now and reads one thing of it. Everything else is done here for all of them: days,
tombstones, the guard against broken listings, quarantine, progress.
"""

from __future__ import annotations

from rag_pipeline.sources.kinds.protocol import Content, Listed, Outside, SourceBlock, SourceKind
from rag_pipeline.sources.kinds.registry import kinds, raw_stages, stage_of

__all__ = ["Content", "Listed", "Outside", "SourceBlock", "SourceKind", "kinds", "raw_stages", "stage_of"]
