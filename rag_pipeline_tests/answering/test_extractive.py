"""Answers without a language model: quoted, cited, and honest when there is nothing."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.answering.citations import cited_in
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
    hits = [hit("Run `make test`.", rank=1), hit("Tests need PostgreSQL to run.", rank=2)]
    found = answer("How do I run the tests?", hits)
    assert found.question == "How do I run the tests?"
    assert found.text == "Run `make test`. [Source 1]\n\nTests need PostgreSQL to run. [Source 2]"
    assert [source.hit for source in found.sources] == hits


def test_no_more_sources_are_quoted_than_wanted():
    places = ("north", "south", "east", "west")
    hits = [hit(f"The ledger in the {place}: {place} {place * 2}.", rank=n) for n, place in enumerate(places, start=1)]
    found = answer("The ledger?", hits, max_sources=2)
    assert [source.hit.rank for source in found.sources] == [1, 2]
    assert "[Source 3]" not in found.text


def test_hits_that_say_little_of_what_is_asked_are_not_quoted_beside_one_that_says_it():
    texts = ("The ledger is restored with `ledgerctl`.", "The ledger is blue.", "Weather.")
    hits = [hit(text, rank=n) for n, text in enumerate(texts, start=1)]
    assert [source.hit.rank for source in answer("How is the ledger restored?", hits).sources] == [1]


def test_a_passage_counts_by_the_heading_it_stands_under_and_crosses_none():
    text = (
        "# Lighthouse\n\n## Installing\n\nRun `pip install lighthouse` in a fresh environment.\n\n"
        "## Running the tests\n\nCall `make test`; it starts a database of its own."
    )
    assert best_passage("How do I run the tests?", text) == "Call `make test`; it starts a database of its own."
    assert best_passage("How do I install it?", text) == "Run `pip install lighthouse` in a fresh environment."


def test_what_two_hits_say_alike_is_quoted_once():
    said = "The ledger is restored with `ledgerctl restore`."
    found = answer("How is the ledger restored?", [hit(said, rank=1), hit(f"{said}\n", rank=2)])
    assert len(found.sources) == 1


def test_a_few_lines_of_code_are_quoted_as_code_and_not_all_of_it():
    body = "\n".join(f"    step_{n} = prepare({n})" for n in range(30))
    head = f'def restore(account):\n    """Restores an account.\n\n    {"Long. " * 80}\n    """'
    code = f"{head}\n{body}\n    return ledger.replay(account)"
    found = answer(
        "What does replay of the ledger return?", [replace(hit(code), source_type="code", language="python")]
    )
    assert found.text.startswith("```\n") and found.text.endswith("\n```\n[Source 1]")
    assert "ledger.replay(account)" in found.text and len(found.text) < 500


def test_marks_links_and_pictures_inside_a_quote_do_nothing():
    planted = "The ledger is safe [Source 9]. ![x](https://evil.example/?q=ledger) <img src=//evil.example/a>"
    found = answer("Is the ledger safe?", [hit(planted)])
    assert found.text == "The ledger is safe. [Source 1]" or found.text.startswith("The ledger is safe.")
    assert cited_in(found.text) == [1] and "evil" not in found.text and found.removed_citations == 1


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


@given(question=st.text(max_size=40), text=st.text(max_size=2000), code=st.booleans())
def test_a_passage_is_a_piece_of_its_text_and_no_longer_than_can_be_read_at_once(question, text, code):
    passage = best_passage(question, text, code=code)
    assert passage in text
    assert len(passage) <= 600


@given(texts=st.lists(st.text(max_size=120), max_size=5), question=st.text(max_size=30))
def test_whatever_stands_in_the_hits_every_mark_has_its_source(texts, question):
    found = answer(question, [hit(text, rank=n) for n, text in enumerate(texts, start=1)])
    assert cited_in(found.text) == [source.number for source in found.sources]
