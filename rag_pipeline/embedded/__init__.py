"""The supervised local PostgreSQL behind the one-command set-up."""
