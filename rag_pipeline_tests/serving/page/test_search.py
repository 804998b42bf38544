"""Results as one types: what is shown, when, and what is remembered."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from rag_pipeline_tests.serving.page.conftest import Tab
from rag_pipeline_tests.serving.page.stub_service import code_hit, hit

pytestmark = pytest.mark.slow


def test_typing_finds_and_shows_where_each_hit_stands(tab: Tab):
    tab.search("retry budget")
    first = tab.page.locator(".hit").first
    expect(tab.page.locator(".hit")).to_have_count(3)
    expect(first.get_by_role("link", name="Operations")).to_have_attribute(
        "href", "https://github.com/acme/warehouse/blob/4f1c2aa/docs/operations.md#L20-L26"
    )
    expect(first).to_contain_text("docs/operations.md:20-26")
    expect(first.locator("mark")).to_have_text(["retry", "budget"])
    expect(tab.page.locator("#found")).to_have_text("3 results in 12 ms")
    assert tab.stub.asked("/v1/search")[-1] == {"q": "retry budget", "k": "10"}


def test_marks_stand_right_after_characters_outside_the_basic_plane(tab: Tab):
    tab.stub.hits = lambda q: [code_hit(1)]
    tab.search("retry budget")
    marks = tab.page.locator(".hit mark")
    expect(marks).to_have_text(["retry", "budget", "budget", "budget", "budget"])
    expect(tab.page.locator(".snippet")).to_contain_text("🚀 the retry budget bounds it")


def test_a_search_waits_until_one_stops_typing(tab: Tab):
    tab.stop_the_clock()
    tab.page.get_by_role("searchbox").press_sequentially("retry budget")
    tab.page.clock.run_for(100)
    assert tab.stub.asked("/v1/search") == []
    tab.page.clock.run_for(100)
    expect(tab.page.locator(".hit")).to_have_count(3)
    assert [asked["q"] for asked in tab.stub.asked("/v1/search")] == ["retry budget"]


def test_an_answer_that_comes_too_late_is_not_shown(tab: Tab):
    tab.stub.hits = lambda q: [hit(1, title=f"about {q}")]
    held = tab.gate("slow")
    box = tab.page.get_by_role("searchbox")
    with tab.page.expect_request(lambda asked: "q=slow" in asked.url):
        box.fill("slow")
    while not tab.stub.asked("/v1/search"):  # the browser may still drop what it has not sent
        tab.page.wait_for_timeout(10)
    box.fill("fast")
    expect(tab.page.locator(".hit h3")).to_have_text("about fast")
    held.set()
    tab.search("fast again")
    expect(tab.page.locator(".hit h3")).to_have_text("about fast again")
    assert [asked["q"] for asked in tab.stub.asked("/v1/search")] == ["slow", "fast", "fast again"]


def test_the_list_is_never_empty_between_two_results(tab: Tab):
    tab.search("retry")
    tab.page.evaluate(
        """() => { const hits = document.getElementById("hits"); window.emptied = 0;
        const count = () => { window.emptied += hits.childElementCount === 0; };
        new MutationObserver(count).observe(hits, {childList: true}); }"""
    )
    tab.stub.hits = lambda q: [hit(1, title=f"about {q}")]
    tab.page.get_by_role("searchbox").fill("retry budget")
    expect(tab.page.locator(".hit h3")).to_have_text(["about retry budget"])
    assert tab.page.evaluate("window.emptied") == 0


def test_the_same_hits_again_leave_what_was_unfolded(tab: Tab):
    tab.search("retry")
    tab.page.get_by_role("button", name="Why this?").first.click()
    with tab.page.expect_response(lambda answer: "q=retry+budget" in answer.url):
        tab.page.get_by_role("searchbox").fill("retry budget")
    expect(tab.page.get_by_role("button", name="Why this?").first).to_have_attribute("aria-expanded", "true")


def test_filters_narrow_the_search_and_stand_in_the_address(tab: Tab):
    tab.search("retry")
    tab.page.get_by_role("combobox", name="Source").select_option(label="issues")
    expect(tab.page).to_have_url(tab.url + "/?q=retry&source_type=github_issue")
    # The address changes as one chooses, and the service is asked a moment later.
    with tab.page.expect_response(lambda answer: "/v1/search?" in answer.url and "repository=" in answer.url):
        tab.page.get_by_role("combobox", name="Repository").select_option("acme/handbook")
    expect(tab.page).to_have_url(tab.url + "/?q=retry&source_type=github_issue&repository=acme%2Fhandbook")
    expected = {"q": "retry", "k": "10", "source_type": "github_issue", "repository": "acme/handbook"}
    assert tab.stub.asked("/v1/search")[-1] == expected

    tab.page.go_back()
    expect(tab.page.get_by_role("combobox", name="Repository")).to_have_value("")
    tab.page.go_back()
    expect(tab.page.get_by_role("combobox", name="Source")).to_have_value("")
    expect(tab.page.get_by_role("searchbox")).to_have_value("retry")
    tab.page.go_back()
    expect(tab.page.get_by_role("searchbox")).to_have_value("")
    expect(tab.page.locator(".hit")).to_have_count(0)
    tab.page.go_forward()
    expect(tab.page.locator(".hit")).to_have_count(3)


def test_an_address_that_was_shared_shows_the_same(tab: Tab):
    tab.open("/?q=retry+budget&repository=acme%2Fgone")
    expect(tab.page.get_by_role("searchbox")).to_have_value("retry budget")
    expect(tab.page.get_by_role("combobox", name="Repository")).to_have_value("acme/gone")
    expect(tab.page.locator(".hit")).to_have_count(3)
    assert tab.stub.asked("/v1/search") == [{"q": "retry budget", "k": "10", "repository": "acme/gone"}]
    tab.page.get_by_role("button", name="Clear filters").click()
    expect(tab.page).to_have_url(tab.url + "/?q=retry+budget")


def test_each_leg_is_explained_on_demand(tab: Tab):
    tab.search("retry")
    why = tab.page.locator(".hit").nth(1).locator(".why")
    expect(why).to_be_hidden()
    tab.page.get_by_role("button", name="Why this?").nth(1).click()
    expect(why.get_by_role("row")).to_have_text(
        ["LegRankScore", "Words (BM25)#111.200", "Meaning (cosine)not among its best0.402"]
    )
    expect(why).to_contain_text("Found by its words.")
    expect(why.locator("p code").first).to_have_text("budget")
    tab.page.get_by_role("button", name="Why this?").nth(1).click()
    expect(why).to_be_hidden()


def test_a_long_text_is_cut_around_its_first_mark_and_unfolds(tab: Tab):
    long = "nothing to see here\n" * 40 + "the retry is here\n" + "and nothing more\n" * 40
    tab.stub.hits = lambda q: [hit(1, text=long, words=("retry",)), hit(2)]
    tab.search("retry")
    expect(tab.page.locator("mark").first).to_be_in_viewport()
    whole = tab.page.get_by_role("button", name="Show all")
    expect(whole).to_have_count(1)
    whole.click()
    expect(tab.page.get_by_role("button", name="Show less")).to_have_attribute("aria-expanded", "true")


def test_wide_lines_of_prose_flow_and_code_keeps_its_lines(tab: Tab):
    tab.stub.hits = lambda q: [hit(1), code_hit(2)]
    tab.search("retry")
    prose, code = (found.inner_text() for found in tab.page.locator(".snippet").all())
    assert "The retry budget says how often; it is counted per delivery, not per run. What" in prose
    assert not prose.startswith("##"), "the heading stands above it already"
    assert code.count("\n") == 5


def test_prose_is_shown_without_marks_of_markdown_that_say_nothing_to_a_reader(tab: Tab):
    wide = "A retry is made by the inbox itself, which counts how often it has been"
    text = f"### `[retry]`\n\n{wide}\n**told** to. `a ** b ** c` and 2 ** 3 stay.\n\n```toml\nretry = **1**\n```"
    text += "\n**Last.**"
    tab.stub.hits = lambda q: [hit(1, text=text, words=("retry", "told"), heading_path=["Operations", "[retry]"])]
    tab.search("retry")
    expect(tab.page.locator(".snippet")).to_have_text(
        f"{wide} told to. `a ** b ** c` and 2 ** 3 stay.\n\nretry = **1**\nLast.", use_inner_text=True
    )
    expect(tab.page.locator("mark")).to_have_text(["retry", "told", "retry"])


def test_a_hit_without_a_web_address_shows_where_it_is_and_unfolds(tab: Tab):
    tab.stub.hits = lambda q: [
        hit(1, url="/home/ada/notes.md:3-4", location="/home/ada/notes.md:3-4", title="notes.md")
    ]
    tab.search("retry")
    expect(tab.page.locator(".hit a")).to_have_count(0)
    expect(tab.page.locator(".hit h3")).to_have_text("notes.md:20-26")
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.page.get_by_role("button", name="Copy place").click()
    expect(tab.page.get_by_role("status")).to_have_text("Copied")
    assert tab.page.evaluate("navigator.clipboard.readText()") == "/home/ada/notes.md:3-4"


def test_more_results_are_had_on_demand(tab: Tab):
    tab.stub.hits = lambda q: [hit(rank) for rank in range(1, 16)]
    tab.search("retry")
    expect(tab.page.locator(".hit")).to_have_count(10)
    tab.page.get_by_role("button", name="More results").click()
    expect(tab.page.locator(".hit")).to_have_count(15)
    expect(tab.page.locator(".hit .open").nth(10)).to_be_focused()
    expect(tab.page.get_by_role("button", name="More results")).to_be_hidden()


def test_nothing_found_says_so_and_offers_to_look_everywhere(tab: Tab):
    tab.stub.hits = lambda q: []
    tab.page.get_by_role("combobox", name="Source").select_option("docs")
    tab.page.get_by_role("searchbox").fill("zebra")
    expect(tab.page.locator("#notice")).to_contain_text("Nothing found for zebra.")
    tab.page.get_by_role("button", name="Search everywhere").click()
    expect(tab.page).to_have_url(tab.url + "/?q=zebra")


def test_a_search_that_had_to_do_without_something_says_so(tab: Tab):
    tab.stub.degraded = "the vectors could not be asked: words alone"
    tab.search("retry")
    expect(tab.page.locator("#notice")).to_have_text("Note: the vectors could not be asked: words alone")


def test_an_empty_page_shows_what_is_indexed_and_leads_into_it(tab: Tab):
    expect(tab.page.locator("#overview tbody tr")).to_have_count(4)
    expect(tab.page.locator("#overview tbody tr").nth(1)).to_contain_text("1,871")
    tab.page.get_by_role("button", name="Search in acme/handbook docs").click()
    expect(tab.page).to_have_url(tab.url + "/?source_type=docs&repository=acme%2Fhandbook")
    expect(tab.page.get_by_role("searchbox")).to_be_focused()


def test_what_one_thinks_of_a_hit_is_sent_with_its_search(tab: Tab):
    tab.search("retry")
    tab.page.get_by_role("button", name="Why this?").nth(1).click()
    with tab.page.expect_response("**/v1/feedback"):
        tab.page.get_by_role("group", name="A good result?").get_by_role("button", name="No").click()
    assert tab.stub.asked("/v1/feedback") == [
        {"query_id": "0192f5a4-7c1e-7e10-9d5b-0a4b5f1c2d3e", "helpful": False, "chunk_id": code_hit(2)["chunk_id"]}
    ]
