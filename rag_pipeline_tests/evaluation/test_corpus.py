"""A labelled set into a scratch database, and questions to it: the pipeline's own stages, one bad document or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rag_pipeline.errors import ConfigError, TransientError
from rag_pipeline.evaluation.corpus import TENANT, index_corpus, label_set_of
from rag_pipeline.evaluation.labelled import LabelledDocument, LabelledQuery, LabelledSet
from rag_pipeline.evaluation.remembering import RememberingEmbedder, open_search
from rag_pipeline.evaluation.run import evaluate
from rag_pipeline.index.database import Connection, connected
from rag_pipeline.index.scratch import scratch_database
from rag_pipeline.index.spaces import active_space
from rag_pipeline.progress import silent
from rag_pipeline.refresh import chunking_rules
from rag_pipeline.settings import Settings
from rag_pipeline_tests.end_to_end.installation import WordEmbedder
from rag_pipeline_tests.evaluation.answers import MOMENT

PAGES = {
    "https://docs.example.org/install#steps": (
        "Installing",
        "Installing\n\nUnpack the archive and run the setup script.",
    ),
    "deploy": ("Deploying", "Containers are shipped to the cluster with one command."),
    "tools/backup.py": ("", "def backup(database):\n    return dump(database)\n"),
}
QUERIES = {"How is it unpacked?": {"https://docs.example.org/install#steps": 1}, "ship containers": {"deploy": 2}}


def labelled(pages=None, queries=None) -> LabelledSet:
    pages = PAGES if pages is None else pages
    return LabelledSet(
        name="pages",
        documents=[LabelledDocument(id=id_, title=title, text=text) for id_, (title, text) in pages.items()],
        queries=[
            LabelledQuery(id=f"q{n}", text=text, relevant=relevant)
            for n, (text, relevant) in enumerate((queries or QUERIES).items())
        ],
    )


@pytest.fixture
def scratch(database: str) -> Iterator[Connection]:
    with scratch_database(database) as url, connected(url) as connection:
        yield connection


def index(connection: Connection, set_: LabelledSet, *, embedder=None, progress=silent):
    settings = Settings()
    return index_corpus(
        connection, set_, settings=settings, rules=chunking_rules(settings), embedder=embedder or WordEmbedder(),
        now=MOMENT, progress=progress,
    )  # fmt: skip


def test_the_documents_are_indexed_and_found_by_their_ids(scratch):
    embedder = WordEmbedder()
    told = []
    report = index(scratch, labelled(), embedder=embedder, progress=lambda *args, **how: told.append((args, how)))
    assert (report.documents, report.chunks, report.embedded, report.failures) == (3, 3, 3, [])
    assert active_space(scratch) is not None
    rows = scratch.execute(
        "SELECT source_id, source_type, language, tenant_id FROM rag.documents ORDER BY 1"
    ).fetchall()
    assert rows == [
        ("deploy", "docs", "markdown", TENANT), ("https://docs.example.org/install#steps", "docs", "markdown", TENANT),
        ("tools/backup.py", "code", "python", TENANT),
    ]  # fmt: skip
    assert told[-1] == (("documents",), {"done": 3, "total": 3, "unit": "documents"})
    with open_search(scratch, embedder, settings=Settings(), environ={}) as search:
        found = evaluate(label_set_of(labelled()), search, tenant=TENANT, k=20)
        with pytest.raises(ConfigError, match="there is no reranker to measure"):
            evaluate(label_set_of(labelled()), search, tenant=TENANT, legs=["reranked"])
    assert found.queries == 2
    assert found.metrics["vector"]["Success@5"] == 1.0
    assert found.metrics["vector"]["RR@10"] == 1.0


def test_half_a_search_is_not_measured(scratch):
    class Silent(WordEmbedder):
        def embed_query(self, text):
            raise TransientError("the model does not answer")

    index(scratch, labelled())
    with (
        open_search(scratch, Silent(), settings=Settings(), environ={}) as search,
        pytest.raises(TransientError, match=r"was not answered as it should be: .*the model does not answer"),
    ):
        evaluate(label_set_of(labelled()), search, tenant=TENANT, legs=["fused"])


def test_a_title_is_searched_too_unless_the_text_begins_with_it(scratch):
    index(scratch, labelled())
    texts = dict(
        scratch.execute("SELECT source_id, text FROM rag.chunks JOIN rag.documents USING (document_id)").fetchall()
    )
    assert texts["deploy"].startswith("# Deploying\n")
    assert texts["https://docs.example.org/install#steps"].count("Installing") == 1


def test_equal_texts_are_embedded_once(scratch):
    pages = {f"p{n}": ("", "The very same words.") for n in range(5)}
    report = index(scratch, labelled(pages, {"words?": {"p1": 1}}))
    assert (report.documents, report.chunks, report.embedded) == (5, 5, 1)


def test_a_document_that_fails_is_counted_and_the_others_are_indexed(scratch):
    embedder = WordEmbedder()
    embedder.refuse = {"Containers"}
    pages = {**PAGES, "broken.ipynb": ("", "{ this is no notebook")}
    report = index(scratch, labelled(pages), embedder=embedder)
    assert report.documents == 2
    assert [id_ for id_, _ in report.failures] == ["broken.ipynb", "deploy"]
    assert report.failures[1][1] == "refused"


def test_a_set_of_which_nothing_can_be_indexed_is_an_error(scratch):
    with pytest.raises(ConfigError, match="pages: none of its documents could be indexed; the first one: ItemError"):
        index(scratch, labelled({"broken.ipynb": ("", "{")}, {"q": {"broken.ipynb": 1}}))


def test_only_the_first_questions_are_asked_when_there_is_a_limit():
    assert [question.id for question in label_set_of(labelled(), limit=1).questions] == ["q0"]


def test_a_question_is_embedded_once_for_all_legs_and_the_model_stays_open():
    class Counting(WordEmbedder):
        asked = closed = 0

        def embed_query(self, text):
            self.asked += 1
            return super().embed_query(text)

        def close(self):
            self.closed += 1

    counting = Counting()
    remembering = RememberingEmbedder(counting)
    for _ in range(3):
        remembering.embed_query("how?")
        remembering.close()
    assert (counting.asked, counting.closed) == (1, 0)
    assert (remembering.provider, remembering.model, remembering.recipe) == ("local", "words", "words/v1")
    assert (remembering.dimensions, remembering.count_tokens(["a b"]), remembering.model_seconds) == (64, [2], 0.0)
