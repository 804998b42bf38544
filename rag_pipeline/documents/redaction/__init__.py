"""Secrets do not leave cleaning: what looks like a key, a token or a password becomes `[REDACTED:<kind>]`.

Vendors' formats are betterleaks' business (`engine`, `rules.toml`); the other modules find what stands under a telling
name or in a telling place, and tell it from placeholders and look-alikes. Nothing here reads documents or settings
except `documents`, which redacts every string of one.
"""

from __future__ import annotations

from rag_pipeline.documents.redaction.detect import REDACTION_VERSION, redact
from rag_pipeline.documents.redaction.engine import check_engine, engine_version
from rag_pipeline.documents.redaction.spans import Redacted, Span

__all__ = ["REDACTION_VERSION", "Redacted", "Span", "check_engine", "engine_version", "redact"]
