"""What users would pick instead: measured beside us, with the same local model and the same PostgreSQL."""
