"""The project's own labels: questions, and the documents, or spans of lines in them, that answer them.

One JSON object a line. Labels name source ids and lines of the source, never chunks, so that they outlive every change
of how documents are cut:

    {"id": "q1", "question": "How is a lost vector restored?", "relevant": [
        {"source_type": "docs", "source_id": "handbook:vectors.md", "lines": [10, 24], "grade": 2}]}

`lines`, `grade` (from 1; by default 1) and `left_out` (documents that are no answer and do not count, as the issue that
a question was taken from) may be missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.labelled import LabelledQuery, read_queries

_SHAPE = '{"id": …, "question": …, "relevant": [{"source_type": …, "source_id": …, "lines": [first, last]}]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A document, or a span of it, that answers a question."""

    source_id: str
    source_type: str | None = None
    """None: of whatever type."""
    lines: tuple[int, int] | None = None
    """First and last line in the source, from 1, both included; None: the document as a whole."""
    grade: int = 1
    """How good an answer it is, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with what answers it, one label at least."""

    id: str
    text: str
    relevant: Sequence[Label]
    left_out: Sequence[Label] = ()
    """Documents that are taken out of every ranking before it is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSet:
    """Questions that are evaluated together."""

    name: str
    questions: Sequence[Question]

    @property
    def labels_hash(self) -> str:
        """The same for the same questions and labels, in whatever order they stand."""
        rows = sorted(json.dumps(asdict(question), sort_keys=True) for question in self.questions)
        return hashlib.blake2b("\n".join(rows).encode(), digest_size=8).hexdigest()

    @property
    def documents(self) -> list[tuple[str | None, str]]:
        """(source type, source id) of everything that is labelled as relevant, each once."""
        found = ((label.source_type, label.source_id) for question in self.questions for label in question.relevant)
        return list(dict.fromkeys(found))


def read_label_sets(*, labels: Iterable[str], datasets: Iterable[str], base: Path) -> list[LabelSet]:
    """The labels that the settings name, a set for each file and folder; relative paths and globs start at `base`.

    Raises:
        ConfigError: a pattern matches no file, or what it matches cannot be read.
    """
    files = [path for pattern in labels for path in _matching(base, pattern)]
    folders = [(base / Path(name).expanduser()).resolve() for name in datasets]
    found = [read_labels(path, name=_name(path, base)) for path in dict.fromkeys(files)]
    return found + [read_folder(path, name=_name(path, base)) for path in dict.fromkeys(folders)]


def read_labels(path: Path, *, name: str) -> LabelSet:
    """The labels of a file.

    Raises:
        ConfigError: it cannot be read, holds no question, or a line is not a question with its labels.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}): name a file of labels, UTF-8") from error
    questions: dict[str, Question] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        question = _question(line, where=f"{path}:{number}")
        if question.id in questions:
            _refuse(f"{path}:{number}", f"the id {question.id!r} stands above already: choose another")
        questions[question.id] = question
    if not questions:
        raise ConfigError(f"{path}: holds no question: write one a line as {_SHAPE}")
    return LabelSet(name=name, questions=list(questions.values()))


def read_folder(folder: Path, *, name: str) -> LabelSet:
    """The `queries.jsonl` and `qrels.tsv` of a folder, whose document ids are source ids of the index.

    Raises:
        ConfigError: a file is missing or malformed, or no question has a label.
    """
    queries = read_queries(folder)
    if not queries:
        raise ConfigError(f"{folder}: no question of queries.jsonl has a label in qrels.tsv: check the ids")
    return LabelSet(name=name, questions=[question_of(query) for query in queries])


def question_of(query: LabelledQuery, *, source_type: str | None = None) -> Question:
    """A question of a labelled set, whose document ids are source ids."""
    relevant = [Label(source_id=id_, source_type=source_type, grade=grade) for id_, grade in query.relevant.items()]
    return Question(id=query.id, text=query.text, relevant=relevant)


def write_labels(path: Path, questions: Iterable[Question]) -> None:
    """Write questions as a file of labels; `read_labels` gives the same questions back.

    Raises:
        ConfigError: the file cannot be written.
    """
    rows = [
        {"id": q.id, "question": q.text, "relevant": [_row(label) for label in q.relevant]}
        | ({"left_out": [_row(label) for label in q.left_out]} if q.left_out else {})
        for q in questions
    ]
    try:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error}): name a file in a folder that exists") from error


def _row(label: Label) -> dict[str, object]:
    return {key: value for key, value in asdict(label).items() if value is not None and (key, value) != ("grade", 1)}


def _matching(base: Path, pattern: str) -> list[Path]:
    wanted = Path(pattern).expanduser()
    root = Path(wanted.anchor) if wanted.is_absolute() else base
    found = sorted(path for path in root.glob(str(wanted.relative_to(wanted.anchor))) if path.is_file())
    if not found:
        raise ConfigError(f"evaluation.labels: {pattern!r} matches no file in {root}: write one there, or take it out")
    return found


def _name(path: Path, base: Path) -> str:
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)


def _question(line: str, *, where: str) -> Question:
    try:
        row = parse_json(line)
    except ValueError as error:
        _refuse(where, f"not JSON ({error})")
    if not isinstance(row, dict):
        _refuse(where, "not a JSON object")
    if unknown := set(row) - {"id", "question", "relevant", "left_out"}:
        _refuse(where, f"unknown key {min(unknown)!r}")
    relevant = _labels(row, "relevant", where)
    if not relevant:
        _refuse(where, "`relevant` is empty: name one document at least")
    places = [(label.source_type, label.source_id, label.lines) for label in relevant]
    if twice := next((place for place in places if places.count(place) > 1), None):
        _refuse(where, f"{twice[1]!r} is labelled twice with the same lines: once is enough")
    return Question(
        id=_text(row, "id", where), text=_text(row, "question", where), relevant=relevant,
        left_out=_labels(row, "left_out", where),
    )  # fmt: skip


def _labels(row: Mapping[str, Any], key: str, where: str) -> tuple[Label, ...]:
    labels = row.get(key, [])
    if not isinstance(labels, list) or not all(isinstance(label, dict) for label in labels):
        _refuse(where, f"`{key}` is not a list of objects")
    return tuple(_label(label, where) for label in labels)


def _label(row: Mapping[str, Any], where: str) -> Label:
    if unknown := set(row) - {"source_type", "source_id", "lines", "grade"}:
        _refuse(where, f"unknown key {min(unknown)!r} of a label")
    grade = row.get("grade", 1)
    if not isinstance(grade, int) or isinstance(grade, bool) or not 1 <= grade <= 100:
        _refuse(where, f"the grade {grade!r} is not a whole number from 1 to 100")
    source_type = _text(row, "source_type", where) if row.get("source_type") is not None else None
    lines = _lines(row.get("lines"), where)
    return Label(source_id=_text(row, "source_id", where), source_type=source_type, lines=lines, grade=grade)


def _lines(lines: Any, where: str) -> tuple[int, int] | None:
    if lines is None:
        return None
    whole = isinstance(lines, list) and len(lines) == 2 and all(type(line) is int for line in lines)
    if not whole or not 1 <= lines[0] <= lines[1]:
        _refuse(where, f"lines {lines!r} are not [first, last], from 1: write null for the whole document")
    return lines[0], lines[1]


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    text = row.get(key)
    if not isinstance(text, str) or not text.strip():
        _refuse(where, f"`{key}` is missing or is no text")
    return text


def _refuse(where: str, what: str) -> NoReturn:
    raise ConfigError(f"{where}: {what}; a label is a line of {_SHAPE}")
