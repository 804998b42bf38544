"""When an answer is that nothing is known: how many unanswerable questions are declined, and how many answerable ones.

Each labelled set is indexed by the pipeline with the local model, and asked its own questions and those of the other
sets, which are foreign to it. This checkout's documentation and code are one more corpus, with the labels in `labels/`
and questions that are foreign to it here below; those were not looked at when `answering.min_evidence` was chosen.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Final

from rag_pipeline.answering.answerer import Answerer, Question
from rag_pipeline.answering.language_model import Message
from rag_pipeline.answering.rewriting import rewritten
from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.corpus import TENANT, index_corpus
from rag_pipeline.evaluation.labelled import LabelledDocument, LabelledQuery, LabelledSet, read_labelled_set
from rag_pipeline.evaluation.measures import measure
from rag_pipeline.evaluation.remembering import open_search
from rag_pipeline.evaluation.run import Search
from rag_pipeline.index.database import connected
from rag_pipeline.index.scratch import scratch_database
from rag_pipeline.model import Answer
from rag_pipeline.progress import silent
from rag_pipeline.refresh import chunking_rules
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found
from rag_pipeline.settings import Answering, Embedding, Settings
from rag_pipeline_tests.bench.files import files_of
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.embedded.servers import temporary_postgres

_SECTION: Final = "abstention"
_WRONGLY_AT_MOST: Final = 5.0
"""Per cent of answerable questions."""
_FOREIGN_AT_LEAST: Final = 0.9
_MOST_FOREIGN: Final = 100
"""Questions of each other set."""
_LABELS: Final = Path(__file__).resolve().parents[2] / "labels" / "rag-pipeline.jsonl"
_SAME: Final = {"ANSWERABLE": "answerable", "UNANSWERABLE": "unanswerable"}
FOREIGN: Final = (
    "How many strings does a cello have?", "What is the best time of year to plant tulips?",
    "Which planet has the most moons?", "How do I knit a scarf for a beginner?", "Who wrote Pride and Prejudice?",
    "What is the boiling point of ethanol?", "How do I change a flat bicycle tyre?",
    "What are the rules of overtime in ice hockey?", "How much does a train ticket from Rome to Naples cost?",
    "Which wine goes well with grilled salmon?", "How long does a broken wrist take to heal?",
    "What did the suffragettes campaign for?", "How do I apply for a student visa for Canada?",
    "Why do cats purr?", "How deep is the Mariana Trench?", "What is the recipe for sourdough bread?",
    "When is the next solar eclipse in Spain?", "How do I get rid of ants in the kitchen?",
    "Which muscles does rowing train?", "What is the dress code of the annual gala?",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question to a corpus."""

    id: str
    text: str
    kind: str
    """`answerable`, `unanswerable` (of its topic), `foreign` (of another one), or as the set calls it."""
    history: Sequence[Message] = ()


def bench_abstention(
    _repository: str, report: Report, *, start_date: date | None = None, data: Path | None = None
) -> None:
    """Precision and recall of declining over all sets in `data`, and over this checkout.

    Raises:
        ConfigError: no `data`, or nothing in it that is a labelled set.
    """
    if data is None or not (folders := sorted(path.parent for path in data.glob("*/corpus.jsonl"))):
        raise ConfigError("the benchmark `abstention` needs labelled sets: name a folder that holds them with --data")
    prose = [read_labelled_set(folder) for folder in folders if not folder.name.startswith("cosqa")]
    questions = {folder.name: questions_of(folder) for folder in folders}
    corpora = [(_own_corpus(), [*_own_questions(), *_foreign(FOREIGN)])]
    corpora += [(labelled, _for(labelled.name, questions)) for labelled in prose]
    embedder = make_embedder(Embedding(), environ={})
    wrongly: list[float] = []
    for labelled, asked in corpora:
        with _indexed(labelled, embedder) as search:
            answering = Answerer(search=partial(_found, search), model=None, settings=Answering())
            answers = {one.id: answering.ask(_question(one)) for one in asked}
            _report_rewriting(report, labelled, asked, search)
        wrongly += _report(report, labelled.name, asked, answers)
    share = 100 * fmean(wrongly)
    report.figure(_SECTION, "answerable, declined", share, "%", at_most=_WRONGLY_AT_MOST, note=f"{len(wrongly)} in all")
    report.show(_SECTION)


def questions_of(folder: Path) -> list[Asked]:
    """All questions of a set, those without an answer included; conversations come with their earlier turns."""
    found = []
    answered = {query.id for query in read_labelled_set(folder).queries}
    for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        said = (row.get("answerability") or ["ANSWERABLE" if row["_id"] in answered else "UNANSWERABLE"])[0]
        history = [
            Message(role="user" if turn["speaker"] == "user" else "assistant", content=turn["text"])
            for turn in row.get("history", [])
        ]
        if row["text"].strip():
            kind = _SAME.get(said, said.lower())
            found.append(Asked(id=row["_id"], text=row["text"], kind=kind, history=history))
    return found


def _for(name: str, questions: Mapping[str, Sequence[Asked]]) -> list[Asked]:
    """A set's own questions, and the first ones of the others, without what was said before them."""
    others = [one.text for other, asked in questions.items() if other != name for one in asked[:_MOST_FOREIGN]]
    return [*questions[name], *_foreign(others)]


def _foreign(texts: Sequence[str]) -> list[Asked]:
    return [Asked(id=f"foreign {n}", text=text, kind="foreign") for n, text in enumerate(texts)]


def _own_corpus() -> LabelledSet:
    """The documentation and code of this checkout."""
    documents = [
        LabelledDocument(id=path, title="", text=content.decode("utf-8", "replace"))
        for path, content in files_of(str(_LABELS.parents[1])).with_suffix(".md", ".py", ".sql")
        if path.startswith(("docs/", "rag_pipeline/", "sql/", "README.md"))
    ]
    return LabelledSet(name="this checkout", documents=documents, queries=_own_labels())


def _own_labels() -> list[LabelledQuery]:
    rows = [json.loads(line) for line in _LABELS.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [
        LabelledQuery(
            id=row["id"], text=row["question"],
            relevant={one["source_id"].partition(":")[2]: one.get("grade", 1) for one in row["relevant"]},
        )
        for row in rows
    ]  # fmt: skip


def _own_questions() -> list[Asked]:
    return [Asked(id=query.id, text=query.text, kind="answerable") for query in _own_labels()]


@contextmanager
def _indexed(labelled: LabelledSet, embedder: Embedder) -> Iterator[Search]:
    """The search over a set, indexed in a database of its own."""
    settings = Settings()
    with temporary_postgres() as server, scratch_database(server.url()) as url, connected(url) as connection:
        index_corpus(
            connection, labelled, settings=settings, rules=chunking_rules(settings), embedder=embedder,
            now=datetime.now(UTC), progress=silent,
        )  # fmt: skip
        with open_search(connection, embedder, settings=settings, environ={}) as search:
            yield search


def _found(search: Search, query: SearchQuery) -> Found:
    return Found(hits=search(query))


def _question(asked: Asked) -> Question:
    return Question(query=SearchQuery(text=asked.text, tenant=TENANT, k=Answering().k), history=asked.history)


def _report(report: Report, name: str, asked: Sequence[Asked], answers: Mapping[str, Answer]) -> list[float]:
    """Figures of one corpus; 1 for each answerable question that was declined, 0 for each that was not."""
    declined: defaultdict[str, list[float]] = defaultdict(list)
    for one in asked:
        declined[one.kind].append(float(answers[one.id].status == "unknown"))
    for kind, shares in sorted(declined.items()):
        limit = _WRONGLY_AT_MOST if kind == "answerable" else None
        note = f"of {len(shares)} questions"
        report.figure(_SECTION, f"{name}: {kind}, declined", 100 * fmean(shares), "%", at_most=limit, note=note)
    rightly = sum(sum(shares) for kind, shares in declined.items() if kind in ("unanswerable", "foreign"))
    precision = 100 * rightly / max(1.0, rightly + sum(declined["answerable"]))
    report.figure(_SECTION, f"{name}: precision of declining", precision, "%")
    if asked[-1].text == FOREIGN[-1]:
        share = fmean(declined["foreign"])
        detail = f"{share:.0%} of {len(FOREIGN)} are declined"
        report.check(_SECTION, "questions on a foreign topic are declined", share >= _FOREIGN_AT_LEAST, detail)
    return declined["answerable"]


def _report_rewriting(report: Report, labelled: LabelledSet, asked: Sequence[Asked], search: Search) -> None:
    """How well the questions of conversations find their documents, as they stand and made to stand alone."""
    grades = {query.id: query.relevant for query in labelled.queries}
    texts = {one.id: one for one in asked if one.history and one.id in grades}
    if not texts:
        return
    alone = {id_: rewritten(one.text, history=one.history, model=None, timeout_s=1).text for id_, one in texts.items()}
    changed = sum(alone[id_] != one.text for id_, one in texts.items())
    for name, queries in (("as it stands", {id_: one.text for id_, one in texts.items()}), ("standing alone", alone)):
        rankings = {
            id_: list(dict.fromkeys(hit.source_id for hit in search(SearchQuery(text=text, tenant=TENANT, k=30))))
            for id_, text in queries.items()
        }
        scores = measure(rankings, {id_: grades[id_] for id_ in texts}).values()
        mean = 100 * fmean(each["nDCG@10"] for each in scores)
        note = f"of {len(texts)} questions, {changed} are changed"
        report.figure(_SECTION, f"{labelled.name}: a question {name}", mean, "% nDCG@10", note=note)
