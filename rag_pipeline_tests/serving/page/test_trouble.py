"""When the service refuses, is away, or holds texts that mean harm."""

from __future__ import annotations

import pytest
from playwright.sync_api import Error, expect

from rag_pipeline_tests.serving.page.conftest import Tab
from rag_pipeline_tests.serving.page.stub_service import answer, hit, source

pytestmark = pytest.mark.slow
EVIL = '<img src="/x" onerror="window.hurt=1"><script>window.hurt=1</script>"\'</textarea>\u202e'
KEY = "rag_0123_secret"


def test_a_key_is_asked_for_used_and_kept_in_this_tab_alone(tab: Tab):
    tab.stub.key = KEY
    tab.page.reload()
    dialog = tab.page.get_by_role("dialog", name="Key of the service")
    expect(dialog).to_contain_text("The service answers only those who have a key.")
    dialog.get_by_label("Key", exact=True).fill("rag_wrong")
    dialog.get_by_role("button", name="Use this key").click()
    expect(dialog).to_contain_text("The service did not accept this key.")
    dialog.get_by_label("Key", exact=True).fill(KEY)
    dialog.get_by_role("button", name="Use this key").click()
    expect(tab.page.locator("#overview tbody tr")).to_have_count(4)
    tab.search("retry")
    tab.ask("why?")
    assert tab.page.evaluate("Object.values(sessionStorage)") == [KEY]
    assert tab.page.evaluate("document.cookie + JSON.stringify(localStorage)") == "{}"
    assert KEY not in tab.page.url
    tab.page.reload()
    expect(tab.page.locator(".hit")).to_have_count(3)
    tab.page.get_by_role("button", name="Key of the service, set").click()
    tab.page.get_by_role("button", name="Forget it").click()
    expect(dialog).to_be_visible()
    assert tab.page.evaluate("sessionStorage.length") == 0


def test_a_key_that_is_not_at_hand_can_be_entered_later(tab: Tab):
    tab.stub.key = KEY
    tab.page.get_by_role("searchbox").fill("retry")
    tab.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    tab.page.locator("#notice").get_by_role("button", name="Enter a key").click()
    tab.page.get_by_role("dialog").get_by_label("Key", exact=True).fill(KEY)
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".hit")).to_have_count(3)


def test_too_many_requests_are_told_and_tried_again_when_the_pause_is_over(tab: Tab):
    tab.stop_the_clock()
    tab.stub.failures["/v1/search"] = [(429, {"Retry-After": "17"})]
    tab.page.get_by_role("searchbox").fill("retry")
    tab.page.clock.run_for(500)
    notice = tab.page.locator("#notice")
    expect(notice).to_contain_text("Too many requests. Wait 17 s.")
    tab.page.clock.run_for(10_000)
    expect(notice.get_by_role("button")).to_have_text("Try again (7)")
    assert len(tab.stub.asked("/v1/search")) == 1
    tab.page.clock.run_for(7_500)
    expect(tab.page.locator(".hit")).to_have_count(3)
    expect(notice).to_be_empty()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (503, "The service is not available at the moment."), (504, "It took too long."),
        (422, "The service refused this (422)."), (500, "The service refused this (500)."),
    ],
)  # fmt: skip
def test_a_refusal_says_what_the_service_said_and_can_be_tried_again(tab: Tab, status, words):
    tab.stub.failures["/v1/search"] = [(status, {})]
    tab.page.get_by_role("searchbox").fill("retry")
    notice = tab.page.locator("#notice")
    expect(notice).to_contain_text(words)
    expect(notice).to_contain_text(f"Told to fail with {status}: <b>come back</b>")
    expect(tab.page.get_by_role("status")).to_contain_text(words)
    notice.get_by_role("button", name="Try again").click()
    expect(tab.page.locator(".hit")).to_have_count(3)


def test_without_a_network_it_says_so_and_goes_on_when_there_is_one(tab: Tab):
    tab.context.set_offline(True)
    tab.page.get_by_role("searchbox").fill("retry")
    expect(tab.page.locator("#notice")).to_contain_text("You are offline.")
    tab.context.set_offline(False)
    expect(tab.page.locator(".hit")).to_have_count(3)


def test_a_question_that_is_refused_says_so_in_its_place(tab: Tab):
    tab.stub.failures["/v1/ask"] = [(429, {"Retry-After": "30"})]
    tab.page.get_by_role("searchbox").fill("retry")
    tab.page.get_by_role("searchbox").press("Enter")
    expect(tab.page.locator(".turn .notice")).to_contain_text("Too many requests. Wait 30 s.")
    expect(tab.page.locator(".hit")).to_have_count(3)
    tab.page.locator(".turn .notice").get_by_role("button").click()
    expect(tab.page.locator(".verdict")).to_be_visible()


def evil_hit() -> dict[str, object]:
    """A hit that holds markup in every field, and addresses that are not for links."""
    texts = ("title", "location", "repository", "source_type", "language", "chunk_id", "updated_at")
    spans = [[0, 4], [2, 9], [-3, 1], [5], "x", [3, 1e9]]
    return hit(1, text=EVIL + "W" * 4000 + EVIL, words=()) | {
        **dict.fromkeys(texts, EVIL), "url": "javascript:window.hurt=1", "heading_path": [EVIL],
        "matched_terms": [EVIL], "legs": [{"leg": EVIL, "rank": EVIL, "score": EVIL}], "highlights": spans,
    }  # fmt: skip


def test_markup_in_any_field_is_shown_as_text(tab_with):
    tab = tab_with(viewport={"width": 360, "height": 740})
    tab.stub.hits = lambda q: [evil_hit()]
    tab.stub.degraded = EVIL
    fields = ("repository", "source_type", "documents", "newest_change", "newest_indexed")
    tab.stub.sources = [dict.fromkeys(fields, EVIL)]
    cited = source(1, evil_hit(), quote=EVIL)
    tab.stub.answer = answer(
        text=f"{EVIL} [Source 1] [Source 99]\n\n```{EVIL}\n{EVIL}\n```\n- **{EVIL}**", sources=[cited],
        follow_ups=[EVIL], degraded=EVIL, asked=EVIL, model=EVIL,
    )  # fmt: skip
    tab.open()
    expect(tab.page.locator("#overview")).to_contain_text("<img")
    tab.ask(EVIL.removesuffix("\u202e"))
    tab.page.get_by_role("button", name="Why this?").click()
    expect(tab.page.locator(".hit h3")).to_contain_text("<img")
    expect(tab.page.locator(".written")).to_contain_text("[Source 99]")
    expect(tab.page.locator(".sources")).to_contain_text("<script>")
    assert tab.page.locator("img, main script, iframe").count() == 0
    assert tab.page.locator("main a").count() == 0
    assert tab.page.evaluate("window.hurt") is None
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://example.org/a b#L1-L2", "https://example.org/a%20b#L1-L2"),
        ("http://localhost:8000/x", "http://localhost:8000/x"), ("javascript:alert(1)", None),
        (" \tjava\nscript:alert(1)", None), ("data:text/html,<b>", None), ("//example.org", None),
        ("file:///etc/passwd", None), ("https://github.com@example.org/", None), ("/docs/a.md:1-2", None),
        ("", None), (None, None),
    ],
)  # fmt: skip
def test_only_plain_addresses_of_the_web_become_links(tab: Tab, address, expected):
    found = tab.page.evaluate("address => import('./static/text.js').then(text => text.safeAddress(address))", address)
    assert found == expected


def test_text_cannot_become_markup_in_this_page(tab: Tab):
    """That the browser itself refuses, should somebody write such code one day; and that the tests would see it."""
    with pytest.raises(Error, match="TrustedHTML"):
        tab.page.evaluate("document.body.innerHTML = '<b>bold</b>'")
    assert any("TrustedHTML" in problem for problem in tab.problems)
    tab.problems.clear()


def test_every_way_to_cut_a_stream_gives_the_same_events(tab: Tab):
    stream = (
        ': hi\r\n\r\nevent: text\r\ndata: {"text":\r\ndata: "Grüße 🚀"}\r\n\r\n'
        "event:answer\ndata:last\n\ndata: unfinished"
    )
    found = tab.page.evaluate(
        """async (text) => {
        const { events } = await import("./static/sse.js");
        const bytes = new TextEncoder().encode(text);
        const seen = new Set();
        for (let size = 1; size <= bytes.length; size += 1) {
          const body = new ReadableStream({ start(to) {
            for (let at = 0; at < bytes.length; at += size) to.enqueue(bytes.slice(at, at + size));
            to.close(); } });
          const found = [];
          for await (const event of events(body)) found.push(event);
          seen.add(JSON.stringify(found));
        }
        return [...seen]; }""",
        stream,
    )
    assert found == [
        '[{"event":"text","data":"{\\"text\\":\\n\\"Grüße 🚀\\"}"},{"event":"answer","data":"last"}]',
    ]
