"""The only Dagster code: assets, checks, automation, resources and partitions. Assets wire; stages work."""
