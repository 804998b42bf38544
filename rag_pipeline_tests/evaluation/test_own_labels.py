"""The labels of this checkout name files that are there."""

from __future__ import annotations

from pathlib import Path

from rag_pipeline.evaluation.labels import read_label_sets
from rag_pipeline.settings import load_settings
from rag_pipeline.sources.git.file_kinds import kind_of

ROOT = Path(__file__).resolve().parents[2]


def test_the_labels_of_this_checkout_name_files_that_are_there():
    settings = load_settings(config_file=ROOT / "rag_pipeline.toml", environ={})
    (labels,) = read_label_sets(labels=settings.evaluation.labels, datasets=(), base=settings.base)
    assert len(labels.questions) >= 20
    for source_type, source_id in labels.documents:
        name, _, path = source_id.partition(":")
        kind = kind_of(path)
        assert name == settings.repositories[0].name
        assert (ROOT / path).is_file(), f"{source_id} is gone: label the file that answers now"
        assert kind is not None and kind.source_type == source_type, source_id
