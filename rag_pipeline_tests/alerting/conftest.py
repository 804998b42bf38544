from __future__ import annotations

from collections.abc import Iterator

import pytest

from rag_pipeline_tests.alerting.receivers import Mails, Posts, http_receiver, smtp_receiver


@pytest.fixture
def posts() -> Iterator[Posts]:
    """Who takes webhooks and Slack's messages."""
    with http_receiver() as receiver:
        yield receiver


@pytest.fixture
def mails() -> Iterator[Mails]:
    """Who takes mail."""
    with smtp_receiver() as receiver:
        yield receiver
