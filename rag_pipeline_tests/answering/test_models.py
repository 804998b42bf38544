"""Which model the settings name, what it lacks, what it costs, and what `config check` says of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from rag_pipeline.answering.models import make_language_model, what_is_missing
from rag_pipeline.cli.answering_warnings import answering_warnings
from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import Answering, Settings, TokenPrices, cost_of, load_settings, price_of
from rag_pipeline.settings.check import check_file
from rag_pipeline_tests.answering.scripted_server import fails, says, scripted_server

KEYS = {"OPENAI_API_KEY": "k", "AZURE_OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}


def answering(**options: object) -> Answering:
    return Answering.model_validate(options)


def missing(environ: dict[str, str], **options: object) -> list[str]:
    return [key for key, _ in what_is_missing(answering(**options), environ)]


def test_without_a_provider_there_is_no_model_whatever_keys_there_are():
    assert make_language_model(answering(), environ=KEYS) is None


def test_each_thing_that_a_model_lacks_is_named():
    assert missing({}, provider="openai") == ["model", "api_key_env"]
    assert missing({}, provider="azure-openai") == ["model", "base_url", "api_version", "api_key_env"]
    assert missing({}, provider="anthropic", model="m") == ["api_key_env"]
    assert missing(KEYS, provider="anthropic", model="m") == []
    azure = {"provider": "azure-openai", "model": "m", "base_url": "https://n.openai.azure.com", "api_version": "1"}
    assert missing(KEYS, **azure) == []


def test_a_server_of_ones_own_needs_no_key_unless_one_is_named():
    own = {"provider": "openai", "model": "m", "base_url": "http://localhost:11434/v1"}
    assert missing({}, **own) == []
    assert missing({}, **own, api_key_env="MY_KEY") == ["api_key_env"]
    assert missing({"MY_KEY": " "}, **own, api_key_env="MY_KEY") == ["api_key_env"]


def test_what_is_missing_stops_the_making_and_says_what_to_do():
    with pytest.raises(ConfigError, match=r"answering\.model: .* name it as the provider does"):
        make_language_model(answering(provider="openai"), environ=KEYS)
    with pytest.raises(ConfigError, match="environment variable ANTHROPIC_API_KEY is not set"):
        make_language_model(answering(provider="anthropic", model="m"), environ={})


def test_a_library_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[anthropic\]'"):
        make_language_model(answering(provider="anthropic", model="m"), environ=KEYS)


def test_a_text_costs_what_is_read_and_what_is_written():
    assert cost_of("gpt-4o-mini", 1_000_000, 500_000) == pytest.approx(0.15 + 0.30)
    assert cost_of("openai/gpt-4o-mini-2024-07-18", 1_000_000, 0) == pytest.approx(0.15)
    assert cost_of("claude-sonnet-4-5-20250929", 0, 1_000_000) == pytest.approx(15.0)
    assert cost_of("gpt-4o-minimal", 1, 1) is None
    assert cost_of("mine", 3, 4, prices={"mine": 1_000_000.0}) == 7.0
    assert cost_of("mine", 3, 4, prices={"mine": 0.0}) == 0.0


def load(folder: Path, text: str) -> Settings:
    (folder / "rag_pipeline.toml").write_text(text, encoding="utf-8")
    return load_settings(cwd=folder, environ={"RAG_HOME": str(folder / "home")})


def test_a_price_is_a_number_or_one_for_reading_and_one_for_writing(tmp_path):
    settings = load(tmp_path, "[prices]\nmine = {input = 1, output = 2.5}\nvectors = 0.5")
    assert settings.prices["mine"] == TokenPrices(input=1, output=2.5)
    assert cost_of("mine", 1_000_000, 1_000_000, prices=settings.prices) == 3.5
    # Embedding only reads.
    embedding = settings.embedding.model_copy(update={"provider": "openai", "model": "mine"})
    assert price_of(embedding, settings.prices) == 1


@pytest.mark.parametrize(
    ("price", "key"),
    [("-1", "prices.m"), ('"x"', "prices.m"), ("{input = 1}", "prices.m.output"), ("{input = -1, output = 1}",
     "prices.m.input"), ("{input = 1, output = 1, cached = 1}", "prices.m.cached")],
)  # fmt: skip
def test_a_wrong_price_is_complained_of_once(tmp_path, price, key):
    (tmp_path / "rag_pipeline.toml").write_text(f"[prices]\nm = {price}\n", encoding="utf-8")
    problems = check_file(config_file=None, environ={}, cwd=tmp_path).problems
    assert [(problem.line, problem.key) for problem in problems] == [(2, key)]


def warned(environ: dict[str, str], *, online: bool = False, **options: object) -> list[tuple[str, str]]:
    settings = Settings(answering=answering(**options))
    return [(found.key, found.message) for found in answering_warnings(settings, environ, online=online)]


def test_the_check_of_the_configuration_warns_of_what_the_model_lacks_and_of_an_unknown_price():
    assert warned({}) == []
    assert [key for key, _ in warned({}, provider="openai")] == ["answering.model", "answering.api_key_env"]
    assert warned(KEYS, provider="openai", model="gpt-4o") == []
    ((key, message),) = warned(KEYS, provider="openai", model="o9")
    assert key == "answering.model"
    assert 'add `"o9" = {input = USD, output = USD}` under [prices]' in message


def test_the_check_asks_the_model_when_it_may():
    with scripted_server(says("Yes."), fails(404, "no such model")) as server:
        options = {"provider": "openai", "model": "gpt-4o", "base_url": server.url}
        assert warned({}, online=True, **options) == []
        ((_, message),) = warned({}, online=True, **options)
        assert "the model cannot be used" in message
        assert "no such model" in message
        assert warned({}, **options) == []
        assert len(server.requests) == 2
