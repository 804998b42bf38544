"""What `rag-pipeline config show` shows: the file's keys, and beside them what the environment decides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from rag_pipeline.documents.redaction import redact
from rag_pipeline.index.database import describe
from rag_pipeline.settings import Settings
from rag_pipeline.settings.origins import Value, values_in_force
from rag_pipeline.settings.positions import lines_of


def shown_values(settings: Settings, *, environ: Mapping[str, str], defaults: bool) -> list[Value]:
    """The values in force without secrets; with `defaults` also those that nobody has set."""
    file = settings.config_file
    lines = lines_of(file.read_text(encoding="utf-8")) if file else {}
    values = [*_of_the_environment(settings, environ), *values_in_force(settings, lines=lines, environ=environ)]
    return [replace(value, value=_safe(value.value)) for value in values if defaults or value.origin != "default"]


def _of_the_environment(settings: Settings, environ: Mapping[str, str]) -> list[Value]:
    database = describe(settings.database_url) if settings.database_url else "embedded"
    found = [
        ("configuration file", settings.config_file, "RAG_CONFIG"),
        ("home", settings.home, "RAG_HOME"),
        ("lake", settings.lake_url, "RAG_LAKE"),
        ("database", database, "DATABASE_URL"),
        ("replica", describe(settings.replica_url) if settings.replica_url else None, "RAG_REPLICA_URL"),
    ]
    return [
        Value(key=key, value=None if value is None else str(value), origin=name if environ.get(name) else "default")
        for key, value, name in found
    ]


def _safe(value: object) -> object:
    """A value that holds no secret, whoever put one there."""
    if isinstance(value, str):
        return re.sub(r"(?<=://)[^/@\s]+@", "", redact(value).text)
    if isinstance(value, list | tuple):
        return [_safe(one) for one in value]
    return value
