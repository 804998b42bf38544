"""A document with sections is cut at each of them, and what is said in one changes no chunk of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.documents import clean
from rag_pipeline.model import Chunk, Document, Section
from rag_pipeline.settings import Chunking
from rag_pipeline_tests.chunking.test_chunk import SMALL, TEXTS, assert_sound
from rag_pipeline_tests.documents.threads import (
    archived_threads,
    comment,
    needs_archive,
    review_comment,
    thread,
    thread_item,
)

MakeDocument = Callable[..., Document]


def chunks_of(document: Document, *, limits: Chunking = SMALL) -> list[Chunk]:
    return chunk_document(document, settings=limits, count_tokens=count_words)


def thread_document(**fields: Any) -> Document:
    return clean(thread_item(thread(**fields)))


def section_of(document: Document, chunk: Chunk) -> Section:
    """The section a chunk begins in; it must end in it too."""
    sections = document.sections or []
    number = max(n for n, section in enumerate(sections) if section.start_char <= chunk.start_char)
    assert number + 1 == len(sections) or chunk.end_char <= sections[number + 1].start_char
    return sections[number]


def texts_by_section(document: Document) -> list[list[str]]:
    """For each section, the texts of its chunks."""
    sections = list(document.sections or [])
    found: list[list[str]] = [[] for _ in sections]
    for chunk in chunks_of(document):
        found[sections.index(section_of(document, chunk))].append(chunk.text)
    return found


def sectioned(make_document: MakeDocument, texts: Sequence[str]) -> Document:
    """A document whose sections have these texts."""
    starts = [sum(map(len, texts[:n])) for n in range(len(texts))]
    sections = [Section(start_char=at, anchor=f"#{n}", name=f"part {n}") for n, at in enumerate(starts)]
    return make_document("".join(texts), path=None, title="Title", sections=sections)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_sections_are_covered_and_no_chunk_spans_two(make_document: MakeDocument, texts: list[str]) -> None:
    document = sectioned(make_document, texts)
    chunks = chunks_of(document)
    assert_sound(document, chunks, limits=SMALL, count_tokens=count_words)
    for chunk in chunks:
        section = section_of(document, chunk)
        assert chunk.anchor == section.anchor
        assert tuple(chunk.heading_path[:2]) == ("Title", section.name)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=1, max_size=4), new=TEXTS, data=st.data())
def test_a_section_is_cut_as_if_the_others_were_not_there(
    make_document: MakeDocument, texts: list[str], new: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(texts) - 1))
    before = [chunk for chunk in chunks_of(sectioned(make_document, texts)) if chunk.anchor != f"#{at}"]
    texts[at] = new
    after = [chunk for chunk in chunks_of(sectioned(make_document, texts)) if chunk.anchor != f"#{at}"]
    assert [(c.anchor, c.text, c.heading_path) for c in before] == [(c.anchor, c.text, c.heading_path) for c in after]


SAID = st.lists(TEXTS.filter(lambda text: ">" not in text), min_size=1, max_size=5)


@settings(deadline=None)
@given(bodies=SAID, new=TEXTS, labels=st.sampled_from([[], ["bug"]]))
@example(bodies=["# Head\n# Head\n# Head\n## Sub\n## Sub\n"], new="# Head\n", labels=[])
def test_a_comment_at_the_end_changes_no_chunk_of_the_others(bodies: list[str], new: str, labels: list[str]) -> None:
    entries = [comment(body, number=number) for number, body in enumerate(bodies)]
    before = texts_by_section(thread_document(entries=entries, labels=labels))
    after = texts_by_section(thread_document(entries=[*entries, comment(new, number=60)], labels=["answered"]))
    others = before[:-1] if labels else before
    assert after[: len(others)] == others
    assert len(after) - len(others) in (1, 2)
    assert after[-1] != before[-1], "the outcome"


@settings(deadline=None)
@given(bodies=SAID, new=TEXTS.filter(lambda text: ">" not in text), data=st.data())
def test_an_edited_comment_changes_only_chunks_of_its_section(bodies: list[str], new: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(bodies) - 1))

    def others(bodies: Sequence[str]) -> list[tuple[str, str]]:
        document = thread_document(entries=[comment(body, number=number) for number, body in enumerate(bodies)])
        return [(c.anchor or "", c.text) for c in chunks_of(document) if c.anchor != f"#issuecomment-{at}"]

    assert others(bodies) == others([*bodies[:at], new, *bodies[at + 1 :]])


def test_a_heading_or_a_fence_in_one_comment_does_not_reach_into_the_next() -> None:
    entries = [comment("# Plan\n\n```\nnever closed"), comment("# Other\n\ntext", number=2)]
    document = thread_document(entries=entries, labels=["bug"])
    paths = {chunk.anchor: chunk.heading_path for chunk in chunks_of(document, limits=Chunking())}
    assert paths == {
        "": ("Cache is stale", "Outcome"),
        "#issuecomment-1": ("Cache is stale", "bob, 2024-05-02"),
        "#issuecomment-2": ("Cache is stale", "bob, 2024-05-02"),
    }
    last = [chunk for chunk in chunks_of(document, limits=Chunking()) if chunk.anchor == "#issuecomment-2"]
    assert [chunk.text for chunk in last] == ["**bob** commented, 2024-05-02 12:02 UTC\n\n# Other\n\ntext"]


def test_chunks_stand_under_the_title_the_section_and_the_headings_inside_it() -> None:
    sentence = "The cache serves pages that were deleted an hour ago. "
    document = thread_document(
        title="Fix the `cache`", body=f"{sentence}\n\n## Steps\n\n{sentence}\n\n### First\n\n{sentence * 2}",
        entries=[comment(f"Why?\n\n## Numbers\n\n{sentence * 3}")], labels=["bug"],
    )  # fmt: skip
    paths = list(dict.fromkeys(chunk.heading_path for chunk in chunks_of(document)))
    assert paths == [
        ("Fix the `cache`", "alice, 2024-05-01"),
        ("Fix the `cache`", "alice, 2024-05-01", "Steps"),
        ("Fix the `cache`", "alice, 2024-05-01", "Steps", "First"),
        ("Fix the `cache`", "bob, 2024-05-02"),
        ("Fix the `cache`", "bob, 2024-05-02", "Numbers"),
        ("Fix the `cache`", "Outcome"),
    ]


def test_every_chunk_points_at_what_it_came_from() -> None:
    document = thread_document(
        kind="pull_request", entries=[comment("First words."), review_comment("Second words.", number=2)],
        files=[{"path": "src/a.py", "status": "modified", "previous_path": None, "additions": 3, "deletions": 1}],
        labels=["bug"],
    )  # fmt: skip
    anchors = [chunk.anchor for chunk in chunks_of(document, limits=Chunking())]
    assert anchors == ["", "#issuecomment-1", "#discussion_r2", "", "/files"]


def test_a_document_without_sections_has_no_anchors_and_only_its_own_headings(make_document: MakeDocument) -> None:
    (chunk,) = chunks_of(make_document("# Head\n\ntext", title="Title"))
    assert (chunk.anchor, chunk.heading_path) == (None, ("Head",))


def test_equal_comments_are_told_apart() -> None:
    document = thread_document(entries=[comment("+1"), comment("+1", anchor="#issuecomment-9")])
    chunks = [chunk for chunk in chunks_of(document) if chunk.text.endswith("+1")]
    assert Counter(chunk.text for chunk in chunks).most_common(1)[0][1] == 2
    assert len({chunk.chunk_id for chunk in chunks}) == 2


@needs_archive
def test_every_thread_of_a_real_project_is_covered() -> None:
    for found in archived_threads():
        document = clean(thread_item(found))
        chunks = chunks_of(document, limits=Chunking())
        assert_sound(document, chunks, limits=Chunking(), count_tokens=count_words)
        for chunk in chunks:
            section = section_of(document, chunk)
            assert tuple(chunk.heading_path[:2]) == (document.title, section.name)
