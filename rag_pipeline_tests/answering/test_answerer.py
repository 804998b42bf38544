"""Questions to answers: written by a model, quoted without one, declined, and never broken by a model that fails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.answering.answerer import Answerer
from rag_pipeline.answering.citations import cited_in
from rag_pipeline.answering.language_model import Message
from rag_pipeline.errors import ConfigError, DatabaseUnavailable, PermanentError, TransientError
from rag_pipeline.settings import Answering
from rag_pipeline_tests.answering.answerers import (
    BACKUPS,
    RETENTION,
    answerer,
    asking,
    events,
    near,
    searching,
)  # fmt: skip
from rag_pipeline_tests.answering.scripted_model import ScriptedModel

QUESTION = asking("When do backups of the ledger run, and how long are they kept?")
GOOD = (
    "Backups of the ledger run nightly at 02:00 UTC [Source 1]. They are kept for 30 days [Source 1].\n\n"
    "FOLLOW-UPS:\n- How is a ledger backup restored?\n- Who won the cup in 1998?\n"
)
HISTORY = (
    Message(role="user", content="How does ledgerctl restore a backup?"),
    Message(role="assistant", content="With `ledgerctl restore` [Source 4]."),
)


def test_a_model_writes_the_answer_and_each_sentence_is_cited_and_priced():
    model = ScriptedModel(says=[GOOD])
    looked, streamed, answer = events(answerer(model=model), QUESTION)
    assert [one.hits[0].title for one in looked] == ["Backups"]
    assert answer.status == "answered"
    assert answer.text == streamed == GOOD.partition("\n\n")[0]
    assert [source.hit.title for source in answer.sources] == ["Backups"]
    assert answer.sources[0].support > 0.9
    assert answer.sources[0].quote.startswith("Backups of the ledger run nightly")
    assert answer.follow_ups[0] == "How is a ledger backup restored?"
    assert "Who won the cup in 1998?" not in answer.follow_ups
    assert (answer.model, answer.input_tokens, answer.output_tokens) == ("scripted-1", 100, 20)
    assert answer.cost_usd == pytest.approx(0.14)
    assert len(model.asked) == 1
    assert answer.confidence > 0.8 and not answer.degraded


def test_what_a_service_does_not_count_is_not_free():
    silent = ScriptedModel(says=[GOOD], input_tokens=0, output_tokens=0)
    answer = answerer(model=silent).ask(QUESTION)
    assert (answer.model, answer.input_tokens, answer.output_tokens, answer.cost_usd) == ("scripted-1", 0, 0, None)


def test_the_model_sees_sources_fenced_within_the_budget_and_the_question():
    model = ScriptedModel(says=[GOOD])
    big = near(replace(BACKUPS, text="word " * 5_000, rank=3))
    answerer(near(BACKUPS), big, near(RETENTION), model=model, context_tokens=400).ask(QUESTION)
    (system, user) = model.asked[0]
    assert (system.role, user.role) == ("system", "user")
    assert "[Source 1] Backups - backups.md:3-6\n```\nBackups of the ledger" in user.content
    assert "[Source 2] Retention" in user.content and "word word" not in user.content
    assert f"```\n{QUESTION.query.text}\n```" in user.content
    assert BACKUPS.text not in system.content


def test_streaming_and_asking_at_once_give_the_same_answer():
    whole = answerer(model=ScriptedModel(says=[GOOD], piece_chars=10_000)).ask(QUESTION)
    for chars in (1, 3, 11):
        assert events(answerer(model=ScriptedModel(says=[GOOD], piece_chars=chars)), QUESTION)[2] == whole


def test_without_a_model_the_best_passages_are_quoted():
    _, streamed, answer = events(answerer(), QUESTION)
    assert answer.status == "answered" and answer.model == "" and answer.cost_usd == 0.0
    assert answer.text == streamed
    assert "nightly at 02:00 UTC" in answer.text and cited_in(answer.text)[0] == 1
    assert answer.follow_ups


def test_citations_that_point_to_nothing_are_removed_and_counted():
    model = ScriptedModel(says=["Backups of the ledger run nightly at 02:00 UTC [Source 7] [Source 1]. [9]"])
    answer = answerer(model=model).ask(QUESTION)
    assert answer.text == "Backups of the ledger run nightly at 02:00 UTC [Source 1]."
    assert answer.removed_citations == 2


def test_a_sentence_that_its_source_does_not_bear_out_loses_its_citation():
    said = "Backups of the ledger run nightly at 02:00 UTC [Source 2]. They are kept for 30 days [Source 1]."
    answer = answerer(model=ScriptedModel(says=[said])).ask(QUESTION)
    assert answer.text == "Backups of the ledger run nightly at 02:00 UTC. They are kept for 30 days [Source 1]."
    assert [source.hit.title for source in answer.sources] == ["Backups"]


def test_an_answer_that_nothing_bears_out_says_so():
    said = "Elephants paint quarterly invoices in Lisbon [Source 1]. Each weighs 4711 kilograms [Source 2]."
    answer = answerer(model=ScriptedModel(says=[said])).ask(QUESTION)
    assert answer.status == "unsupported"
    assert answer.text.startswith("Careful: the sources that were found do not bear this answer out.")
    assert list(answer.sources) == [] and cited_in(answer.text) == []
    assert answer.confidence < 0.3


@pytest.mark.parametrize("said", ["UNKNOWN: the sources do not name a price.", "The sources do not mention a price."])
def test_a_model_may_say_that_the_sources_do_not_say(said):
    answer = answerer(model=ScriptedModel(says=[said])).ask(QUESTION)
    assert answer.status == "unknown"
    assert answer.text.lower().startswith("the sources do not")


def test_what_nothing_speaks_of_is_declined_without_asking_the_model():
    model = ScriptedModel(says=[GOOD])
    question = asking("How tall is Mount Kilimanjaro?")
    answer = answerer(near(BACKUPS, 0.1), near(RETENTION, 0.05), model=model).ask(question)
    assert answer.status == "unknown" and answer.confidence < 0.35
    assert "do not know" in answer.text and "How tall is Mount Kilimanjaro?" in answer.text
    assert model.asked == [] and list(answer.sources) == []
    assert answer.text.endswith("Closest to it: Backups; Retention.")


def test_with_no_hits_nothing_is_known_whatever_the_threshold():
    answering = Answerer(search=searching(), model=None, settings=Answering(min_evidence=0))
    answer = answering.ask(asking("Wie hoch ist die Gebühr für die Nutzung?"))
    assert answer.status == "unknown" and answer.text.startswith("Das weiß ich nicht")


def test_small_talk_is_answered_without_a_search():
    search = searching(near(BACKUPS))
    answer = Answerer(search=search, model=ScriptedModel(says=[GOOD]), settings=Answering()).ask(
        asking("thanks a lot!")
    )
    assert answer.status == "small_talk" and search.queries == []


@pytest.mark.parametrize("error", [
    TransientError("the service is overloaded"), ConfigError("no such model"), PermanentError("refused"),
    RuntimeError("a bug"),
])  # fmt: skip
def test_a_model_that_fails_is_replaced_by_quotes(error):
    answer = answerer(model=ScriptedModel(says=[error])).ask(QUESTION)
    assert answer.status == "answered" and answer.model == ""
    assert cited_in(answer.text)
    assert str(error) in answer.degraded


def test_a_stream_that_breaks_ends_in_an_answer_of_quotes():
    _, streamed, answer = events(answerer(model=ScriptedModel(says=[GOOD], fails_after=4)), QUESTION)
    assert streamed and not answer.text.startswith(streamed + " run nightly at 02:00 UTC [Source 1]. They")
    assert answer.model == "" and "the wire was cut" in answer.degraded


def test_an_empty_answer_is_replaced_by_quotes_but_paid_for():
    answer = answerer(model=ScriptedModel(says=["  "])).ask(QUESTION)
    assert answer.model == "" and answer.input_tokens == 100 and answer.cost_usd == pytest.approx(0.14)
    assert "wrote nothing" in answer.degraded


def test_an_answer_that_was_cut_off_says_so():
    model = ScriptedModel(says=["Backups of the ledger run nightly [Source 1]. They are"], is_cut_off=True)
    answer = answerer(model=model).ask(QUESTION)
    assert answer.text.endswith("They are …") and "max_answer_tokens" in answer.degraded


def test_what_the_search_did_without_is_passed_on_and_its_errors_are_raised():
    answering = Answerer(
        search=searching(near(BACKUPS), degraded="searched by words alone: no model"), model=None, settings=Answering()
    )
    looked, _, answer = events(answering, QUESTION)
    assert looked[0].degraded == answer.degraded == "searched by words alone: no model"

    def broken(query):
        raise DatabaseUnavailable("cannot reach PostgreSQL")

    with pytest.raises(DatabaseUnavailable):
        Answerer(search=broken, model=None, settings=Answering()).ask(QUESTION)
    with pytest.raises(ConfigError):
        answering.ask(asking("  "))


def test_a_follow_up_question_is_rewritten_by_the_model_before_the_search():
    model = ScriptedModel(says=["Can ledgerctl restore a single account of a backup?", GOOD])
    search = searching(near(BACKUPS))
    prices = {"scripted-1": 1.0}
    answering = Answerer(
        search=search, model=model, settings=Answering(), prices=lambda name, read, wrote: prices[name] * (read + wrote)
    )
    answer = answering.ask(asking("Can it do so for a single account?", history=HISTORY))
    assert search.queries[0].text == answer.asked == "Can ledgerctl restore a single account of a backup?"
    assert answer.question == "Can it do so for a single account?"
    assert (answer.input_tokens, answer.output_tokens, answer.cost_usd) == (200, 40, 240.0)
    assert "[Source 4]" not in model.asked[0][1].content, "numbers of earlier sources mean nothing now"


@pytest.mark.parametrize(
    "said", [TransientError("slow"), "", "I\ncannot\nhelp", "Elephants paint purple invoices daily"]
)
def test_a_model_that_rewrites_badly_is_replaced_by_words_of_the_conversation(said):
    search = searching(near(BACKUPS))
    answering = Answerer(search=search, model=ScriptedModel(says=[said, GOOD]), settings=Answering())
    answer = answering.ask(asking("Can it do so for a single account?", history=HISTORY))
    assert search.queries[0].text == "Can it do so for a single account? (ledgerctl restore backup)"
    assert answer.status == "answered"


def test_a_question_that_stands_alone_costs_no_call():
    model = ScriptedModel(says=[GOOD])
    answerer(model=model).ask(asking(QUESTION.query.text, history=()))
    assert len(model.asked) == 1


@settings(max_examples=60, deadline=None)
@given(
    said=st.lists(
        st.sampled_from(["[Source 1]", "[9]", "Backups run.", "UNKNOWN", "FOLLOW-UPS:", "```", "\n", " ", "["])
        | st.text(max_size=6), max_size=15,
    ).map("".join),
    chars=st.integers(1, 9),
)  # fmt: skip
def test_whatever_a_model_writes_the_answer_is_whole(said, chars):
    at_once = answerer(model=ScriptedModel(says=[said], piece_chars=100_000)).ask(QUESTION)
    _, streamed, answer = events(answerer(model=ScriptedModel(says=[said], piece_chars=chars)), QUESTION)
    assert answer == at_once
    assert (
        cited_in(answer.text) == [source.number for source in answer.sources] == list(range(1, len(answer.sources) + 1))
    )
    assert set(cited_in(streamed)) <= {1, 2}
    assert answer.text.strip() and 0 <= answer.confidence <= 1
