"""Whatever else comes from outside, mangled: accepted, or refused with a reason and an error that was meant."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.embedding.openai_service import EmbeddingService
from rag_pipeline.errors import ConfigError, ItemError, PermanentError, RagPipelineError, TransientError
from rag_pipeline.evaluation.labelled import read_labelled_set
from rag_pipeline.evaluation.labels import read_labels
from rag_pipeline.lake.schemas import ITEMS, items_of, to_batches
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import SourceItem
from rag_pipeline.settings import Embedding, load_settings
from rag_pipeline.sources.drops.parse import parse_drop
from rag_pipeline.sources.github.deliveries import interpret
from rag_pipeline_tests.embedding.fake_service import MODEL, FakeService, Reply, fake_service
from rag_pipeline_tests.faults.mangling import deep, mangled, slower
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server import webhooks
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.shapes import Site
from rag_pipeline_tests.sources.git.reading import Source

pytestmark = pytest.mark.faults
NOW = datetime(2024, 5, 3, 12, tzinfo=UTC)
_RECORDS = [
    {"id": "a", "title": "A note", "content": "Words.", "updated_at": "2024-05-01T10:00:00Z", "metadata": {"k": 1}},
    {"id": "b", "content": "<p>Words</p>", "content_type": "text/html", "scope": "user:ada", "url": "https://x.y/z"},
    {"id": "c", "deleted": True},
]
_TOML = """\
start_date = "2024-01-01"
[[repositories]]
source = "/srv/code"
name = "code"
include = ["*.md", "src/**"]
[[repositories]]
github = "acme/rocket"
[embedding]
provider = "openai"
model = "m"
batch_texts = 8
[chunking]
max_tokens = 200
[quality]
max_failures = 3
[schedules]
refresh = "5 2 * * *"
[prices]
m = 0.02
[retention]
docs = 90
"""


def _deliveries() -> dict[str, bytes]:
    """One of each kind, as GitHub sends them."""
    forge, site = Forge(), Site(api="https://api.github.com", web="https://github.com")
    rocket = generate(forge, seed=3, issues=2, pulls=2, comments=1, reviews=2, review_comments=2, days=3)
    issue, other = rocket.issues()[:2]
    (pull, *_) = rocket.pulls()
    comment = forge.comment(issue, "It does here. See #2.", author="grace")
    sent = [
        webhooks.thread(site, "opened", issue), webhooks.thread(site, "opened", pull),
        webhooks.issue_comment(site, "created", comment), webhooks.repository_renamed(site, rocket, "engine"),
        *webhooks.transferred(site, other, issue),
    ]  # fmt: skip
    return {f"{d.event}.{n}.json": json.dumps(d.payload).encode() for n, d in enumerate(sent)}


DROPS: dict[str, bytes] = {
    **_deliveries(),
    "one.json": json.dumps(_RECORDS[0]).encode(),
    "many.json": json.dumps(_RECORDS, indent=1).encode(),
    "lines.ndjson": "\n".join(map(json.dumps, _RECORDS)).encode(),
    "page.md": b"---\ntitle: A page\nid: page\nupdated_at: 2024-05-01\ntags: [a, b]\n---\n# A page\n\nWords.\n",
    "page.html": b"<html><head><title>A page</title></head><body><p>Words.</body></html>",
    "wrapped.json": json.dumps(
        {"event": "issues", "delivery": "0a1b", "payload": {"action": "opened", "repository": {"id": 1}}}
    ).encode(),
}  # fmt: skip


@deep
@given(sample=mangled(DROPS))
def test_any_mangled_drop_is_items_and_a_delivery_that_is_understood_or_a_reason(sample: tuple[str, bytes]) -> None:
    name, content = sample
    try:
        parsed = parse_drop(name, content, modified_at=NOW - timedelta(days=1), now=NOW, tenant="acme")
        assert parsed is not None, "a day old, and still thought to be written"
        if parsed.delivery is not None:
            touch = interpret(parsed.delivery.event, parsed.delivery.payload, received_at="2024-05-03T12:00:00Z")
            assert touch.ignored or touch.repository
    except ItemError as error:
        assert str(error)
        return
    if parsed.delivery is None:
        lines = [line for line in content.split(b"\n") if line.strip()]
        assert parsed.items or parsed.bad_lines
        assert len(parsed.items) + len(parsed.bad_lines) <= max(len(lines), content.count(b"{") + 1)
    # What is accepted can be kept.
    for batch in to_batches(parsed.items, ITEMS):
        assert [item.source_id for item in items_of(batch)] == [item.source_id for item in parsed.items][
            : batch.num_rows
        ]


@deep
@given(sample=mangled({"rag_pipeline.toml": _TOML.encode()}))
def test_any_mangled_configuration_is_settings_or_one_line_that_names_the_file(
    sample: tuple[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"fuzz-{os.getpid()}.toml"
    path.write_bytes(sample[1])
    try:
        load_settings(config_file=path, environ={}, cwd=path.parent)
    except ConfigError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error).strip()


LABELS = {
    "labels.jsonl": b'{"id": "q1", "question": "How?", "relevant": [{"source_id": "a.md", "grade": 2}]}\n'
    b'{"id": "q2", "question": "Why?", "relevant": [{"source_id": "b.md", "source_type": "docs", "text": "words"}]}\n',
}
CORPUS = b'{"_id": "a", "title": "A", "text": "Words."}\n{"_id": "b", "title": "", "text": "Other words."}\n'
QUERIES = b'{"_id": "1", "text": "Which words?"}\n{"_id": "2", "text": "Others?"}\n'
QRELS = b"query-id\tcorpus-id\tscore\n1\ta\t1\n2\tb\t2\n"
BEIR = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels.tsv": QRELS}


@deep
@given(sample=mangled(LABELS))
def test_any_mangled_labels_are_questions_or_a_line_that_is_named(
    sample: tuple[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"fuzz-{os.getpid()}.jsonl"
    path.write_bytes(sample[1])
    try:
        found = read_labels(path, name="labels")
    except ConfigError as error:
        assert str(path) in str(error)
        return
    assert found.questions
    assert all(label.grade > 0 for question in found.questions for label in question.relevant)
    assert found.labels_hash


@deep
@given(sample=mangled(BEIR))
def test_any_mangled_labelled_set_is_read_or_refused_with_its_file(
    sample: tuple[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / f"fuzz-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    for name, content in (BEIR | dict([sample])).items():
        (folder / name).write_bytes(content)
    try:
        found = read_labelled_set(folder)
    except ConfigError as error:
        assert str(folder) in str(error)
        return
    ids = {document.id for document in found.documents}
    assert all(query.relevant and set(query.relevant) <= ids for query in found.queries)


PART = Part(tenant="acme", repository="code", day=date(2024, 5, 1))


def _items() -> list[SourceItem]:
    return [
        SourceItem(
            tenant="acme", source_type="docs", source_id=f"code:{n}.md", repository="code", day=PART.day,
            source_updated_at=NOW, observed_at=NOW, path=f"{n}.md", content=b"# Page\n\n" + bytes([65 + n % 26]) * 90,
        )
        for n in range(60)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Path, bytes]:
    lake = Lake(str(tmp_path_factory.mktemp("fuzz-lake")))
    with lake.writer("raw_docs", PART, schema=ITEMS) as writer:
        for batch in to_batches(_items(), ITEMS):
            writer.add(batch)
        writer.fingerprint = "made"
    path = Path(lake.path("raw_docs", PART))
    return lake, path, path.read_bytes()


@deep
@given(data=st.data())
def test_any_mangled_part_of_the_lake_is_what_it_was_or_is_said_to_be_damaged(
    part: tuple[Lake, Path, bytes], data: st.DataObject
) -> None:
    lake, path, whole = part
    _, content = data.draw(mangled({"part": whole}))
    path.write_bytes(content)
    try:
        lake.tags("raw_docs", PART)
        found = [item for batch in lake.read("raw_docs", PART) for item in items_of(batch)]
    except PermanentError as error:
        assert "is damaged" in str(error) and str(path) in str(error)
        return
    if lake.fingerprint("raw_docs", PART) == "made":
        assert found == _items()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(("data", "embedding", "index", "object", "usage", "prompt_tokens", "x")), inner
        )
    ),
    max_leaves=12,
)
ITEMS_OF_ANSWERS = st.fixed_dictionaries({}, optional={
    "embedding": st.lists(st.floats() | st.none() | st.just(10**400), max_size=5) | st.text(max_size=8) | JSON,
    "index": st.integers(-1, 3) | JSON,
})  # fmt: skip
ANSWERS = JSON | st.fixed_dictionaries(
    {"data": st.lists(ITEMS_OF_ANSWERS | JSON, max_size=3)}, optional={"usage": JSON, "model": JSON, "object": JSON}
)


@pytest.fixture(scope="module")
def answering() -> Iterator[tuple[dict[str, Any], EmbeddingService, FakeService]]:
    says: dict[str, Any] = {}
    with fake_service(lambda _: says["reply"]) as service:
        settings = Embedding.model_validate({"provider": "openai", "model": MODEL, "base_url": service.url})
        asked = EmbeddingService(settings, environ={})
        yield says, asked, service
        asked.close()


@slower
@given(body=ANSWERS | st.text(max_size=40), status=st.sampled_from((200, 200, 200, 201, 204, 302, 400, 429, 500, 599)))
def test_any_answer_of_an_embedding_service_is_vectors_or_one_of_our_errors(
    answering: tuple[dict[str, Any], EmbeddingService, FakeService], body: Any, status: int
) -> None:
    says, asked, _ = answering
    says["reply"] = Reply(status=status, body=body, headers={"Content-Type": "application/json"})
    try:
        served = asked.request(["one", "two"], timeout_s=5)
    except RagPipelineError as error:
        assert isinstance(error, TransientError | PermanentError | ConfigError)
        assert "\n" not in str(error)
        return
    assert served.vectors.shape[0] == 2
    assert served.vectors.dtype == np.float32
    assert np.isfinite(served.vectors[served.usable]).all()
    assert served.tokens is None or isinstance(served.tokens, int)


NAMES = st.binary(min_size=1, max_size=30).filter(
    lambda name: b"\0" not in name and b"/" not in name and name not in (b".", b"..") and name.lower() != b".git"
)


@slower
@given(names=st.sets(NAMES, min_size=1, max_size=6), folder=NAMES)
def test_any_name_of_a_file_in_git_is_one_item_that_can_be_stored(
    names: set[bytes], folder: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Names are bytes: newlines, quotes, arrows, what is no UTF-8 at all."""
    place = tmp_path_factory.mktemp("names")
    repository = GitRepository(place / "project")
    repository.commit("2024-01-02T10:00", {"first.md": "# First\n"})
    stream = [b"commit refs/heads/main\ncommitter Ada <ada@example.org> 1704276000 +0000\ndata 1\nx\n",
              b"from refs/heads/main^0\n"]  # fmt: skip
    for number, name in enumerate(sorted(names)):
        content = b"# Page %d\n" % number
        stream.append(
            b"M 100644 inline %s\ndata %d\n%s\n" % (_quoted(folder + b"/" + name + b".md"), len(content), content)
        )
    done = subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=repository.path, input=b"".join(stream), capture_output=True, check=False
    )
    if done.returncode:
        return  # what git itself does not take
    items = Source(path=repository.path, home=place / "home").fetch_and_read()
    assert len(items) == len(names) + 1
    for batch in to_batches(list(items.values()), ITEMS):
        for item in items_of(batch):
            for text in (item.source_id, item.path or "", item.url or ""):
                text.encode("utf-8")
                assert "\0" not in text


def _quoted(name: bytes) -> bytes:
    """As fast-import wants a name that holds anything."""
    return b'"' + b"".join(b"\\%03o" % byte for byte in name) + b'"'
