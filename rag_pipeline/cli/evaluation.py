"""`rag-pipeline eval`: a dataset in a scratch database, or the configured labels against the index."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_pipeline.cli.console import err, out, rows_table
from rag_pipeline.embedded import database_url
from rag_pipeline.embedding import make_embedder
from rag_pipeline.embedding.spaces import embedder_of
from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.compare import ablation
from rag_pipeline.evaluation.corpus import TENANT, index_corpus, label_set_of
from rag_pipeline.evaluation.indexed import Outcome, evaluate_index, labels_to_ask, mined_feedback, mined_labels
from rag_pipeline.evaluation.labelled import read_labelled_set
from rag_pipeline.evaluation.labels import write_labels
from rag_pipeline.evaluation.measures import HEADLINE
from rag_pipeline.evaluation.remembering import open_search
from rag_pipeline.evaluation.run import evaluate
from rag_pipeline.index.database import connected
from rag_pipeline.index.migrations import migrate
from rag_pipeline.index.scratch import scratch_database
from rag_pipeline.index.spaces import active_space
from rag_pipeline.model import Evaluation
from rag_pipeline.progress import Progress
from rag_pipeline.refresh import chunking_rules
from rag_pipeline.settings import Settings

_SHOWN = 20  # questions that got worse


def measure_dataset(settings: Settings, folder: Path, *, limit: int | None, watch: Progress) -> dict[str, Any]:
    """Index a labelled set beside the index, ask its questions, and forget it; figures and what they are of."""
    labelled = read_labelled_set(folder)
    labels = label_set_of(labelled, limit=limit)
    embedder = make_embedder(settings.embedding, environ=os.environ)
    try:
        with scratch_database(database_url(settings)) as url, connected(url) as connection:
            started = time.perf_counter()
            report = index_corpus(
                connection, labelled, settings=settings, rules=chunking_rules(settings), embedder=embedder,
                now=datetime.now(UTC), progress=watch,
            )  # fmt: skip
            indexed = time.perf_counter()
            with open_search(connection, embedder, settings=settings, environ=os.environ) as search:
                asking = settings.evaluation
                evaluation = evaluate(labels, search, tenant=TENANT, legs=asking.legs, k=asking.k, progress=watch)
            asked = time.perf_counter()
    finally:
        embedder.close()
    return _figures(evaluation) | {
        "documents": report.documents, "chunks": report.chunks, "embedded": report.embedded,
        "model": report.space.model, "dimensions": report.space.dimensions,
        "failures": [{"id": id_, "reason": reason} for id_, reason in report.failures],
        "seconds": {"indexing": round(indexed - started, 2), "questions": round(asked - indexed, 2)},
    }  # fmt: skip


def measure_index(settings: Settings, *, tenant: str, watch: Progress) -> list[dict[str, Any]]:
    """Ask the index the configured labels, or mined ones, and put the figures on record; an entry per label set.

    Raises:
        ConfigError: nothing is indexed yet, or there are no labels.
    """
    url = database_url(settings)
    migrate(url)
    with connected(url) as connection:
        space = active_space(connection)
        if space is None:
            raise ConfigError("nothing is indexed yet: run `rag-pipeline up` or `rag-pipeline materialize` first")
        sets = labels_to_ask(connection, settings.evaluation, base=settings.base, tenant=tenant)
        embedder = embedder_of(space, settings=settings.embedding, environ=os.environ)
        try:
            with open_search(connection, embedder, settings=settings, environ=os.environ) as search:
                outcomes = [
                    evaluate_index(
                        connection, labels, search, tenant=tenant, space=space, settings=settings.evaluation,
                        now=datetime.now(UTC), progress=watch,
                    )
                    for labels in sets
                ]  # fmt: skip
        finally:
            embedder.close()
    return [_told(outcome) | {"model": space.model, "dimensions": space.dimensions} for outcome in outcomes]


def write_mined(settings: Settings, path: Path, *, tenant: str, from_feedback: bool = False) -> None:
    """Write labels mined from closed issues, or from feedback, to a file.

    Raises:
        ConfigError: the index knows of no closed issue or no helpful hit, or the file is there already or cannot be
            written.
    """
    if path.exists():
        raise ConfigError(f"{path} exists already, perhaps with labels that somebody put right: name another file")
    url = database_url(settings)
    migrate(url)
    with connected(url) as connection:
        mined = (mined_feedback if from_feedback else mined_labels)(connection, tenant=tenant)
    write_labels(path, mined.questions)
    out.print(
        f"{len(mined.questions):,} questions written to {path}: read them through, then name the file as `labels` "
        "under \\[evaluation] in rag_pipeline.toml"
    )


def print_measured(measured: Sequence[dict[str, Any]]) -> None:
    """Figures for people: each leg, what it lacks beside the fusion, and what got worse."""
    for figures in measured:
        err.print(_of_what(figures))
        out.print(rows_table(f"{figures['dataset']}: means of {figures['queries']:,} questions", ("leg", *HEADLINE), [
            (leg, *(f"{means[name]:.3f}" for name in HEADLINE)) for leg, means in figures["metrics"].items()
        ]))  # fmt: skip
        if figures["ablation"]:
            out.print()
            out.print(rows_table("difference to the fused leg", ("leg", *HEADLINE), [
                (leg, *(f"{means[name]:+.3f}" for name in HEADLINE)) for leg, means in figures["ablation"].items()
            ]))  # fmt: skip
        _print_changes(figures)


def _print_changes(figures: dict[str, Any]) -> None:
    for fall in figures.get("falls", ()):
        out.print(f"[bold]{fall['leg']} {fall['measure']} fell from {fall['before']:.3f} to {fall['after']:.3f}[/bold]")
    if worse := figures.get("worse"):
        out.print()
        rows = [
            (c["query"], c["leg"], f"{c['before']:.3f}", f"{c['after']:.3f}", c["question"]) for c in worse[:_SHOWN]
        ]
        title = f"{len(worse):,} answers are worse than on {figures['compared_with']:%Y-%m-%d %H:%M} ({HEADLINE[0]})"
        out.print(rows_table(title, ("question", "leg", "before", "after", "text"), rows))
    if missing := figures.get("missing"):
        named = ", ".join(id_ for _, id_ in missing[:3])
        err.print(f"{len(missing):,} labelled documents are not in the index, such as {named}", markup=False)


def _of_what(figures: dict[str, Any]) -> str:
    if "seconds" not in figures:
        return f"asked the index, embedded with {figures['model']}"
    failed = f", {len(figures['failures']):,} failed" if figures["failures"] else ""
    seconds = figures["seconds"]
    return (
        f"{figures['documents']:,} documents{failed}, {figures['chunks']:,} chunks, embedded with {figures['model']}; "
        f"{seconds['indexing']:.1f} s to index, {seconds['questions']:.1f} s to ask"
    )


def _told(outcome: Outcome) -> dict[str, Any]:
    texts = {question.id: question.text for question in outcome.labels.questions}
    return _figures(outcome.evaluation) | {
        "compared_with": outcome.before.evaluated_at if outcome.before else None,
        "falls": [dataclasses.asdict(fall) for fall in outcome.falls],
        "worse": [dataclasses.asdict(change) | {"question": texts[change.query]} for change in outcome.worse],
        "missing": outcome.missing,
    }


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "dataset": evaluation.dataset, "labels_hash": evaluation.labels_hash, "queries": evaluation.queries,
        "metrics": evaluation.metrics, "ablation": ablation(evaluation), "per_query": evaluation.per_query,
    }  # fmt: skip
