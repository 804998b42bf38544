"""For everybody: by keyboard alone, on a phone, in both themes, and by ear."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from playwright.sync_api import expect

from rag_pipeline_tests.serving.page.conftest import Tab

pytestmark = pytest.mark.slow
QUESTION = "how often is a delivery tried again?"
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
# Contrast as WCAG 2 defines it, of every visible text against the nearest ground that is painted behind it.
CONTRASTS = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const linear = (c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
    const [r, g, b] = parts(colour).slice(0, 3).map((c) => linear(c / 255));
    return .2126 * r + .7152 * g + .0722 * b; };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if ((parts(colour)[3] ?? 1) === 1) return colour; }
    return "rgb(255, 255, 255)"; };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !node.checkVisibility() || node.closest("script, noscript, .unseen")) continue;
    const [a, b] = [light(getComputedStyle(node).color), light(ground(node))];
    found.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), walk.currentNode.data.slice(0, 40), node.className]); }
  return found; }"""


OUTLINE = """() => {
  const node = document.activeElement;
  return [node.outerHTML.slice(0, 80), getComputedStyle(node).outlineStyle]; }"""
LOW_BUTTONS = """() => [...document.querySelectorAll("button")]
  .filter((b) => b.checkVisibility() && b.getBoundingClientRect().height < 23.5).map((b) => b.outerHTML)"""


def everything_shown(tab: Tab) -> None:
    """An answer, hits, and an explanation, on one page."""
    tab.open()
    tab.ask(QUESTION)
    expect(tab.page.locator(".hit")).to_have_count(3)
    tab.page.get_by_role("button", name="Why this?").first.click()


def test_all_of_it_works_by_keyboard(tab: Tab):
    keys = tab.page.keyboard
    expect(tab.page.get_by_role("searchbox")).to_be_focused()
    keys.type("retry")
    expect(tab.page.locator(".hit")).to_have_count(3)
    openers = tab.page.locator(".hit .open")
    keys.press("ArrowDown")
    expect(openers.nth(0)).to_be_focused()
    keys.press("j")
    keys.press("ArrowDown")
    keys.press("j")
    expect(openers.nth(2)).to_be_focused()
    keys.press("ArrowUp")
    expect(openers.nth(1)).to_be_focused()
    keys.press("e")
    expect(tab.page.locator(".why").nth(1)).to_be_visible()
    keys.press("k")
    keys.press("k")
    expect(tab.page.get_by_role("searchbox")).to_be_focused()
    keys.press("Tab")
    keys.press("/")
    expect(tab.page.get_by_role("searchbox")).to_be_focused()
    keys.press("Escape")
    expect(tab.page.get_by_role("searchbox")).to_have_value("")
    expect(tab.page.locator(".hit")).to_have_count(0)


def test_enter_opens_a_hit_in_a_tab_of_its_own(tab: Tab):
    tab.context.route("https://github.com/**", lambda route: route.fulfill(body="the lines"))
    tab.search("retry")
    tab.page.keyboard.press("ArrowDown")
    with tab.context.expect_page() as opened:
        tab.page.keyboard.press("Enter")
    opened.value.wait_for_load_state()
    assert opened.value.url.endswith("/docs/operations.md#L20-L26")
    assert opened.value.evaluate("[window.opener, document.referrer]") == [None, ""]


def test_help_tells_the_keys_and_single_letters_can_be_switched_off(tab: Tab):
    tab.search("retry")
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("?")
    dialog = tab.page.get_by_role("dialog", name="Help")
    expect(dialog).to_contain_text("why this result is here")
    dialog.get_by_label("Keys that are single letters and signs work").uncheck()
    tab.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(tab.page.get_by_role("searchbox")).to_have_value("retry")
    tab.page.keyboard.press("?")
    tab.page.keyboard.press("j")
    expect(dialog).to_be_hidden()
    expect(tab.page.locator(".hit .open").first).to_be_focused()
    tab.page.keyboard.press("ArrowDown")
    expect(tab.page.locator(".hit .open").nth(1)).to_be_focused()


def test_letters_in_a_field_are_letters(tab: Tab):
    tab.page.get_by_role("searchbox").press_sequentially("j/k?e")
    expect(tab.page.get_by_role("searchbox")).to_have_value("j/k?e")


def test_focus_is_seen_wherever_it_is(tab: Tab):
    everything_shown(tab)
    tab.page.get_by_role("searchbox").focus()
    unseen = []
    for _ in range(30):
        tab.page.keyboard.press("Tab")
        look = tab.page.evaluate(OUTLINE)
        if not look[0].startswith("<body") and look[1] == "none":
            unseen.append(look)
    assert unseen == []


def test_the_first_stop_leads_past_everything_to_the_results(tab: Tab):
    tab.search("retry")
    tab.page.evaluate("document.activeElement.blur()")
    tab.page.locator(".skip").focus()
    expect(tab.page.locator(".skip")).to_be_in_viewport()
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#results")).to_be_focused()


@pytest.mark.parametrize("address", ["/", "/?q=retry"])
def test_nothing_is_wider_than_a_phone(tab_with, address):
    tab = tab_with(**PHONE)
    tab.open(address)
    if address == "/":
        everything_shown(tab)
    else:
        expect(tab.page.locator(".hit")).to_have_count(3)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360
    narrow = tab.page.evaluate(LOW_BUTTONS)
    assert [button for button in narrow if "cite" not in button] == [], "too small for a finger"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(tab_with, scheme):
    tab = tab_with(color_scheme=scheme)
    everything_shown(tab)
    found = tab.page.evaluate(CONTRASTS)
    assert len(found) > 60
    assert [text for text in found if text[0] < 4.5] == []
    grounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == grounds[scheme]


def test_the_theme_is_chosen_and_remembered(tab_with):
    tab = tab_with(color_scheme="light")
    tab.open()
    tab.page.get_by_role("button", name="Use dark colours").click()
    expect(tab.page.get_by_role("button", name="Use light colours")).to_be_visible()
    tab.page.reload()
    expect(tab.page.get_by_role("button", name="Use light colours")).to_be_visible()
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"


def test_it_has_landmarks_names_and_one_quiet_place_that_speaks(tab: Tab):
    everything_shown(tab)
    for role in ("banner", "main", "search", "navigation"):
        expect(tab.page.get_by_role(role)).to_have_count(1)
    for name in ("Answer", "Results"):
        expect(tab.page.get_by_role("region", name=name)).to_be_visible()
    assert tab.page.locator("[aria-live], [role=status], [role=alert]").count() == 1
    expect(tab.page.get_by_role("searchbox", name="Search, or ask a question")).to_have_count(1)


def test_only_the_last_count_is_spoken(tab: Tab):
    tab.page.evaluate(
        """() => { window.said = []; const live = document.getElementById("live");
        new MutationObserver(() => window.said.push(live.textContent)).observe(live, {childList: true}); }"""
    )
    tab.stop_the_clock()
    for question in ("r", "re", "ret"):
        tab.page.get_by_role("searchbox").fill(question)
        with tab.page.expect_response("**/v1/search*"):
            tab.page.clock.run_for(200)
    expect(tab.page.locator(".hit")).to_have_count(3)
    tab.page.clock.run_for(2_000)
    expect(tab.page.get_by_role("status")).to_have_text("3 results")
    assert tab.page.evaluate("window.said") == ["3 results"]


@pytest.mark.skipif(
    importlib.util.find_spec("axe_playwright_python") is None, reason="axe-playwright-python is not installed"
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("shown", ["empty", "everything", "help", "key"])
def test_axe_has_nothing_to_complain_about(tab_with, scheme, shown):
    from axe_playwright_python.sync_playwright import Axe

    tab = tab_with(color_scheme=scheme)
    tab.open()
    if shown == "everything":
        everything_shown(tab)
    elif shown != "empty":
        tab.page.locator(f"#{shown}-button").click()
    found: list[dict[str, Any]] = Axe().run(tab.page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []


def test_escape_in_another_field_loses_nothing(tab: Tab):
    tab.ask(QUESTION)
    further = tab.page.get_by_label("Ask further about this answer")
    further.fill("And then")
    tab.page.keyboard.press("Escape")
    expect(further).to_have_value("And then")
    expect(tab.page.get_by_role("searchbox")).to_have_value(QUESTION)


def test_focus_is_not_lost_with_the_button_that_had_it(tab: Tab):
    tab.search(QUESTION)  # what fails below is the next search, not this one
    tab.gate(QUESTION)
    tab.page.get_by_role("searchbox").press("Enter")
    tab.page.get_by_role("button", name="Stop").press("Enter")
    expect(tab.page.get_by_role("heading", name=QUESTION)).to_be_focused()
    tab.stub.failures["/v1/search"] = [(503, {})]
    tab.page.get_by_role("searchbox").fill("retry")
    tab.page.locator("#notice").get_by_role("button", name="Try again").press("Enter")
    expect(tab.page.locator(".hit")).to_have_count(3)
    expect(tab.page.get_by_role("searchbox")).to_be_focused()
