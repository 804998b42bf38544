"""What a refresh has to do, and whether it is done: joins sources, lake and index, without Dagster.

A refresh with nothing new costs the same whatever the size of the corpus, because each source's progress is remembered
as one position, and a position is only moved when everything up to it is in the index.
"""

from __future__ import annotations

from rag_pipeline.refresh.accounts import Account
from rag_pipeline.refresh.parts import RAW_STAGES, chunking_rules, documents_fingerprint, pipeline_fingerprint
from rag_pipeline.refresh.plan import Plan, activate_when_complete, note_progress, plan
from rag_pipeline.refresh.readings import Readings
from rag_pipeline.refresh.spaces import Models, serving_space, spaces_to_feed

__all__ = [
    "RAW_STAGES",
    "Account",
    "Models",
    "Plan",
    "Readings",
    "activate_when_complete",
    "chunking_rules",
    "documents_fingerprint",
    "note_progress",
    "pipeline_fingerprint",
    "plan",
    "serving_space",
    "spaces_to_feed",
]
