"""The page over the service itself and a small index: that both speak of the same things."""

from __future__ import annotations

import importlib.util

import pytest
from playwright.sync_api import Browser, expect

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("rag_pipeline.serving.routes.search") is None, reason="the service has no search"
    ),
]


def test_a_question_is_searched_asked_and_rated(browser: Browser, address: str):
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(30_000)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda said: said.type == "error" and problems.append(said.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(address)
    expect(page.locator("#overview tbody tr")).to_have_count(1)
    page.get_by_role("searchbox").fill("make rollback")
    expect(page.locator(".hit mark").first).to_be_visible()
    page.get_by_role("button", name="Why this?").first.click()
    expect(page.locator(".why").first).to_contain_text("Words (BM25)")
    page.get_by_role("searchbox").press("Enter")
    expect(page.locator(".written button.cite").first).to_be_visible()
    page.locator(".written button.cite").first.click()
    expect(page.locator(".sources li").first).to_be_focused()
    for group in ("Was this answer helpful?", "A good result?"):
        with page.expect_response("**/v1/feedback") as rated:
            page.get_by_role("group", name=group).get_by_role("button", name="Yes").click()
        assert rated.value.status == 201
    context.close()
    assert problems == []
