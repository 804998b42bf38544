"""Pages are found by their words: however they are glued to others, whichever way they are spelt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from rag_pipeline.index.database import Connection, connected
from rag_pipeline.model import SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.knowledge import entry, write

PAGES = {
    "postgres": "We run postgres:16.2 in production.",
    "falcon": "Unpack falcon-7.3.1.tar.gz first.",
    "apart": "Step 16 comes before step 2, then 7, 3 and 1.",
    "address": "The exporter listens on 10.20.30.40:9125 there.",
    "numbers": "Ports 10, 20, 30 and 40 are open, 9125 is closed.",
    "exact": "Press a key to resume the import after it was stopped by somebody who did not know what it was for.",
    "accented": "Attach your résumé.",
    "german": "Frau Müller answers the phone.",
    "thai": "ฉันพูดภาษาไทยได้นิดหน่อย",
    "khmer": "ខ្ញុំរៀនភាសាខ្មែរ",
    "chinese": "连接数据库失败的时候请重试。",
    "other": "数量很多，根据情况而定，仓库在北边。",
    "hindi": "यह हिन्दी भाषा में लिखा है",
}


@pytest.fixture(scope="module")
def connection(server, template) -> Iterator[Connection]:
    with new_database(server, "words", template=template) as url, connected(url) as connection:
        write(connection, *(entry(f"{name}.md", text) for name, text in PAGES.items()))
        yield connection


def ask(connection: Connection, question: str, *, tenant: str = "acme", scopes: Sequence[str] = ()) -> list[SearchHit]:
    query = SearchQuery(text=question, tenant=tenant, scopes=scopes, legs="lexical", k=10)
    return search(connection, query, space=None, vector=None, settings=Retrieval())


def names(hits: Sequence[SearchHit]) -> list[str]:
    return [hit.source_id.removeprefix("handbook:").removesuffix(".md") for hit in hits]


@pytest.mark.parametrize(
    ("question", "page", "not_page"),
    [
        ("16.2", "postgres", "apart"),
        ("postgres 16.2", "postgres", "apart"),
        ("postgres:16.2", "postgres", "apart"),
        ("v16.2", "postgres", "apart"),
        ("7.3.1", "falcon", "apart"),
        ("falcon 7.3.1", "falcon", "apart"),
        ("10.20.30.40", "address", "numbers"),
    ],
)
def test_a_version_or_address_finds_itself_and_no_numbers(connection, question, page, not_page):
    found = names(ask(connection, question))
    assert found[0] == page
    assert not_page not in found


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        ("resume", ["exact", "accented"]),
        ("résumé", ["accented", "exact"]),
        ("Muller", ["german"]),
        ("mueller", ["german"]),
        ("MÜLLER", ["german"]),
    ],
)
def test_accents_are_folded_and_the_exact_spelling_is_first(connection, question, pages):
    assert names(ask(connection, question)) == pages


def test_a_word_found_in_another_spelling_is_named_as_it_was_asked(connection):
    assert [list(hit.matched_terms) for hit in ask(connection, "resume")] == [["resum"], ["resum"]]


@pytest.mark.parametrize(
    ("question", "page"),
    [("ภาษา", "thai"), ("ភាសា", "khmer"), ("数据库", "chinese"), ("库", "chinese"), ("हिन्दी", "hindi")],
)
def test_pages_of_other_scripts_are_found_by_their_words(connection, question, page):
    assert names(ask(connection, question))[0] == page
