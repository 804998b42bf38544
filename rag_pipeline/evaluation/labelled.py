"""Labelled sets: documents, questions, and which documents answer which question, in the files that BEIR made usual.

A folder with `corpus.jsonl` (`_id`, `title`, `text`), `queries.jsonl` (`_id`, `text`) and `qrels.tsv` (query id,
document id, grade; a heading above), see Thakur et al. 2021, https://arxiv.org/abs/2104.08663. BEIR's own archives keep
the last one as `qrels/test.tsv`, which is read too.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.errors import ConfigError

_FILES = "a labelled set is a folder with corpus.jsonl, queries.jsonl and qrels.tsv"
_SAMPLE = 100  # documents that are looked at to tell code from prose


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledDocument:
    """A document of the set."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuery:
    """A question, and the ids of the documents that answer it (one at least), each with its grade, from 1."""

    id: str
    text: str
    relevant: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """Documents and questions that belong together."""

    name: str
    documents: Sequence[LabelledDocument]
    queries: Sequence[LabelledQuery]


def read_labelled_set(folder: Path) -> LabelledSet:
    """The documents and questions of a folder; questions without an answer in it are left out.

    Raises:
        ConfigError: a file is missing or malformed, or no question has an answer in the corpus.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder: {_FILES}")
    documents = [
        LabelledDocument(id=str(row["_id"]), title=str(row.get("title") or ""), text=str(row["text"]))
        for row in _rows(folder / "corpus.jsonl")
    ]
    known = {document.id for document in documents}
    if len(known) < len(documents):
        raise ConfigError(f"{folder / 'corpus.jsonl'}: two documents have the same `_id`: give each one of its own")
    queries = read_queries(folder, known=known)
    if not queries:
        raise ConfigError(
            f"{folder}: no question of queries.jsonl has a document of the corpus in qrels.tsv: check ids"
        )
    return LabelledSet(name=folder.resolve().name, documents=documents, queries=queries)


def read_queries(folder: Path, *, known: Collection[str] | None = None) -> list[LabelledQuery]:
    """The questions of a folder that some document answers; `known`: answers that are not among these do not count.

    Raises:
        ConfigError: a file is missing or malformed.
    """
    relevant = _relevant(_qrels(folder), known=known)
    queries: dict[str, LabelledQuery] = {}
    for row in _rows(folder / "queries.jsonl"):
        id_, text = str(row["_id"]), str(row["text"])
        if id_ in queries:
            raise ConfigError(f"{folder / 'queries.jsonl'}: two questions have the `_id` {id_!r}: one is enough")
        if id_ in relevant and text.strip():
            queries[id_] = LabelledQuery(id=id_, text=text, relevant=relevant[id_])
    return list(queries.values())


def is_python(documents: Sequence[LabelledDocument]) -> bool:
    """Whether the documents are code: most of the first ones can be parsed as Python."""
    sample = [document.text for document in documents[:_SAMPLE]]
    return sum(map(_parses, sample)) > len(sample) / 2


def _parses(text: str) -> bool:
    try:
        return bool(ast.parse(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deeply
        return False


def _qrels(folder: Path) -> Path:
    beir = folder / "qrels" / "test.tsv"
    return beir if beir.is_file() and not (folder / "qrels.tsv").is_file() else folder / "qrels.tsv"


def _relevant(path: Path, *, known: Collection[str] | None) -> Mapping[str, dict[str, int]]:
    relevant: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for number, line in enumerate(_read(path).split("\n"), start=1):
        fields = [field.strip() for field in line.split("\t")]
        if fields == [""]:
            continue
        grade = _grade(fields[2]) if len(fields) == 3 else None
        if number == 1 and len(fields) == 3 and grade is None:
            continue  # the heading
        if grade is None:
            raise ConfigError(f"{path}:{number}: expected a query id, a document id and a grade, separated by tabs")
        if grade > 0 and (known is None or fields[1] in known):
            relevant[fields[0]][fields[1]] = grade
    return relevant


def _grade(text: str) -> int | None:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        return None


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_read(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
            if not isinstance(row, dict) or "_id" not in row or "text" not in row:
                raise ValueError("it has no `_id` or no `text`")
        except ValueError as error:
            raise ConfigError(f"{path}:{number}: not a document or a question of a labelled set: {error}") from error
        yield row


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}): {_FILES}") from error
