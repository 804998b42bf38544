"""Schedules and sensors: what starts runs without a person."""

from rag_pipeline.defs.automation.drops import drop_sensor
from rag_pipeline.defs.automation.reconciliation import weekly_reconciliation
from rag_pipeline.defs.automation.report import daily_report

__all__ = ["daily_report", "drop_sensor", "weekly_reconciliation"]
