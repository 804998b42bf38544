"""What a chunk shares with the one before it, and what it is embedded with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.model import Chunk, Document, Section, text_hash
from rag_pipeline.settings import Chunking

MakeDocument = Callable[..., Document]
LIMITS = Chunking(max_tokens=40, min_tokens=6, overlap_tokens=12)
SENTENCES = st.integers(0, 99).map(lambda n: f"Sentence {n} says something about topic {n * 7}. ")
PARAGRAPHS = st.lists(SENTENCES, min_size=1, max_size=12).map("".join)
TEXTS = st.lists(PARAGRAPHS | st.just("## Heading"), min_size=1, max_size=8).map("\n\n".join)


def chunked(document: Document, limits: Chunking = LIMITS) -> list[Chunk]:
    return chunk_document(document, settings=limits, count_tokens=count_words)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
def test_chunks_overlap_by_whole_sentences_and_still_fit(make_document: MakeDocument, text: str) -> None:
    document = make_document(text)
    chunks = chunked(document)
    covered = 0
    for before, chunk in pairwise([None, *chunks]):
        assert not text[covered : chunk.start_char].strip()
        assert chunk.text == text[chunk.start_char : chunk.end_char]
        assert chunk.tokens == count_words([chunk.text])[0] <= LIMITS.max_tokens
        if before:
            assert before.start_char < chunk.start_char
            shared = text[chunk.start_char : before.end_char]
            assert count_words([shared])[0] <= LIMITS.overlap_tokens
            assert not shared or shared.startswith(("Sentence", "## Heading"))
        covered = chunk.end_char
    assert not text[covered:].strip()


def test_what_goes_on_begins_with_the_end_of_what_was_before(make_document: MakeDocument) -> None:
    document = make_document("".join(f"Sentence {n} says something about topic {n}. " for n in range(20)))
    chunks = chunked(document)
    assert len(chunks) > 3
    # Not where the overlap would be the whole chunk before: that one is found by itself.
    shared = [chunk.start_char < before.end_char for before, chunk in pairwise(chunks)]
    assert sum(shared) > len(shared) / 2


def test_an_edit_changes_the_chunk_and_the_one_that_repeats_it(make_document: MakeDocument) -> None:
    text = "".join(f"Sentence {n} says something about topic {n}. " for n in range(60))
    before = Counter(chunk.text for chunk in chunked(make_document(text)))
    after = Counter(chunk.text for chunk in chunked(make_document(text.replace("topic 30", "matter 30"))))
    assert (after - before).total() <= 3


def test_a_section_repeats_nothing_of_another(make_document: MakeDocument) -> None:
    first, second = "One comment says this.\n\n", "Another one says that."
    sections = [
        Section(start_char=0, anchor="#a", name="ada"),
        Section(start_char=len(first), anchor="#b", name="bob"),
    ]
    chunks = chunked(make_document(first + second, sections=sections))
    assert [chunk.text for chunk in chunks] == [first.strip(), second]


def test_headings_that_a_chunk_does_not_name_are_embedded_with_it(make_document: MakeDocument) -> None:
    words = "The words of this paragraph are about something else entirely, and there are many of them. " * 2
    document = make_document(f"# Guide\n\n## Install\n\n{words}\n\n{words}\n\n{words}\n")
    limits = Chunking(max_tokens=48, min_tokens=8)
    plain = chunk_document(document, settings=limits, count_tokens=count_words)
    with_headings = chunk_document(document, settings=limits, count_tokens=count_words, context="headings")
    assert {chunk.context for chunk in plain} == {""}
    assert [chunk.text for chunk in plain] == [chunk.text for chunk in with_headings]
    assert [chunk.context for chunk in with_headings] == ["", *["Guide > Install\n\n"] * (len(plain) - 1)]
    for chunk in [*plain, *with_headings]:
        assert chunk.text_hash == text_hash(chunk.context + chunk.text)


def test_code_is_embedded_with_the_function_that_begins_shortly_before_it(make_document: MakeDocument) -> None:
    lines = "".join(f"        total = total + {n} * self.factor_{n}\n" for n in range(12))
    code = f"class Sums:\n    def add_up(self):\n        total = 0\n{lines}        return total\n"
    document = make_document(code, path="sums.py", source_type="code")
    chunks = chunk_document(
        document, settings=Chunking(max_tokens=40, min_tokens=8), count_tokens=count_words, context="symbols"
    )
    assert [chunk.context for chunk in chunks] == ["", "add_up\n\n", "add_up\n\n", *[""] * (len(chunks) - 3)]
    assert len(chunks) > 3
    prose = make_document(f"# Guide\n\n{'Some words. ' * 40}")
    found = chunk_document(prose, settings=Chunking(), count_tokens=count_words, context="symbols")
    assert {chunk.context for chunk in found} == {""}
