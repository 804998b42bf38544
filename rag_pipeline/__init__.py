"""Keeps engineering knowledge searchable, fresh and trustworthy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_pipeline.retrieval.public import Retriever

__all__ = ["Retriever"]


def __getattr__(name: str) -> object:
    # Everything in here imports this package first; only who asks for it waits for the database driver and numpy.
    if name == "Retriever":
        from rag_pipeline.retrieval.public import Retriever

        return Retriever
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
