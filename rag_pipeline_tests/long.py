"""Tests that take many minutes: run by those who set RAG_TEST_LONG, never by default."""

from __future__ import annotations

import faulthandler
import os

import pytest

_ASKED_FOR = bool(os.environ.get("RAG_TEST_LONG"))

long = pytest.mark.skipif(not _ASKED_FOR, reason="takes many minutes: set RAG_TEST_LONG=1")


def pytest_runtest_setup() -> None:
    """The limit after which a test is taken to hang (`faulthandler_timeout`) is not for these."""
    if _ASKED_FOR:
        faulthandler.cancel_dump_traceback_later()
