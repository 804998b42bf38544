"""A candidate is measured on the same labelled questions as the active space, and its falls are named."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

from rag_pipeline.cli.space_comparison import compare
from rag_pipeline.errors import ConfigError
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import activate
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.settings import Settings
from rag_pipeline.settings.evaluation import Evaluation
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write

NAMES = [f"page {n}" for n in range(12)]


class SpaceEmbedder:
    """Questions lie on the first axis."""

    provider, recipe = "fake", "text/v1"

    def __init__(self, space: EmbeddingSpace) -> None:
        self.model = space.model
        self._dimensions = space.dimensions

    def embed_query(self, text: str) -> np.ndarray:
        return np.eye(self._dimensions, dtype=np.float32)[0]

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class FakeModels:
    """What makes the embedders of spaces."""

    def unchecked(self, space: EmbeddingSpace) -> SpaceEmbedder:
        return SpaceEmbedder(space)


@pytest.fixture
def spaces(connection: Connection) -> dict[str, EmbeddingSpace]:
    """`good` puts the first page first, `bad` last; `good` is active."""
    write(connection, *(entry(f"{n}.md", name) for n, name in enumerate(NAMES)))
    made = {}
    for model, order in (("good", NAMES), ("bad", NAMES[::-1])):
        made[model] = space = space_of(connection, model=model)
        axes = np.eye(space.dimensions)
        store_vectors(connection, space, {text: axes[0] + n * axes[1] for n, text in enumerate(order)})
    activate(connection, made["good"])
    return made


def settings_with(tmp_path, **evaluation) -> Settings:
    file = tmp_path / "labels.jsonl"
    file.write_text(
        json.dumps({"id": "q", "question": "nowhere", "relevant": [{"source_id": "handbook:0.md"}]}), encoding="utf-8"
    )
    return Settings(
        tenant="acme", evaluation=Evaluation(legs=("vector", "fused"), **({"labels": (str(file),)} | evaluation)),
        config_file=tmp_path / "rag_pipeline.toml", home=tmp_path,
    )  # fmt: skip


def asked(settings: Settings, connection: Connection, spaces: dict[str, EmbeddingSpace], candidate: str, active: str):
    return compare(
        settings, connection, candidate=spaces[candidate], active=spaces[active],
        models=FakeModels(),  # type: ignore[arg-type]
    )  # fmt: skip


def test_what_a_worse_candidate_falls_in_is_named(connection, spaces, tmp_path):
    (found,) = asked(settings_with(tmp_path), connection, spaces, "bad", "good")
    measured = {(m.leg, m.measure): (m.active, m.candidate) for m in found.measures}
    assert measured["fused", "RR@10"] == (1.0, 0.0)
    assert found.questions == 1
    assert any("fused RR@10 fell from 1.000 to 0.000" in fall for fall in found.falls)


def test_a_better_candidate_falls_in_nothing(connection, spaces, tmp_path):
    (found,) = asked(settings_with(tmp_path), connection, spaces, "good", "bad")
    assert list(found.falls) == []


def test_a_fall_within_the_tolerance_is_none(connection, spaces, tmp_path):
    (found,) = asked(settings_with(tmp_path, tolerance=1.0), connection, spaces, "bad", "good")
    assert list(found.falls) == []


def test_without_labels_there_is_nothing_to_compare(connection, spaces, tmp_path):
    assert asked(settings_with(tmp_path, labels=()), connection, spaces, "bad", "good") == []


def test_labels_that_cannot_be_read_are_an_error(connection, spaces, tmp_path):
    with pytest.raises(ConfigError, match=r"nothing\.jsonl"):
        asked(settings_with(tmp_path, labels=(str(tmp_path / "nothing.jsonl"),)), connection, spaces, "bad", "good")
