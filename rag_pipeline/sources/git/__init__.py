"""Docs and code of git repositories: mirrors, their time lines, and what changed in a window of days."""
