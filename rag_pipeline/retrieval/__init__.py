"""A query to search hits."""
