"""What is one link away from a hit, and who sees it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.index.writer import Entry
from rag_pipeline.model import SearchHit
from rag_pipeline.retrieval.linked import linked_hits
from rag_pipeline.retrieval.reader import reading
from rag_pipeline_tests.knowledge import entry, thread_entry, write

FILE = "handbook:src/a.py"


def hit_on(found: Entry, *, rank: int = 1, chunk: int = 0) -> SearchHit:
    """A hit on one chunk of a document."""
    d, c = found.document, found.chunks[chunk]
    return SearchHit(
        rank=rank, score=0.5, title="", text=c.text, url="", location="", repository=d.repository,
        source_type=d.source_type, source_id=d.source_id, language=None, heading_path=(), start_line=1, end_line=1,
        document_id=d.document_id, chunk_id=c.chunk_id, source_updated_at=d.source_updated_at, tokens=1,
    )  # fmt: skip


def linked(
    connection: Connection, *hits: SearchHit, limit: int = 3, tenant: str = "acme", scopes: Sequence[str] = ()
) -> list[SearchHit]:
    """Asked as a search asks: as the reader of a tenant, in a read-only snapshot."""
    with reading(connection, tenant=tenant, scopes=scopes):
        return linked_hits(connection, hits, limit=limit)


def names(hits: Sequence[SearchHit]) -> list[str]:
    return [hit.location for hit in hits]


def code(name: str = "src/a.py", **where) -> Entry:
    return entry(name, "def f(): ...", source_type="code", **where)


def issue(number: int, *texts: str, **about) -> Entry:
    return thread_entry(number, *texts, kind="issue", **about)


def test_a_pull_request_brings_the_issues_it_closes_before_those_it_mentions(connection):
    pull = thread_entry(9, closes=["acme/app#1"], links=["acme/app#2", "acme/app#3", "acme/app#8", "else/where#1"])
    others = [issue(2, at=5), issue(3, at=6), issue(4), thread_entry(8)]
    write(connection, pull, issue(1, "The cache is stale", "And old", at=2), *others)
    found = linked(connection, hit_on(pull))
    assert names(found) == ["acme/app#1", "acme/app#3", "acme/app#2"]
    assert [hit.rank for hit in found] == [2, 3, 4]
    first = found[0]
    assert (first.text, first.title, first.source_type, first.legs, first.score) == (
        "The cache is stale", "The 1", "github_issue", (), 0.0,
    )  # fmt: skip
    assert {hit.linked_from for hit in found} == {pull.document.document_id}


def test_an_issue_brings_the_pull_requests_that_close_it(connection):
    asked = issue(1, links=["acme/app#7"])
    write(
        connection, asked, issue(7), thread_entry(8, closes=["acme/app#1"], at=2),
        thread_entry(9, links=["acme/app#1"]), thread_entry(10, closes=["acme/app#1"], at=3),
        thread_entry(11, closes=["acme/app#10"]), thread_entry(12, closes=["acme/app#1"], state="closed"),
    )  # fmt: skip
    assert names(linked(connection, hit_on(asked))) == ["acme/app#10", "acme/app#8"]


@pytest.mark.parametrize("source_type", ["code", "docs"])
def test_a_file_brings_the_pull_requests_that_last_changed_it(connection, source_type):
    file = entry("src/a.py", "text", source_type=source_type)
    pulls = [thread_entry(n, files=["src/b.py", "src/a.py"], at=n, state="merged") for n in range(1, 7)]
    given_up = thread_entry(8, files=["src/a.py"], at=8, state="closed")
    write(connection, file, *pulls, given_up, thread_entry(9, files=["src/b.py"], at=9))
    assert names(linked(connection, hit_on(file))) == ["acme/app#6", "acme/app#5", "acme/app#4"]
    assert names(linked(connection, hit_on(file), limit=1)) == ["acme/app#6"]
    assert linked(connection, hit_on(file), limit=0) == []


def test_the_order_is_that_of_the_hits_and_each_hit_has_its_own_limit(connection):
    files = [code("src/a.py"), code("src/b.py")]
    write(
        connection, *files, *(thread_entry(n, files=["src/a.py"], at=n) for n in (1, 2, 3)),
        *(thread_entry(n, files=["src/b.py"], at=n) for n in (4, 5, 6)),
    )  # fmt: skip
    found = linked(connection, hit_on(files[0]), hit_on(files[1], rank=2), limit=2)
    assert names(found) == ["acme/app#3", "acme/app#2", "acme/app#6", "acme/app#5"]
    assert [hit.rank for hit in found] == [3, 4, 5, 6]


def test_nothing_comes_twice_and_nothing_that_was_hit(connection):
    files = [code("src/a.py"), code("src/b.py")]
    both, hit, other = (thread_entry(n, files=["src/a.py", "src/b.py"], at=n) for n in (1, 2, 3))
    write(connection, *files, both, hit, other)
    found = linked(connection, hit_on(hit), hit_on(files[0], rank=2), hit_on(files[1], rank=3), limit=2)
    assert names(found) == ["acme/app#3", "acme/app#1"]
    assert {hit.linked_from for hit in found} == {files[0].document.document_id}
    two = issue(20, "one", "two")
    write(connection, two, thread_entry(21, closes=["acme/app#20"]))
    assert names(linked(connection, hit_on(two, chunk=1), hit_on(two, rank=2))) == ["acme/app#21"]


def test_what_has_no_chunk_or_is_deleted_or_unknown_is_not_brought(connection):
    pull = thread_entry(9, closes=["acme/app#1", "acme/app#2", "acme/app#3", "acme/app#9"])
    empty = issue(1)
    write(connection, pull, Entry(document=empty.document, chunks=[]), issue(2))
    write(connection, issue(2, at=2, deleted=True))
    assert linked(connection, hit_on(pull)) == []
    assert linked(connection) == []


def test_links_lead_to_the_same_tenant_only(connection):
    mine, theirs = (thread_entry(9, closes=["acme/app#1"], tenant=tenant) for tenant in ("acme", "globex"))
    write(connection, mine, theirs, issue(1, "secret", tenant="globex"))
    file = code()
    write(connection, file, thread_entry(5, "secret", files=["src/a.py"], tenant="globex"))
    assert linked(connection, hit_on(mine), hit_on(file)) == []
    assert names(linked(connection, hit_on(theirs), tenant="globex")) == ["acme/app#1"]
    # Nor does a hit that the asker cannot see lead anywhere, whoever made it up.
    assert linked(connection, hit_on(theirs), tenant="acme") == []
    # Without row-level security, as the owner, the statement itself keeps to the tenant.
    assert linked_hits(connection, [hit_on(mine), hit_on(file)], limit=3) == []


@pytest.mark.parametrize("scopes", [(), ("user:bob",), ("user:ada",)])
def test_links_of_a_scope_are_followed_only_by_who_names_it(connection, scopes):
    file, asked, pull = code(), issue(1), thread_entry(9, closes=["acme/app#2"])
    secret = thread_entry(5, files=["src/a.py"], closes=["acme/app#1"], scope="user:ada")
    write(connection, file, asked, pull, secret, issue(2, scope="user:ada"))

    def found(hit: Entry) -> list[str]:
        return names(linked(connection, hit_on(hit), scopes=scopes))

    may = scopes == ("user:ada",)
    assert found(file) == (["acme/app#5"] if may else [])
    assert found(asked) == (["acme/app#5"] if may else [])
    assert found(pull) == (["acme/app#2"] if may else [])
    assert found(secret) == (["acme/app#1"] if may else [])


@pytest.mark.parametrize("name", ["a'; DROP TABLE rag.links; --", "%s {vectors} $1", "a\\b\tc", "%", "_"])
def test_hostile_names_are_only_names(connection, name):
    file = code(name)
    write(connection, file, code("other"), thread_entry(5, files=[name]), thread_entry(6, files=["other"]))
    assert names(linked(connection, hit_on(file))) == ["acme/app#5"]


def test_row_level_security_lets_the_indexes_be_used(connection):
    for start in range(0, 2_000, 500):
        write(connection, *(thread_entry(n, files=[f"{n}.py"]) for n in range(start, start + 500)))
    connection.execute("ANALYZE rag.links, rag.documents, rag.chunks")
    file = code("77.py")
    write(connection, file)
    documents: list[UUID] = [file.document.document_id]
    with connection.transaction():
        connection.execute(
            queries("search")["enter"],
            {"tenant": "acme", "scopes": [], "vectors": None, "neighbours": 40, "plans": "auto"},
        )
        plan = connection.execute(
            b"EXPLAIN (COSTS OFF) " + queries("linked")["linked"].encode(), {"documents": documents, "limit": 3}
        ).fetchall()
    assert [line for (line,) in plan if "Seq Scan" in line] == []
    assert "links_target" in "\n".join(line for (line,) in plan)
