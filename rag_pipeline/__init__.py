"""Keeps engineering knowledge searchable, fresh and trustworthy."""
