"""What is forgotten of a further kind of source: it is not read again, and nothing of it stays in the memory."""

from __future__ import annotations

from rag_pipeline.forgotten import Forgotten, document_mark, repository_mark, write_marks
from rag_pipeline.model import document_id
from rag_pipeline.sources.kinds.memory import remove_memories
from rag_pipeline.sources.kinds.registry import blocks_of
from rag_pipeline_tests.sources.kinds.test_kinds import Notes, items, on, read, settings


def test_a_forgotten_item_is_not_read_into_the_lake_again(tmp_path):
    kind = Notes({"shelf": {"kept": ("1", on(3), "stays"), "secret": ("1", on(3), "goes")}})
    secret = document_id(tenant="default", source_type="notes", source_id="shelf:secret")
    write_marks(tmp_path, [document_mark("default", secret)])
    read(kind, tmp_path, 1, 10)
    assert [item.source_id for item in items(tmp_path, 3)] == ["shelf:kept"]


def test_a_forgotten_block_is_neither_read_nor_remembered(tmp_path):
    kind = Notes({"shelf": {"a": ("1", on(3), "text")}, "desk": {"b": ("1", on(3), "text")}})
    read(kind, tmp_path, 1, 10)
    marks = frozenset([repository_mark("default", "desk")])
    write_marks(tmp_path, marks)
    forgotten = Forgotten(marks=marks)
    assert [block.name for block in blocks_of(kind, settings(tmp_path, "shelf", "desk"))] == ["shelf"]
    assert remove_memories(tmp_path, forgotten, remove=False) == 1
    assert remove_memories(tmp_path, forgotten, remove=True) == 1
    assert remove_memories(tmp_path, forgotten, remove=False) == 0
    kind.read_ids.clear()
    read(kind, tmp_path, 1, 10)
    assert kind.read_ids == []
    assert [path.stem for path in tmp_path.rglob("*.sqlite")] == ["shelf"]
