"""Work follows the change inside a part: the rows are those of a part that is made anew, whatever changed."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from rag_pipeline.chunking.chunk import chunk_document
from rag_pipeline.chunking.stage import Rules, chunk_documents
from rag_pipeline.documents import clean
from rag_pipeline.documents.stage import clean_items
from rag_pipeline.embedding import counting_version, token_counter
from rag_pipeline.lake.derive import DeriveReport
from rag_pipeline.lake.schemas import CHUNKS, DOCUMENTS, ITEMS, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, SourceItem
from rag_pipeline.progress import silent
from rag_pipeline.settings import Chunking, Documents, Embedding, Threads
from rag_pipeline_tests.knowledge import DAY, moment

PART = Part(tenant="acme", repository="inbox", day=DAY)
DAYS = DayRange(first=DAY, last=DAY)
RULES = Rules(
    settings=Chunking(max_tokens=40, min_tokens=5),
    count_tokens=token_counter(Embedding()),
    counting=counting_version(Embedding()),
)


def item(name: str, text: str, **more: object) -> SourceItem:
    made = SourceItem(
        tenant="acme", source_type="docs", source_id=f"inbox:{name}", repository="inbox", day=DAY,
        source_updated_at=moment(1), observed_at=moment(1), content=text.encode(), path=name,
    )  # fmt: skip
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


class Stages:
    """A raw part, and what is made of it; counts what had to be made."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake(str(folder))

    def put(self, items: list[SourceItem]) -> None:
        with self.lake.writer("raw_docs", PART, schema=ITEMS) as writer:
            for batch in to_batches(items, ITEMS):
                writer.add(batch)
            writer.fingerprint = str(random.random())

    def run(self, limits: Documents = Documents()) -> tuple[DeriveReport, DeriveReport]:  # noqa: B008
        cleaned = clean_items(
            self.lake, DAYS, inputs=["raw_docs"], threads=Threads(), limits=limits, progress=silent, processes=1
        )  # fmt: skip
        return cleaned, chunk_documents(
            self.lake, DAYS, rules=RULES, limits=Documents(), progress=silent, processes=1
        )  # fmt: skip

    def table(self, stage: str, schema: pa.Schema) -> pa.Table:
        return pa.Table.from_batches(self.lake.read(stage, PART), schema)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was cleaned and cut, in order."""
    done: list[str] = []

    def counted_clean(item: SourceItem, **options: object) -> object:
        done.append(f"clean {item.path}")
        return clean(item, **options)  # type: ignore[arg-type]

    def counted_cut(document: object, **options: object) -> object:
        done.append(f"cut {document.path}")  # type: ignore[attr-defined]
        return chunk_document(document, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("rag_pipeline.documents.stage.clean", counted_clean)
    monkeypatch.setattr("rag_pipeline.chunking.stage.chunk_document", counted_cut)
    yield done


def texts(numbers: range) -> list[SourceItem]:
    return [item(f"{n:03}.md", f"# Page {n}\n\n" + f"Words of page {n}. " * (n % 40)) for n in numbers]


def test_one_more_item_is_the_only_one_that_is_made(tmp_path: Path, made: list[str]) -> None:
    stages = Stages(tmp_path)
    stages.put(texts(range(50)))
    stages.run()
    made.clear()
    stages.put([*texts(range(20)), item("new.md", "# New\n\nWords."), *texts(range(20, 50))])
    cleaned, chunked = stages.run()
    assert made == ["clean new.md", "cut new.md"]
    assert (cleaned.rows, cleaned.copied, chunked.rows) == (1, 50, 1)
    made.clear()
    assert [report.fresh for report in stages.run()] == [1, 1] and made == []


@pytest.mark.parametrize("seed", range(6))
def test_a_part_that_followed_many_changes_is_the_same_as_one_made_anew(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    items, stages = texts(range(60)), Stages(tmp_path / "followed")
    stages.put(items)
    stages.run()
    for change in range(5):
        at = draw.randrange(len(items) - 4)
        kind = draw.choice(["edit", "remove", "add", "swap", "observed", "delete"])
        if kind == "edit":
            items[at] = dataclasses.replace(items[at], content=f"# Edited {change}\n\nOther words.\n".encode())
        elif kind == "remove":
            del items[at : at + 3]
        elif kind == "add":
            items[at:at] = [item(f"new-{change}-{n}.md", f"# New {n}\n\nNew words.\n") for n in range(3)]
        elif kind == "swap":
            items[at], items[at + 3] = items[at + 3], items[at]
        elif kind == "observed":
            items = [dataclasses.replace(one, observed_at=one.observed_at + timedelta(hours=1)) for one in items]
            items[at] = dataclasses.replace(items[at], title="Another title")
        else:
            items[at] = dataclasses.replace(items[at], deleted=True, content=b"")
        stages.put(items)
        stages.run()
    anew = Stages(tmp_path / "anew")
    anew.put(items)
    anew.run()
    for stage, schema in (("documents", DOCUMENTS), ("chunks", CHUNKS)):
        found, wanted = ([*one.lake.read(stage, PART)] for one in (stages, anew))
        assert pa.Table.from_batches(found) == pa.Table.from_batches(wanted)
        assert set(schema.names) < set(found[0].schema.names)


def test_only_what_failed_is_tried_again(tmp_path: Path, made: list[str]) -> None:
    stages = Stages(tmp_path)
    stages.put([*texts(range(5)), item("long.md", "words " * 200), *texts(range(5, 9))])
    assert len(stages.run(Documents(max_bytes=1000))[0].failures) == 1
    made.clear()
    assert len(stages.run(Documents(max_bytes=1000))[0].failures) == 1
    assert made == []
    assert stages.run()[0].failures == []
    assert made == ["clean long.md", "cut long.md"]
    found = stages.table("documents", next(stages.lake.read("documents", PART)).schema)
    assert found.column("path").to_pylist()[5] == "long.md"


def test_a_part_of_an_earlier_version_is_made_once(tmp_path: Path, made: list[str]) -> None:
    stages = Stages(tmp_path)
    stages.put(texts(range(9)))
    stages.run()
    tags = stages.lake.tags("documents", PART) or {}
    old = [batch.select(DOCUMENTS.names) for batch in stages.lake.read("documents", PART)]
    with stages.lake.writer("documents", PART, schema=DOCUMENTS) as writer:
        for batch in old:
            writer.add(batch)
        writer.fingerprint = tags["fingerprint"]
    made.clear()
    stages.run()
    assert made == [], "nothing changed: it stays as it is"
    stages.put([*texts(range(9)), item("new.md", "# New\n\nWords.")])
    stages.run()
    assert sum(one.startswith("clean") for one in made) == 10
    assert [one for one in made if one.startswith("cut")] == ["cut new.md"]


@pytest.mark.parametrize("stage", ["documents", "chunks"])
def test_a_former_state_that_is_damaged_is_done_without(tmp_path: Path, stage: str) -> None:
    stages = Stages(tmp_path)
    stages.put(texts(range(200)))
    stages.run()
    path = Path(stages.lake.path(stage, PART))
    content = bytearray(path.read_bytes())
    for at in range(len(content) // 8, len(content) // 2, 11):
        content[at] ^= 0xFF
    path.write_bytes(content)
    stages.put([*texts(range(200)), item("new.md", "# New\n\nWords.")])
    cleaned, chunked = stages.run()
    if stage == "documents":
        assert (cleaned.rows, cleaned.copied, cleaned.left_aside) == (201, 0, {})
    assert chunked.left_aside == {} and stages.table("chunks", next(stages.lake.read("chunks", PART)).schema).num_rows
