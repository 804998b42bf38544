"""Runs on workers of several machines, by Dagster's own engine for it: dagster-celery with Redis.

Imported only where `dagster.yaml` names its launcher (`deploy/celery/dagster.yaml`) and by `rag-pipeline worker`; needs
the extra `celery`. Whole runs go to workers, not steps: the steps of a run follow each other, and share what one
process has read.
"""
