"""The documents stage: several raw stages may bring the same item, and settings decide what is still fresh."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_pipeline.documents import clean
from rag_pipeline.documents.stage import DocumentsReport, clean_items, fingerprint
from rag_pipeline.lake.derive import DeriveReport
from rag_pipeline.lake.schemas import ITEMS, documents_of, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, Document, SourceItem
from rag_pipeline.progress import silent
from rag_pipeline.settings import Documents, Threads
from rag_pipeline_tests.documents.redaction.planted import TOKENS
from rag_pipeline_tests.documents.threads import comment, thread, thread_item

MakeItem = Callable[..., SourceItem]
INPUTS = ("raw_polled", "raw_dropped")


def moment(hour: int) -> datetime:
    return datetime(2024, 5, 1, hour, tzinfo=UTC)


class Stage:
    """A lake with raw parts of one repository and day."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake(str(folder))
        self.part: Part | None = None

    def put(self, stage: str, *items: SourceItem, columns: list[str] | None = None) -> None:
        self.part = Part(tenant=items[0].tenant, repository=items[0].repository, day=items[0].day)
        schema = ITEMS if columns is None else ITEMS.empty_table().select(columns).schema
        with self.lake.writer(stage, self.part, schema=schema) as writer:
            for batch in to_batches(items, schema):
                writer.add(batch)
            writer.fingerprint = str(hash(items[0].content + str(len(items)).encode()))

    def run(self, **options: Any) -> DeriveReport:
        assert self.part
        days = DayRange(first=self.part.day, last=self.part.day)
        return clean_items(self.lake, days, **{"inputs": INPUTS, "threads": Threads(), "progress": silent, **options})

    def documents(self) -> list[Document]:
        assert self.part
        return [document for batch in self.lake.read("documents", self.part) for document in documents_of(batch)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.mark.parametrize(
    ("polled", "dropped", "kept"),
    [
        ({"source_updated_at": moment(2)}, {"source_updated_at": moment(1)}, "polled"),
        ({"source_updated_at": moment(1)}, {"source_updated_at": moment(2)}, "dropped"),
        ({"observed_at": moment(4)}, {"observed_at": moment(3)}, "polled"),
        # The last comment was deleted: what was seen later is newer, though its last change is older.
        (
            {"source_updated_at": moment(1), "as_of": moment(5)}, {"source_updated_at": moment(2), "as_of": moment(4)},
            "polled",
        ),
        ({}, {}, "dropped"),
    ],
)  # fmt: skip
def test_of_two_states_of_an_item_the_newest_is_kept(
    stage: Stage, make_item: MakeItem, polled: dict[str, Any], dropped: dict[str, Any], kept: str
) -> None:
    stage.put("raw_polled", make_item("polled", **polled), make_item("only here", path="b.md"))
    stage.put("raw_dropped", make_item("dropped", **dropped), make_item("only there", path="c.md"))
    report = stage.run()
    assert sorted(document.text for document in stage.documents()) == sorted([kept, "only here", "only there"])
    assert (report.rows, report.failures) == (3, [])


def test_a_newer_tombstone_replaces_what_it_buries(stage: Stage, make_item: MakeItem) -> None:
    stage.put("raw_polled", make_item("text"))
    stage.put("raw_dropped", make_item(deleted=True, source_updated_at=moment(12)))
    stage.run()
    assert [document.deleted for document in stage.documents()] == [True]


def test_the_same_id_of_another_type_is_another_item(stage: Stage, make_item: MakeItem) -> None:
    stage.put("raw_polled", make_item("one", source_type="docs"))
    stage.put("raw_dropped", make_item("two", source_type="code"))
    stage.run()
    assert [document.text for document in stage.documents()] == ["one", "two"]


def test_a_superseded_state_cannot_fail(stage: Stage) -> None:
    stage.put("raw_polled", thread_item(b"{", source_updated_at=moment(1)))
    stage.put("raw_dropped", thread_item(thread(), source_updated_at=moment(2)))
    assert (stage.run().failures, len(stage.documents())) == ([], 1)


def test_an_item_that_cannot_be_read_is_a_failure_and_the_rest_goes_on(stage: Stage) -> None:
    stage.put("raw_polled", thread_item(b"{"), thread_item(thread(), source_id="1:18"))
    (failure,) = stage.run().failures
    assert failure.source_id == "1:17"
    assert failure.reason.startswith("ItemError: 1:17 is not a thread")
    assert [document.source_id for document in stage.documents()] == ["1:18"]


def test_raw_parts_of_an_older_version_are_read(stage: Stage, make_item: MakeItem) -> None:
    older = [name for name in ITEMS.names if name not in ("as_of", "scope")]
    stage.put("raw_polled", make_item("text"), columns=older)
    stage.run()
    assert [(document.text, document.as_of, document.scope) for document in stage.documents()] == [("text", None, None)]


def test_documents_keep_their_sections_scope_and_moment(stage: Stage) -> None:
    item = thread_item(thread(), scope="visitor:7", as_of=moment(9))
    stage.put("raw_polled", item)
    stage.run()
    (document,) = stage.documents()
    assert (document.scope, document.as_of) == ("visitor:7", moment(9))
    assert [section.name for section in document.sections or ()] == ["alice, 2024-05-01"]


def test_default_settings_are_the_plain_version_and_others_are_told_apart() -> None:
    assert fingerprint() == fingerprint(Threads())
    others = {fingerprint(Threads(kept_authors=("x",))), fingerprint(Threads(noisy_authors=()))}
    assert len(others) == 2
    assert all(other.startswith(f"{fingerprint()}/") for other in others)


def test_other_settings_clean_again(stage: Stage) -> None:
    stage.put("raw_polled", thread_item(thread(entries=[comment("99 %", by="codecov")])))
    stage.run()
    assert stage.run().fresh == 1
    assert "99 %" not in stage.documents()[0].text
    assert stage.run(threads=Threads(noisy_authors=())).fresh == 0
    assert "99 %" in stage.documents()[0].text


LONG = ("A sentence that many documents have. " * 4000).encode()


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Documents(max_bytes=100_000), r"its 148,000 bytes are more than documents.max_bytes \(100,000\)"),
        (Documents(timeout_s=0.000_1), "it took longer than 0.0001 s"),
    ],
)
def test_a_document_that_costs_too_much_is_quarantined_and_the_rest_goes_on(
    stage: Stage, make_item: MakeItem, limits: Documents, reason: str
) -> None:
    stage.put("raw_polled", make_item(LONG, path="long.md"), make_item(b"Short.", path="short.md"))
    report = stage.run(limits=limits)
    (failure,) = report.failures
    assert re.search(reason, failure.reason)
    assert [document.path for document in stage.documents()] == ["short.md"]
    assert not stage.run().failures
    assert sorted(document.path or "" for document in stage.documents()) == ["long.md", "short.md"]


@pytest.mark.parametrize("content", [b"x y " * 300, b"password = 'Tr0ub4dor'\n" * 43])
def test_a_short_limit_quarantines_short_documents(stage: Stage, make_item: MakeItem, content: bytes) -> None:
    stage.put("raw_polled", make_item(content, path="a.md"), make_item(b"Short.", path="short.md"))
    report = stage.run(limits=Documents(max_bytes=1000))
    (failure,) = report.failures
    assert re.search(r"its 1,\d{3} bytes are more than documents.max_bytes \(1,000\)", failure.reason)
    assert [document.path for document in stage.documents()] == ["short.md"]


def test_a_long_document_is_the_same_as_in_this_process(stage: Stage, make_item: MakeItem) -> None:
    item = make_item(LONG, path="long.md")
    stage.put("raw_polled", item)
    assert not stage.run().failures
    (document,) = stage.documents()
    assert document.text == clean(item).text


def test_several_processes_write_the_same_file(
    stage: Stage, make_item: MakeItem, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = TOKENS["github-classic"](random.Random(10))
    texts = [f"# Page {number}\n\n{'Words of it. ' * number}\n\n{token}\n" for number in range(60)]
    items = [make_item(text, path=f"{number}.md") for number, text in enumerate(texts)]
    stage.put("raw_polled", make_item(LONG, path="long.md"), *items, thread_item(b"{"))
    stage.put("raw_dropped", *(make_item("Newer.", path=f"{n}.md", source_updated_at=moment(23)) for n in range(20)))
    alone = stage.run(processes=1)
    monkeypatch.setattr("rag_pipeline.documents.stage._Cleaning.worth", 5_000)
    assert stage.part
    path = Path(stage.lake.path("documents", stage.part))
    written = path.read_bytes()
    path.unlink()
    together = stage.run(processes=2)
    assert path.read_bytes() == written
    assert (together.rows, together.failures) == (alone.rows, alone.failures)
    assert isinstance(alone, DocumentsReport)
    assert isinstance(together, DocumentsReport)
    assert together.redactions == alone.redactions == {"github-token": 40}
    assert alone.rows == 61
    assert len(alone.failures) == 1


def test_guessed_encodings_are_counted(stage: Stage, make_item: MakeItem) -> None:
    contents = ["Ναι".encode("cp1253"), "Да, это".encode("koi8-r"), "größe".encode("utf-16"), "größe".encode()]
    stage.put("raw_dropped", *(make_item(content, path=f"{n}.txt") for n, content in enumerate(contents)))
    report = stage.run()
    assert isinstance(report, DocumentsReport)
    assert report.guessed_encodings == 2
