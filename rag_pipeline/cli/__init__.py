"""The command line: `rag-pipeline …`. Parses, calls, prints; what a command does lives in the other rooms."""

from rag_pipeline.cli.app import main

__all__ = ["main"]
