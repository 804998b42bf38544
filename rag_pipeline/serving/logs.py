"""Logs as one JSON object a line, on standard output."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

from rag_pipeline.serving.request_log import request_id, told


class JsonLines(logging.Formatter):
    """A line with time, level, logger and message; the fields of a record's `fields` stand beside them."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage(),
        }  # fmt: skip
        if identity := request_id.get():
            line["request_id"] = identity
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1]:
            line["error"] = told(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False, default=str)


LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "rag_pipeline.serving.logs.JsonLines"}},
    "handlers": {"out": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stdout"}},
    "root": {"handlers": ["out"], "level": "WARNING"},
    "loggers": {
        "rag_pipeline": {"level": "INFO"},
        "uvicorn": {"level": "INFO"},
        # It tells of each failed attempt at length; whoever asked in vain is told, and that is logged.
        "psycopg.pool": {"level": "ERROR"},
    },
}
"""For `logging.config.dictConfig`. uvicorn's own line for each request is replaced by ours."""


def logging_of(*, is_quiet: bool) -> dict[str, Any]:
    """`LOGGING`; when quiet, only warnings and errors, for a service beside others on one terminal."""
    if not is_quiet:
        return LOGGING
    loud = {name: {"level": "WARNING"} for name, given in LOGGING["loggers"].items() if given["level"] == "INFO"}
    return LOGGING | {"loggers": LOGGING["loggers"] | loud}
