"""Answers: how they stream, where their citations lead, and how one goes on."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from rag_pipeline_tests.serving.page.conftest import Tab
from rag_pipeline_tests.serving.page.stub_service import CODE, PROSE, QUERY_ID, TEXT, answer, code_hit, hit, source

pytestmark = pytest.mark.slow
QUESTION = "how often is a delivery tried again?"


def test_an_answer_is_seen_while_it_is_written_and_then_as_it_is_sent_at_the_end(tab: Tab):
    held = tab.gate(QUESTION)
    tab.page.get_by_role("searchbox").fill(QUESTION)
    tab.page.get_by_role("searchbox").press("Enter")
    written = tab.page.locator(".written")
    expect(written).to_contain_text("A delivery that failed")
    expect(tab.page.locator(".state")).to_contain_text("Writing")
    expect(tab.page.locator(".turn")).to_have_attribute("aria-busy", "true")
    assert "rejected/" not in written.inner_text()
    held.set()
    expect(written.locator("li")).to_have_count(2)
    expect(written.locator("strong")).to_have_text("transient")
    expect(written.locator("li code").first).to_have_text("Inbox.requeue")
    expect(written.locator("button.cite")).to_have_text(["1", "1", "2", "1"])
    expect(tab.page.locator(".verdict")).to_have_text("Well supported")
    expect(tab.page.locator(".notes")).to_contain_text(
        "claude-haiku · 1,834 tokens read, 121 written · $0.00244 · 1.9 s"
    )
    expect(tab.page.get_by_role("status")).to_have_text("Answer ready. Well supported. 2 sources.")
    assert tab.stub.asked("/v1/ask") == [{"question": QUESTION}]


def test_the_answer_at_the_end_replaces_what_was_streamed(tab: Tab):
    final = answer(text="Twice \\_at most\\_ [Source 1].", sources=answer()["sources"][:1])
    tab.stub.events = [
        ("looked", {"asked": QUESTION, "hits": []}),
        ("text", {"text": "Thrice [Source 7]."}),
        ("answer", final),
    ]
    tab.ask(QUESTION)
    expect(tab.page.locator(".written")).to_have_text("Twice _at most_ 1.")


def test_a_citation_leads_to_its_source_which_opens_the_exact_lines(tab: Tab):
    tab.ask(QUESTION)
    tab.page.get_by_role("button", name="Source 2: warehouse/inbox/requeue.py").click()
    cited = tab.page.locator(".sources li").nth(1)
    expect(cited).to_be_focused()
    expect(cited).to_be_in_viewport()
    link = cited.get_by_role("link", name="warehouse/inbox/requeue.py")
    expect(link).to_have_attribute(
        "href", "https://github.com/acme/warehouse/blob/4f1c2aa/warehouse/inbox/requeue.py#L41-L46"
    )
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(cited).to_contain_text(":41-46")
    expect(cited).to_contain_text("supports it in part")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"confidence": 0.5}, "Partly supported"),
        ({"confidence": 0.1}, "Thinly supported"),
        ({"status": "unsupported"}, "Not supported by the sources"),
        (
            {"status": "unknown", "text": "The index holds nothing about this.", "sources": [], "model": ""},
            "Not in the index",
        ),
    ],
)
def test_how_far_an_answer_is_to_be_trusted_is_said_in_words(tab: Tab, given, words):
    tab.stub.answer = answer(**given)
    tab.ask(QUESTION)
    expect(tab.page.locator(".verdict")).to_have_text(words)
    expect(tab.page.locator(".notes")).not_to_contain_text("Made of quotes")


def test_small_talk_is_not_judged(tab: Tab):
    tab.stub.answer = answer(status="small_talk", text="You are welcome.", sources=[], follow_ups=[])
    tab.ask("thank you")
    expect(tab.page.locator(".written")).to_have_text("You are welcome.")
    expect(tab.page.locator(".verdict")).to_have_count(0)


def test_what_was_done_without_and_left_out_is_told(tab: Tab):
    tab.stub.answer = answer(
        degraded="the model did not answer in time", removed_citations=2, asked="retries of deliveries"
    )
    tab.ask(QUESTION)
    for words in (
        "Note: the model did not answer in time", "2 citations that pointed to nothing were taken out",
        "Looked up: retries of deliveries",
    ):  # fmt: skip
        expect(tab.page.locator(".notes")).to_contain_text(words)


def test_an_answer_of_quotes_shows_each_with_its_source(tab: Tab):
    sources = [source(1, hit(1), quote=PROSE), source(2, code_hit(), quote=CODE)]
    tab.stub.answer = answer(model="", text=f"{PROSE} [Source 1]\n\n```\n{CODE}\n```\n[Source 2]", sources=sources)
    tab.ask(QUESTION)
    quotes = tab.page.locator(".written blockquote")
    expect(quotes).to_have_count(2)
    expect(quotes.nth(1)).to_contain_text("self._queue.put(delivery")
    expect(quotes.nth(1).locator("pre")).to_have_text(CODE)
    expect(quotes.nth(0)).to_contain_text("The retry budget says how often; it is counted")
    expect(tab.page.locator(".verdict")).to_have_text("Probably answers this")
    expect(tab.page.locator(".notes")).to_contain_text("no language model wrote it")


def test_a_further_question_takes_the_conversation_along(tab: Tab):
    tab.ask(QUESTION)
    tab.page.get_by_role("button", name="How long is the pause?").click()
    expect(tab.page.locator(".turn")).to_have_count(2)
    expect(tab.page.get_by_role("heading", name="How long is the pause?")).to_be_focused()
    expect(tab.page.locator(".turn .after")).to_have_count(2)
    assert tab.stub.asked("/v1/ask")[1] == {
        "question": "How long is the pause?",
        "history": [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": TEXT}],
    }
    tab.page.get_by_label("Ask further about this answer").fill("And then?")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".turn .after")).to_have_count(3)
    assert len(tab.stub.asked("/v1/ask")[2]["history"]) == 4
    tab.ask("something else")
    assert "history" not in tab.stub.asked("/v1/ask")[3]


def test_filters_hold_for_the_answer_too(tab: Tab):
    tab.page.get_by_role("combobox", name="Source").select_option("docs")
    tab.ask(QUESTION)
    assert tab.stub.asked("/v1/ask") == [{"question": QUESTION, "source_type": "docs"}]


def test_back_shows_an_answer_again_without_asking(tab: Tab):
    tab.ask(QUESTION)
    tab.page.get_by_role("searchbox").fill("another")
    expect(tab.page.locator("#answer")).to_be_hidden()
    tab.page.go_back()
    expect(tab.page.locator(".verdict")).to_be_visible()
    assert len(tab.stub.asked("/v1/ask")) == 1


def test_a_link_to_an_answer_asks_only_when_one_wants_it(tab: Tab):
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.ask(QUESTION)
    tab.page.locator("#answer").get_by_role("button", name="Copy link").click()
    expect(tab.page.get_by_role("status")).to_have_text("Copied")
    link = tab.page.evaluate("navigator.clipboard.readText()")
    assert link == tab.page.url
    tab.open(link.removeprefix(tab.url))
    expect(tab.page.locator(".hit")).to_have_count(3)
    assert len(tab.stub.asked("/v1/ask")) == 1
    tab.page.get_by_role("button", name="Ask for it").click()
    expect(tab.page.locator(".verdict")).to_be_visible()
    assert len(tab.stub.asked("/v1/ask")) == 2


def test_what_one_thinks_of_an_answer_is_sent_with_a_reason_if_there_is_one(tab: Tab):
    tab.ask(QUESTION)
    group = tab.page.get_by_role("group", name="Was this answer helpful?")
    with tab.page.expect_response("**/v1/feedback"):
        group.get_by_role("button", name="No").click()
    expect(group.get_by_role("button", name="No")).to_have_attribute("aria-pressed", "true")
    group.get_by_label("Why? (optional)").fill("it is five times")
    with tab.page.expect_response("**/v1/feedback"):
        group.get_by_role("button", name="Send").click()
    expect(group).to_contain_text("Thank you")
    rated = {"query_id": QUERY_ID, "helpful": False}
    assert tab.stub.asked("/v1/feedback") == [rated, rated | {"reason": "it is five times"}]


def test_where_questions_are_not_kept_nobody_is_asked_what_they_think(tab: Tab):
    tab.stub.answer = answer(query_id=None)
    tab.ask(QUESTION)
    expect(tab.page.get_by_role("group", name="Was this answer helpful?")).to_have_count(0)


def test_escape_stops_an_answer_and_keeps_what_is_there(tab: Tab):
    tab.gate(QUESTION)
    tab.page.get_by_role("searchbox").fill(QUESTION)
    tab.page.get_by_role("searchbox").press("Enter")
    expect(tab.page.locator(".written")).to_contain_text("A delivery")
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator(".state")).to_contain_text("Stopped.")
    expect(tab.page.locator(".written")).to_contain_text("A delivery")
    expect(tab.page.get_by_role("searchbox")).to_have_value(QUESTION)
    tab.stub.gates.pop(QUESTION).set()
    tab.page.get_by_role("button", name="Ask again").click()
    expect(tab.page.locator(".verdict")).to_be_visible()
    expect(tab.page.locator(".turn")).to_have_count(1)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([("text", {"text": "Half an ans"})], "The answer broke off before its end."),
        ([("error", {"error": {"code": "timeout", "message": "the model was too slow"}})], "The model was too slow."),
    ],
)
def test_an_answer_that_fails_half_way_can_be_asked_for_again(tab: Tab, events, words):
    tab.stub.events = events
    tab.page.get_by_role("searchbox").fill(QUESTION)
    tab.page.get_by_role("searchbox").press("Enter")
    expect(tab.page.locator(".state")).to_contain_text(words)
    tab.stub.events = None
    tab.page.get_by_role("button", name="Try again").click()
    expect(tab.page.locator(".verdict")).to_be_visible()
    expect(tab.page.locator(".turn")).to_have_count(1)
