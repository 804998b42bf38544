"""Schedules and sensors: what starts runs without a person."""

from rag_pipeline.defs.automation.drops import drop_sensor
from rag_pipeline.defs.automation.freshness import freshness_check, freshness_sensor, index_freshness_policy
from rag_pipeline.defs.automation.reconciliation import weekly_reconciliation
from rag_pipeline.defs.automation.refresh import refresh_schedule
from rag_pipeline.defs.automation.report import daily_report

__all__ = [
    "daily_report",
    "drop_sensor",
    "freshness_check",
    "freshness_sensor",
    "index_freshness_policy",
    "refresh_schedule",
    "weekly_reconciliation",
]
