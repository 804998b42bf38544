"""Schedules and sensors: what starts runs without a person."""

from rag_pipeline.defs.automation.alerts import alerts_sensor
from rag_pipeline.defs.automation.drops import drop_sensor
from rag_pipeline.defs.automation.maintenance import maintenance_schedule
from rag_pipeline.defs.automation.quarantine import given_up_alerts, quarantine_sensor
from rag_pipeline.defs.automation.reconciliation import weekly_reconciliation

__all__ = [
    "alerts_sensor",
    "drop_sensor",
    "given_up_alerts",
    "maintenance_schedule",
    "quarantine_sensor",
    "weekly_reconciliation",
]
