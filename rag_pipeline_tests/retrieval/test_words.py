"""Pages are found by their words: however they are glued to others, whichever way they are spelt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from rag_pipeline.index.database import Connection, connected
from rag_pipeline.model import SearchHit
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.search import search
from rag_pipeline.settings import Retrieval
from rag_pipeline_tests.databases import new_database
from rag_pipeline_tests.knowledge import entry, space_of, store_vectors, write

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


LATER = {
    "auth": "Authentication tokens expire after an hour; request another one from the Kubernetes cluster.",
    "release": "Version 16.3 of the handler getHTTPResponse is installed.",
    "python": "Python programs are indexed.",
}


@pytest.fixture(scope="module")
def vocabulary(server, template) -> Iterator[Connection]:
    with new_database(server, "vocabulary", template=template) as url, connected(url) as connection:
        write(connection, *(entry(f"{name}.md", text) for name, text in LATER.items()))
        write(connection, entry("secret.md", "The zephyranthes project merges in May.", scope="user:ann"))
        write(connection, entry("globex.md", "The quetzalcoatl project of another tenant.", tenant="globex"))
        yield connection


@pytest.mark.parametrize(
    ("question", "word", "meant", "page"),
    [
        ("authentcation", "authentcation", "authentication", "auth"),
        ("how do authentcation tokens expire", "authentcation", "authentication", "auth"),
        ("uathentication", "uathentication", "authentication", "auth"),
        ("kubernetse", "kubernetse", "kubernetes", "auth"),
        ("pyhton", "pyhton", "python", "python"),
        ("instlled", "instlled", "installed", "release"),
    ],
)
def test_a_word_that_no_document_holds_is_tried_by_the_closest(vocabulary, question, word, meant, page):
    hits = ask(vocabulary, question)
    assert names(hits)[0] == page
    assert dict(hits[0].corrected) == {word: (meant,)}


@pytest.mark.parametrize(
    "question", ["16.2", "version 16.2.1", "getHTTPRespnse", "asdkjh qwlkej", "E1102", "token", "is ist"]
)
def test_numbers_identifiers_and_known_words_are_not_corrected(vocabulary, question):
    assert not any(hit.corrected for hit in ask(vocabulary, question))


@pytest.mark.parametrize("question", ["zephyrantes", "quetzalcoatll"])
def test_words_of_documents_that_one_may_not_see_are_no_corrections(vocabulary, question):
    assert ask(vocabulary, question) == []


def test_who_may_see_a_word_gets_it_as_a_correction(vocabulary):
    (hit,) = ask(vocabulary, "zephyrantes", scopes=["user:ann"])
    assert dict(hit.corrected) == {"zephyrantes": ("zephyranthes",)}


def test_a_word_that_is_gone_is_no_correction(database: str):
    with connected(database) as connection:
        write(connection, entry("a.md", "The chrysanthemum blooms."), entry("b.md", "Another page."))
        assert names(ask(connection, "chrysantemum")) == ["a"]
        write(connection, entry("a.md", at=2, deleted=True))
        assert ask(connection, "chrysantemum") == []


def test_without_pg_trgm_nothing_is_corrected_and_nothing_fails(database: str):
    with connected(database) as connection:
        connection.execute("DROP EXTENSION pg_trgm")
        write(connection, entry("a.md", "Authentication tokens."))
        assert ask(connection, "authentcation") == []
        assert names(ask(connection, "authentcation tokens")) == ["a"]


GIBBERISH = ["asdkjh qwlkej zxcmnb", "!!!!", "qqqq wwww", "Zk3vQx9TqL0aB7w==", "xkcdvb qzx", "???", "  ... "]
NEAR = np.eye(4, dtype=np.float32)[0]


def fused(connection: Connection, question: str, vector: np.ndarray, *, model: str = "all-MiniLM-L6-v2"):
    space = space_of(connection, dimensions=4, model=model)
    texts = [*LATER.values()]
    store_vectors(connection, space, dict.fromkeys(texts, NEAR))
    query = SearchQuery(text=question, tenant="acme", k=10)
    return search(connection, query, space=space, vector=vector, settings=Retrieval())


@pytest.mark.parametrize("question", GIBBERISH)
def test_gibberish_finds_nothing(vocabulary, question):
    assert ask(vocabulary, question) == []
    assert fused(vocabulary, question, np.array([0.4, 0.9, 0, 0], dtype=np.float32)) == []


def test_a_question_without_known_words_is_answered_by_likeness(vocabulary):
    assert fused(vocabulary, "Anmeldung läuft ab", np.array([0.7, 0.7, 0, 0], dtype=np.float32))


def test_a_question_with_one_unknown_word_is_answered(vocabulary):
    assert fused(vocabulary, "tokens of xyzzyq", np.array([0.1, 0.9, 0, 0], dtype=np.float32))


def test_what_is_noise_is_not_known_of_other_models(vocabulary):
    far = np.array([0.1, 0.9, 0, 0], dtype=np.float32)
    assert fused(vocabulary, "asdkjh qwlkej zxcmnb", far, model="another")


def test_the_page_of_a_version_comes_first_though_others_are_nearer_in_meaning(database):
    """A hundred pages about upgrades are like the question, and only one names the version."""
    pages = [f"How to upgrade server number {number} of the release." for number in range(100)]
    texts = dict.fromkeys(pages, np.array([0.65, 0.76, 0, 0], dtype=np.float32))
    texts["Release 16.2 is the first with it."] = np.array([0.3, 0.95, 0, 0], dtype=np.float32)
    with connected(database) as connection:
        write(connection, *(entry(f"{number}.md", text) for number, text in enumerate(texts)))
        space = space_of(connection, dimensions=4)
        store_vectors(connection, space, texts)
        query = SearchQuery(text="which page is about 16.2", tenant="acme", k=3)
        question = np.array([1, 0, 0, 0], dtype=np.float32)
        first, *_ = search(connection, query, space=space, vector=question, settings=Retrieval())
    assert names([first]) == ["100"]
