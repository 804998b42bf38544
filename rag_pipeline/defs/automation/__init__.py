"""Schedules and sensors: what starts runs without a person."""

from rag_pipeline.defs.automation.alerts import alerts_sensor
from rag_pipeline.defs.automation.drops import drop_sensor
from rag_pipeline.defs.automation.freshness import freshness_check, freshness_sensor, index_freshness_policy
from rag_pipeline.defs.automation.maintenance import maintenance_schedule
from rag_pipeline.defs.automation.quarantine import given_up_alerts, quarantine_sensor
from rag_pipeline.defs.automation.reconciliation import weekly_reconciliation
from rag_pipeline.defs.automation.refresh import refresh_schedule
from rag_pipeline.defs.automation.report import daily_report

__all__ = [
    "alerts_sensor",
    "daily_report",
    "drop_sensor",
    "freshness_check",
    "freshness_sensor",
    "given_up_alerts",
    "index_freshness_policy",
    "maintenance_schedule",
    "quarantine_sensor",
    "refresh_schedule",
    "weekly_reconciliation",
]
