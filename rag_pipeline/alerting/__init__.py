"""Telling people that something went wrong: what an alert says, and how it gets to them. No Dagster, no database."""
