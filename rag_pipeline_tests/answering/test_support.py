"""Whether sources bear sentences out, how sure one may be, and what a question needs to stand alone: all in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.answering.claims import claims_of
from rag_pipeline.answering.confidence import coverage, evidence, of_answer
from rag_pipeline.answering.follow_ups import follow_ups
from rag_pipeline.answering.language_model import Message
from rag_pipeline.answering.rewriting import depends_on, with_topic
from rag_pipeline.answering.support import BORNE_OUT, checked, support
from rag_pipeline.answering.terms import content_terms, language_of, numbers, rarities
from rag_pipeline_tests.answering.answerers import BACKUPS, RETENTION, near
from rag_pipeline_tests.retrieval.hits import TEXTS, hit, ranked

SOURCE = "Backups of the ledger run nightly at 02:00 UTC and are kept for 30 days. They are not encrypted."
RARITY = rarities([SOURCE, "Something else about the weather."])


def score(claim: str, source: str = SOURCE) -> float:
    return support(claim, source, rarity=RARITY)


def test_what_a_source_says_is_borne_out_and_what_it_does_not_speak_of_is_not():
    assert score("The ledger's backups run nightly at 02:00 UTC.") > 0.9
    assert score("Backup runs of the ledger happen every night at 02:00.") >= BORNE_OUT
    assert score("Elephants paint purple invoices.") == 0


def test_another_number_or_a_denial_weighs_more_than_the_words_around_it():
    right = score("Backups of the ledger are kept for 30 days.")
    assert score("Backups of the ledger are kept for 90 days.") < right / 2
    assert score("Backups of the ledger are not kept for 30 days.") <= right / 2
    assert score("They are encrypted.") < score("They are not encrypted.")


def test_an_answer_in_another_language_is_judged_by_what_is_written_alike_in_both():
    assert score("Die Sicherungen sind nach dem 30. Tag nicht mehr da, und werden um 02:00 UTC gemacht.") >= BORNE_OUT
    assert score("Die Sicherungen werden nach 99 Tagen mit `purge_all` gelöscht und sind dann weg.") < BORNE_OUT
    assert score("Das ist alles, was es dazu gibt, und mehr ist es nicht.") == 0.5


def test_claims_are_sentences_items_and_blocks_of_code_with_their_marks():
    text = (
        "# Heading\n\nRun it, e.g. nightly. [Source 1] Then wait [Source 2].\n\n- One [Source 1]\n- Two\n\n"
        "```sh\nmake x. y\n```\n[Source 3]"
    )
    claims = claims_of(text)
    assert [(claim.text, claim.cited, claim.is_code) for claim in claims] == [
        ("Run it, e.g. nightly.", (1,), False), ("Then wait.", (2,), False), ("One", (1,), False), ("Two", (), False),
        ("make x. y", (3,), True),
    ]  # fmt: skip
    assert claims_of("Erste。第二句。[Source 1]第三句。")[1].cited == (1,)


@settings(max_examples=100, deadline=None)
@given(texts=TEXTS, marks=st.lists(st.integers(1, 3), max_size=6), said=st.lists(st.text(max_size=30), max_size=6))
def test_checking_never_fails_and_leaves_no_gap_in_the_numbers(texts, marks, said):
    found = ranked(*texts)
    cited = [found[n % len(found)] for n in range(3)]
    text = " ".join(f"{words} [Source {n}]." for words, n in zip(said, marks, strict=False))
    held = checked(text, cited, found=found)
    assert 0 <= held.support <= 1 and len(held.sources) == len(held.supports) == len(held.claims)
    assert {f"[Source {n}]" in held.text for n in range(1, len(held.sources) + 1)} <= {True}
    assert f"[Source {len(held.sources) + 1}]" not in held.text or "[Source" in "".join(said)


@given(claim=st.text(max_size=80), source=st.text(max_size=200))
def test_support_is_a_share_whatever_the_texts(claim, source):
    assert 0 <= support(claim, source, rarity=rarities([source])) <= 1


def test_evidence_rises_with_cosine_and_coverage_and_needs_hits():
    question = "When do backups of the ledger run?"
    assert evidence(question, []) == 0
    assert evidence(question, [near(BACKUPS, 0.7)]) > evidence(question, [near(BACKUPS, 0.4)])
    assert evidence(question, [near(BACKUPS, 0.5)]) > evidence(question, [near(hit("Weather."), 0.5)])
    assert coverage(question, [BACKUPS, RETENTION]) == 1
    assert coverage("?", [BACKUPS]) == 0
    assert evidence(question, [near(BACKUPS, float("nan"))]) > 0.5, "without vectors the words decide"
    assert of_answer(0.9, 0.0) == 0 and of_answer(0.81, 1.0) == 0.9


@settings(max_examples=60, deadline=None)
@given(question=st.text(max_size=60), texts=TEXTS)
def test_evidence_is_a_probability_whatever_the_texts(question, texts):
    assert 0 <= evidence(question, ranked(*texts)) <= 1


TALK = (
    Message(role="user", content="How does ledgerctl restore a backup?"),
    Message(role="assistant", content="With `ledgerctl restore`."),
)


@pytest.mark.parametrize("question", ["Can it run on Windows as well?", "And on Windows?", "Windows", "Warum?"])
def test_questions_that_go_on_with_a_conversation_are_recognized(question):
    assert depends_on(question, TALK)
    assert not depends_on(question, ())


def test_a_question_that_says_all_it_means_is_left_alone():
    assert not depends_on("Which retention period do audit trails of payments have?", TALK)


def test_what_was_talked_about_is_added_once_and_the_names_first():
    assert with_topic("Can it run on Windows?", TALK) == "Can it run on Windows? (ledgerctl restore backup)"
    assert (
        with_topic("Does ledgerctl restore a backup on Windows?", TALK) == "Does ledgerctl restore a backup on Windows?"
    )


@given(question=st.text(max_size=80), said=st.lists(st.text(max_size=200), max_size=4))
def test_rewriting_by_rules_never_fails_and_keeps_the_question(question, said):
    history = [Message(role="user", content=text) for text in said]
    assert question.strip() in with_topic(question, history)
    assert depends_on(question, history) in (True, False)


def test_follow_ups_are_about_what_the_sources_speak_of_and_differ_from_each_other():
    hits = [BACKUPS, RETENTION]
    suggested = [
        "How is the ledger restored?", "Who won the cup?", "How is the ledger restored again?", "![x](//evil.example)",
    ]  # fmt: skip
    found = follow_ups("When do backups of the ledger run?", suggested, hits, most=3)
    assert found == ["How is the ledger restored?", "What is said about “Audit trails”?"]
    assert follow_ups("When do backups run?", suggested, hits, most=0) == []


def test_headings_of_code_and_questions_as_headings_become_questions():
    code = replace(hit("def f(): ...", headings=("Ledger", "restore_account")), source_type="code")
    faq = hit("Ask them.", headings=("FAQ", "Who runs the ledger?"), document="faq.md")
    empty = hit("Words.", headings=("Overview",), document="o.md")
    assert follow_ups("", [], [empty, code, faq], most=5) == ["What does restore_account do?", "Who runs the ledger?"]


def test_names_in_code_keep_their_underscores_and_a_package_is_called_by_its_folder():
    package = replace(hit("Starts it.", headings=("ledger/books/__init__.py",)), source_type="code")
    private = replace(hit("def f(): ...", headings=("Ledger", "_close"), document="b"), source_type="code")
    assert follow_ups("", [], [private, package], most=5) == [
        "What is said about “ledger/books”?", "What does _close do?",
    ]  # fmt: skip


def test_languages_numbers_and_terms():
    assert [language_of(text) for text in (
        "How is the index built?", "Wie wird der Index gebaut?", "Comment est-ce que les index sont faits ?",
        "¿Cómo se hace el índice?", "索引はどう作る", "index",
    )] == ["en", "de", "fr", "es", "cjk", ""]  # fmt: skip
    assert numbers("1,000 of 3.10 and 3.1") == {"1000", "3.10", "3.1"}
    assert content_terms("How do I get the ledger?") == ["ledger"]
