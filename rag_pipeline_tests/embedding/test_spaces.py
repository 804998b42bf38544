"""Which settings make a space's vectors: those of now where they name its model, else those it remembers."""

from __future__ import annotations

import pytest

from rag_pipeline.embedding.spaces import config_of, embedder_of, settings_of
from rag_pipeline.model import EmbeddingSpace, Json
from rag_pipeline.settings import Embedding

OLD = Embedding(provider="openai", model="small", query_prefix="query: ", api_key_env="OLD_KEY", timeout_s=5)


def space(config: dict[str, Json] | None) -> EmbeddingSpace:
    return EmbeddingSpace(
        space_id=1, provider="openai", model="small", dimensions=8, recipe="r", status="active", config=config
    )


def test_the_settings_count_where_they_name_the_model():
    now = OLD.model_copy(update={"api_key_env": "NEW_KEY", "timeout_s": 60.0})
    assert settings_of(space(config_of(OLD)), now) == now


@pytest.mark.parametrize(
    "other",
    [
        {"model": "large"}, {"provider": "azure-openai"}, {"query_prefix": ""}, {"passage_prefix": "p: "},
        {"dimensions": 8}, {"context": "none"},
    ],
)  # fmt: skip
def test_where_they_name_another_the_space_knows_its_own(other):
    now = OLD.model_copy(update={**other, "api_key_env": "NEW_KEY"})
    assert settings_of(space(config_of(OLD)), now) == OLD


def test_what_was_remembered_by_another_version_of_this_code_is_read():
    config = config_of(OLD) | {"gone": 7}
    del config["threads"]
    assert settings_of(space(config), Embedding()) == OLD


def test_a_space_without_settings_on_record_is_its_model_under_the_settings_of_now():
    now = Embedding(provider="local", model="other", timeout_s=7)
    found = settings_of(space(None), now)
    assert (found.provider, found.model, found.timeout_s, found.dimensions) == ("openai", "small", 7, None)
    assert settings_of(space(None), now.model_copy(update={"dimensions": 3})).dimensions == 8


def test_nothing_that_is_remembered_is_a_secret():
    assert config_of(OLD)["api_key_env"] == "OLD_KEY"
    with pytest.raises(ValueError, match="without credentials"):
        Embedding(base_url="https://me:secret@host/v1")


def test_the_embedder_of_a_space_is_made_of_its_settings():
    asked = []
    embedder_of(
        space(config_of(OLD)), settings=Embedding(), environ={"A": "b"},
        make=lambda settings, environ: asked.append((settings, environ)),
    )  # fmt: skip
    assert asked == [(OLD, {"A": "b"})]


def test_where_and_on_how_many_threads_a_model_runs_is_said_by_the_machine_of_now():
    made_on = OLD.model_copy(update={"device": "cuda", "threads": 32})
    now = Embedding(device="cpu", threads=2)
    found = settings_of(space(config_of(made_on)), now)
    assert (found.model, found.device, found.threads) == ("small", "cpu", 2)
