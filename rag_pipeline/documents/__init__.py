"""Source items to documents: text extraction and cleaning per kind. No splitting, no storage."""

from __future__ import annotations

from rag_pipeline.documents.clean import CLEANING_VERSION, clean

__all__ = ["CLEANING_VERSION", "clean"]
