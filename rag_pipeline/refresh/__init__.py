"""What a refresh has to do, and whether it is done: joins sources, lake and index, without Dagster.

A refresh with nothing new costs the same whatever the size of the corpus, because each source's progress is remembered
as one position, and a position is only moved when everything up to it is in the index.
"""

from __future__ import annotations

from rag_pipeline.refresh.parts import RAW_STAGES, chunking_rules, documents_fingerprint, pipeline_fingerprint
from rag_pipeline.refresh.plan import Plan, activate_when_complete, known_space, note_progress, plan

__all__ = [
    "RAW_STAGES",
    "Plan",
    "activate_when_complete",
    "chunking_rules",
    "documents_fingerprint",
    "known_space",
    "note_progress",
    "pipeline_fingerprint",
    "plan",
]
