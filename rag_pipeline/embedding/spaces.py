"""The model of an embedding space: the one that the settings name, or the one that the space remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rag_pipeline.embedding.embedder import Embedder, make_embedder
from rag_pipeline.model import EmbeddingSpace, Json
from rag_pipeline.settings import Embedding, fingerprint

_DECISIVE = ("provider", "model", "dimensions", "context", "passage_prefix", "query_prefix")
"""Settings that decide what a vector is; all others only how it is asked for."""
_OF_THIS_MACHINE = ("device", "threads", "precision")
"""Settings that say nothing on another machine than the one that they were made for."""


def config_of(settings: Embedding) -> dict[str, Json]:
    """What a space remembers: all settings, none of which is a secret."""
    return settings.model_dump(mode="json")


def settings_version(settings: Embedding) -> str:
    """Changes when the settings ask for other vectors; not when they only ask for them in another way."""
    return fingerprint(dict(zip(_DECISIVE, _decisive(settings), strict=True)))


def settings_of(space: EmbeddingSpace, settings: Embedding) -> Embedding:
    """What makes a space's vectors.

    The settings of now where they name its model, so that another key or address counts at once; else those that it
    was made with.
    """
    if space.config is None:
        # Made before spaces kept their settings, and by the model alone.
        wanted: dict[str, object] = {"provider": space.provider, "model": space.model}
        if settings.dimensions is not None:
            wanted["dimensions"] = space.dimensions
        return settings.model_copy(update=wanted)
    known: dict[str, Any] = {name: space.config[name] for name in Embedding.model_fields if name in space.config}
    own = Embedding.model_validate(known)
    if _decisive(own) == _decisive(settings):
        return settings
    return own.model_copy(update={name: getattr(settings, name) for name in _OF_THIS_MACHINE})


def embedder_of(
    space: EmbeddingSpace,
    *,
    settings: Embedding,
    environ: Mapping[str, str],
    make: Callable[..., Embedder] = make_embedder,
) -> Embedder:
    """The embedder that made a space's vectors, whichever model the settings name by now.

    Its `recipe` differs from the space's when this code makes other vectors than the code that filled the space.
    """
    return make(settings_of(space, settings), environ=environ)


def _decisive(settings: Embedding) -> list[object]:
    return [getattr(settings, name) for name in _DECISIVE]
