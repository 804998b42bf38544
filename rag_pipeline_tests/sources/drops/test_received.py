"""Documents that a service receives: the last one stays, the same again is nothing, and the rest is refused."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.errors import ItemError
from rag_pipeline.model import SourceItem, age_of
from rag_pipeline.sources.drops.inbox import Inbox
from rag_pipeline.sources.drops.knowledge import Intake, received_item
from rag_pipeline.sources.drops.parse import parse_drop
from rag_pipeline.sources.drops.received import ReceivedDocuments
from rag_pipeline_tests.sources.drops.places import Place

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
LIMIT = 100_000


@dataclass(kw_only=True)
class Clock:
    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


@dataclass(kw_only=True)
class Service:
    """A service that drops documents into an inbox."""

    inbox: Inbox
    clock: Clock = field(default_factory=Clock)
    documents: ReceivedDocuments = field(init=False)

    def __post_init__(self) -> None:
        self.documents = ReceivedDocuments(self.inbox, clock=self.clock, max_drop_bytes=LIMIT)

    def put(self, content: str | None, *, name: str = "runbook", **more: Any) -> str:
        said = {"deleted": True} if content is None else {"content": content}
        received = self.documents.receive({"id": name, "tenant": "acme", "source_type": "knowledge", **said, **more})
        return received.name if received.is_new else "duplicate"


def items_in(inbox: Inbox, names: Sequence[str], *, now: datetime = NOW) -> list[SourceItem]:
    parsed = [
        parse_drop(n, inbox.read(n, max_bytes=LIMIT), modified_at=now, now=now, tenant="default") for n in names
    ]  # fmt: skip
    return [item for one in parsed if one for item in one.items]


def newest(items: Sequence[SourceItem]) -> SourceItem:
    return sorted(items, key=age_of)[-1]


def waiting(inbox: Inbox) -> list[str]:
    return [file.name for file in inbox.waiting(now=datetime.now(UTC) + timedelta(hours=1), settle_s=0)]


def test_what_is_received_becomes_the_drop_of_the_same_record(place: Place) -> None:
    service = Service(inbox=place.inbox)
    name = service.put("Größe", title="A title", scope="user:ann", updated_at="2020-01-01", metadata={"team": "x"})
    assert place.waiting() == [name]
    (item,) = items_in(place.inbox, [name])
    assert (item.tenant, item.source_type, item.source_id, item.repository) == (
        "acme", "knowledge", "runbook", "inbox",
    )  # fmt: skip
    assert (item.content.decode(), item.title, item.scope, item.metadata["team"]) == (
        "Größe", "A title", "user:ann", "x",
    )  # fmt: skip
    assert item.source_updated_at == datetime(2020, 1, 1, tzinfo=UTC)
    assert item.as_of == item.observed_at == NOW


def test_the_same_again_is_a_duplicate_until_something_else_was_received(place: Place) -> None:
    service = Service(inbox=place.inbox)
    first = service.put("a")
    assert service.put("a") == "duplicate"
    assert Service(inbox=place.inbox).put("a") == "duplicate", "another process knows it, too"
    place.inbox.accept(first, day=date(2024, 5, 1))
    assert service.put("a") == "duplicate", "also when it was taken in"
    second = service.put("b")
    assert service.put("a", name="other") != "duplicate"
    third = service.put("a")
    assert len({first, second, third, "duplicate"}) == 4
    assert [service.put("a"), service.put(None)].count("duplicate") == 1
    assert service.put(None) == "duplicate"
    assert service.put("a") != "duplicate"
    assert service.put("a", title="New") != "duplicate"


def test_a_drop_that_was_rejected_or_removed_is_taken_again(place: Place) -> None:
    service = Service(inbox=place.inbox)
    place.inbox.reject(service.put("a"), reason="whatever")
    again = service.put("a")
    assert again != "duplicate"
    place.inbox.remove(again)
    assert service.put("a") != "duplicate"


def test_documents_of_other_tenants_and_types_are_others(place: Place) -> None:
    service = Service(inbox=place.inbox)
    names = {service.put("a"), service.put("a", tenant="globex"), service.put("a", source_type="message")}
    assert len(names) == 3
    assert "duplicate" not in names


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"id": ""}, "id is empty"),
        ({"id": "a\x00"}, "control characters"),
        ({"source_type": "docs"}, "read from its own source"),
        ({"source_type": "Docs"}, "lower-case"),
        ({"scope": "ann"}, "scope must be"),
        ({"url": "ftp://example.org"}, "url must be"),
        ({"url": "https://a:b@example.org"}, "user name or password"),
        ({"metadata": {"x": float("nan")}}, "NaN"),
        ({"content": 7}, "content must be a string"),
        ({"content": "x" * LIMIT}, "larger than"),
        ({"tenant": " "}, "tenant is empty"),
    ],
)
def test_what_the_pipeline_would_reject_is_refused_and_leaves_nothing(local: Place, record: Any, reason: str) -> None:
    service = Service(inbox=local.inbox)
    with pytest.raises(ItemError, match=reason):
        service.documents.receive({"id": "a", "tenant": "acme", "content": "text"} | record)
    assert local.files == {}


def test_a_repository_whose_name_is_no_folder_is_refused(local: Place) -> None:
    service = Service(inbox=local.inbox)
    with pytest.raises(ItemError, match="repository"):
        service.documents.receive({"id": "a", "tenant": "acme", "content": "text"}, repository="é" * 60)
    assert local.files == {}


def test_no_name_in_the_inbox_tells_whose_document_it_is_or_what_is_in_it(local: Place) -> None:
    Service(inbox=local.inbox).put("zebra words", id="giraffe", tenant="walrus")
    names = " ".join(str(path) for path in Path(local.url).rglob("*"))
    assert not [word for word in ("zebra", "giraffe", "walrus") if word in names]


class Breaking(Inbox):
    """An inbox that cannot be written from some moment on."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.writes_left = 1_000_000

    def _write(self) -> None:
        self.writes_left -= 1
        if self.writes_left < 0:
            raise OSError("no space left")

    def put(self, name: str, content: bytes) -> bool:
        self._write()
        return super().put(name, content)

    def note(self, subject: str, note: str) -> None:
        self._write()
        super().note(subject, note)

    def remove_note(self, subject: str, note: str) -> None:
        self._write()
        super().remove_note(subject, note)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.integers(-3_600, 3_600),  # the clock moves by so many seconds
        st.sampled_from([1_000_000, 0, 1, 2]),  # so many writes until the disk is full
        st.integers(0, 1),  # which of two services
        st.sampled_from(["stays", "accepted"]),
    ),
    min_size=1, max_size=8,
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(operations=OPERATIONS, order=st.randoms(use_true_random=False))
def test_the_last_one_that_was_answered_stays_whatever_fails_and_in_whatever_order_drops_are_read(
    operations: list[tuple[str | None, int, int, int, str]], order: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        inbox = Breaking(folder)
        services = [Service(inbox=inbox), Service(inbox=inbox)]
        taken: list[SourceItem] = []
        expected: set[str | None] = set()
        for content, seconds, writes, which, fate in operations:
            service = services[which]
            service.clock.now += timedelta(seconds=seconds)
            inbox.writes_left = writes
            try:
                service.put(content)
            except OSError:
                # Not answered: it may have come in, or not.
                expected = expected | {content}
            else:
                expected = {content}
            if fate == "accepted":
                for name in waiting(inbox):
                    taken += items_in(inbox, [name], now=NOW + timedelta(days=2))
                    inbox.accept(name, day=date(2024, 5, 1))
        taken += items_in(inbox, waiting(inbox), now=NOW + timedelta(days=2))
        order.shuffle(taken)
        if taken:
            last = newest(taken)
            assert (None if last.deleted else last.content.decode()) in expected
        else:
            assert all(writes < 2 for _, _, writes, _, _ in operations)


def test_a_drop_says_of_itself_when_it_was_received(local: Place) -> None:
    service = Service(inbox=local.inbox)
    name = service.put("a")
    drop = json.loads((Path(local.url) / name).read_text())
    assert drop == {
        "received_at": NOW.isoformat(), "repository": "inbox",
        "document": {"id": "runbook", "tenant": "acme", "source_type": "knowledge", "content": "a"},
    }  # fmt: skip


def test_a_receiver_whose_clock_is_ahead_decides_the_order_and_no_day() -> None:
    intake = Intake(file_name="a.json", received_at=NOW, now=NOW, tenant="acme", repository="inbox")
    said = {"id": "runbook", "content": "a"}
    ahead = [NOW + timedelta(seconds=seconds) for seconds in (1, 2)]
    first, second = (received_item({"received_at": at.isoformat(), "document": said}, intake) for at in ahead)
    assert first.observed_at == second.observed_at == NOW
    assert age_of(first) < age_of(second)


@pytest.mark.parametrize("filling", ["x", "é", '"', "\n"])
def test_a_document_of_the_largest_size_is_taken_and_a_larger_one_refused(local: Place, filling: str) -> None:
    service, taken, refused = Service(inbox=local.inbox), 0, 0
    most = LIMIT // len(json.dumps(filling, ensure_ascii=False).encode()[1:-1])
    for length in range(most - 250, most + 2, 3):
        try:
            name = service.put(filling * length)
        except ItemError:
            refused += 1
            continue
        taken += 1
        assert local.inbox.read(name, max_bytes=LIMIT)
    assert taken
    assert refused
