"""Answers without a language model: quoted, cited, and honest when there is nothing."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.answering.extractive import answer, best_passage
from rag_pipeline.model import SearchHit
from rag_pipeline_tests.knowledge import moment


def hit(text: str, *, rank: int = 1) -> SearchHit:
    return SearchHit(
        rank=rank, score=0.5, title="Guide", text=text, url="https://example.org", location="guide.md:1-9",
        repository="handbook", source_type="docs", source_id="handbook:guide.md", language=None, heading_path=(),
        start_line=1, end_line=9, document_id=UUID(int=1), chunk_id=UUID(int=rank), source_updated_at=moment(1),
        tokens=8,
    )  # fmt: skip


def test_each_passage_is_followed_by_the_source_it_stands_in():
    hits = [hit("Run `make test`.", rank=1), hit("Tests need PostgreSQL.", rank=2)]
    found = answer("How do I run the tests?", hits)
    assert found.question == "How do I run the tests?"
    assert found.text == "Run `make test`. [Source 1]\n\nTests need PostgreSQL. [Source 2]"
    assert [source.hit for source in found.sources] == hits


def test_only_the_first_hits_are_quoted():
    found = answer("q", [hit(f"text {n}", rank=n) for n in range(1, 9)], max_sources=2)
    assert [source.hit.rank for source in found.sources] == [1, 2]
    assert "[Source 3]" not in found.text


def test_without_hits_the_answer_says_so_and_cites_nothing():
    found = answer("q", [])
    assert (found.text, list(found.sources)) == ("The index holds nothing about this.", [])


def test_the_passage_that_shares_the_most_words_is_quoted():
    filler = "\n".join(
        f"Line {n} is about the weather and about other things that nobody asked for." for n in range(20)
    )
    text = f"{filler}\nThe nightly backup of the ledger is restored with `ledgerctl restore`.\n{filler}"
    assert "ledgerctl restore" in best_passage("How do I restore the ledger backup?", text)


def test_words_that_every_question_has_do_not_count():
    text = "How do you use it and what is it for\n" + "x\n" * 200 + "Retention is thirty days."
    assert "Retention" in best_passage("What is the retention?", text)


def test_a_text_without_words_gives_an_empty_passage():
    assert best_passage("q", "") == best_passage("q", " \n\t\n") == ""


@given(question=st.text(max_size=40), text=st.text(max_size=2000))
def test_a_passage_is_a_run_of_whole_lines_of_its_text(question, text):
    lines = [line.rstrip() for line in text.splitlines()]
    passage = best_passage(question, text)
    assert passage in "\n".join(lines)
    assert len(passage) <= max(320, *(len(line) for line in lines), 0)
