"""Tests that take many minutes: run by those who set RAG_TEST_LONG, never by default."""

from __future__ import annotations

import os

import pytest

long = pytest.mark.skipif(not os.environ.get("RAG_TEST_LONG"), reason="takes many minutes: set RAG_TEST_LONG=1")
