"""Labelled sets: documents, questions, and which documents answer which question, in the files that BEIR made usual."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_pipeline.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledDocument:
    """A document of the set."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuery:
    """A question, and the ids of the documents that answer it (one at least)."""

    id: str
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """Documents and questions that belong together."""

    name: str
    documents: Sequence[LabelledDocument]
    queries: Sequence[LabelledQuery]


def read_labelled_set(folder: Path) -> LabelledSet:
    """The set in `corpus.jsonl`, `queries.jsonl` and `qrels.tsv` of a folder; questions without an answer are left out.

    Raises:
        ConfigError: a file is missing or malformed, or no question has an answer in the corpus.
    """
    documents = [
        LabelledDocument(id=str(row["_id"]), title=str(row.get("title") or ""), text=str(row["text"]))
        for row in _rows(folder / "corpus.jsonl")
    ]
    relevant = _relevant(folder / "qrels.tsv", known={document.id for document in documents})
    queries = [
        LabelledQuery(id=str(row["_id"]), text=str(row["text"]), relevant=frozenset(relevant[str(row["_id"])]))
        for row in _rows(folder / "queries.jsonl")
        if str(row["_id"]) in relevant
    ]
    if not queries:
        raise ConfigError(f"{folder}: no question of queries.jsonl has a document in qrels.tsv: check the ids")
    return LabelledSet(name=folder.name, documents=documents, queries=queries)


def _relevant(path: Path, *, known: set[str]) -> Mapping[str, set[str]]:
    relevant: defaultdict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(_read(path).splitlines()[1:], start=2):
        fields = line.split("\t")
        if len(fields) != 3:
            raise ConfigError(f"{path}:{number}: expected a query id, a document id and a score, separated by tabs")
        if fields[2].strip() not in ("0", "0.0") and fields[1] in known:
            relevant[fields[0]].add(fields[1])
    return relevant


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_read(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict) or "_id" not in row or "text" not in row:
                raise ValueError("it has no `_id` or no `text`")
        except ValueError as error:
            raise ConfigError(f"{path}:{number}: not a document or a question of a labelled set: {error}") from error
        yield row


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}): a labelled set has corpus.jsonl, queries.jsonl and "
                          "qrels.tsv") from error  # fmt: skip
