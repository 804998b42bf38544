"""The search page in a headless Chromium, over a service with canned data. Without a Chromium these tests are skipped:
`apt install chromium` brings one."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from rag_pipeline_tests.serving.conftest import Served
from rag_pipeline_tests.serving.page.stub_service import StubService, stub_app

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_MS = 30_000


@dataclass
class Tab:
    """The page, and what went wrong in it."""

    page: Page
    context: BrowserContext
    stub: StubService
    url: str
    problems: list[str] = field(default_factory=list)
    """Errors of scripts, violations of the policy, requests to elsewhere: none may be left at the end of a test."""

    def open(self, address: str = "/") -> None:
        """Go there, and wait until the page knows what is indexed."""
        self.page.goto(self.url + address)
        expect(self.page.locator("#overview > *").first).to_be_attached()

    def search(self, question: str) -> None:
        """Type a question, and wait for its hits."""
        self.page.get_by_role("searchbox").fill(question)
        expect(self.page.locator("#found")).to_contain_text("result")

    def ask(self, question: str) -> None:
        """Ask a question, and wait for its answer."""
        self.page.get_by_role("searchbox").fill(question)
        self.page.get_by_role("searchbox").press("Enter")
        expect(self.page.locator(".turn .after")).to_be_visible()

    def gate(self, question: str) -> threading.Event:
        """Hold what this question gets back until the event is set."""
        return self.stub.gates.setdefault(question, threading.Event())

    def stop_the_clock(self) -> None:
        """From now on the page's time goes on only as the test says."""
        self.page.clock.install()
        self.page.clock.pause_at(time.time() + 3600)

    def note(self, message: ConsoleMessage) -> None:
        """Remember an error of the console; that a request was refused is the business of the test."""
        if message.type in {"error", "warning"} and not message.text.startswith("Failed to load resource"):
            self.problems.append(f"{message.type}: {message.text}")


# Not for the whole session: while Playwright runs, no other test of this process can start an event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None:
        pytest.skip(f"no browser for the search page: none of {', '.join(NAMES)} is installed")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, served: Served, stub: StubService, **options: Any) -> Iterator[Tab]:
    """A tab of a browser that nobody has used, and a look at its problems afterwards."""
    served.app = stub_app(stub)
    context = browser.new_context(reduced_motion="reduce", **options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    tab = Tab(page=page, context=context, stub=stub, url=served.url)
    page.on("console", tab.note)
    page.on("pageerror", lambda error: tab.problems.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith(served.url) or tab.problems.append(f"asked {asked.url}"))
    try:
        yield tab
    finally:
        for gate in stub.gates.values():
            gate.set()
        context.close()
    assert tab.problems == []


@pytest.fixture
def stub() -> StubService:
    return StubService()


@pytest.fixture
def tab(browser: Browser, served: Served, stub: StubService) -> Iterator[Tab]:
    with opened(browser, served, stub) as tab:
        tab.open()
        yield tab


@pytest.fixture
def tab_with(browser: Browser, served: Served, stub: StubService) -> Iterator[Callable[..., Tab]]:
    """Makes a tab as one says, not yet on any page."""
    with ExitStack() as open_until_the_end:
        yield lambda **options: open_until_the_end.enter_context(opened(browser, served, stub, **options))
