"""Which language model answers: the one that the settings name, or none; and what it would need to be used."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from typing import Final

from rag_pipeline.answering.chat import ServedModel, Wire
from rag_pipeline.answering.language_model import LanguageModel
from rag_pipeline.errors import ConfigError
from rag_pipeline.extras import how_to_add
from rag_pipeline.settings.answering import Answering

_KEY_VARIABLES: Final = {
    "openai": "OPENAI_API_KEY",
    "azure-openai": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}


def make_language_model(settings: Answering, *, environ: Mapping[str, str]) -> LanguageModel | None:
    """The model that writes answers; None when none is configured. Connects to nothing yet; close it after use.

    Raises:
        ConfigError: the model, its key, its address or its library is missing.
    """
    for key, wrong in what_is_missing(settings, environ):
        raise ConfigError(f"answering.{key}: {wrong}")
    if settings.provider == "none":
        return None
    wire = _wire(settings, key=environ.get(key_variable(settings), "").strip())
    return ServedModel(wire, name=settings.model, max_retries=settings.max_retries)


def what_is_missing(settings: Answering, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each key of `[answering]` that keeps the model from being used, and why; none when no model is configured."""
    provider = settings.provider
    if provider == "none":
        return
    if provider == "anthropic" and importlib.util.find_spec("anthropic") is None:
        yield "provider", f"anthropic is not installed: {how_to_add('anthropic')}"
    if not settings.model:
        yield "model", f"answering.provider is {provider!r}, but no model is named: name it as the provider does"
    if provider == "azure-openai" and not settings.base_url:
        yield (
            "base_url",
            "Azure needs the resource's endpoint: set answering.base_url, such as https://NAME.openai.azure.com",
        )
    if provider == "azure-openai" and not settings.api_version:
        yield "api_version", "Azure needs the version of its API: set answering.api_version, such as 2024-10-21"
    variable = key_variable(settings)
    # Ollama, vLLM and their like need none; who names a variable means it.
    needs_key = bool(settings.api_key_env) or provider != "openai" or not settings.base_url
    if needs_key and not environ.get(variable, "").strip():
        yield (
            "api_key_env",
            f"answering.provider is {provider!r}, but the environment variable {variable} is not set: set it, or name "
            "another with answering.api_key_env",
        )


def key_variable(settings: Answering) -> str:
    """The environment variable that holds the provider's key."""
    return settings.api_key_env or _KEY_VARIABLES.get(settings.provider, "")


def _wire(settings: Answering, *, key: str) -> Wire:
    if settings.provider == "anthropic":
        from rag_pipeline.answering.anthropic_chat import AnthropicWire

        return AnthropicWire(settings, key=key, key_variable=key_variable(settings))
    from rag_pipeline.answering.openai_chat import OpenAIWire

    return OpenAIWire(settings, key=key, key_variable=key_variable(settings))
