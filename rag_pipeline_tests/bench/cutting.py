"""How fast texts become chunks: cleaning, redaction, cutting and counting, beside LlamaIndex's splitters.

All on one core, in the same process and on the same files; the ratio is what another machine can compare.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import date
from typing import Final

from rag_pipeline_tests.bench.files import files_of
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.splitters import (
    Splitter,
    code_token_splitter,
    ours,
    sentence_splitter,
    structure_splitter,
)

_SECTION = "cutting"
_ROUNDS: Final = 6
_REFERENCE_BYTES: Final = 1_500_000
"""LlamaIndex is shown no more than this, or it would take minutes."""
_SLOW: Final = "CodeSplitter, tokens"
"""Counts every node of the syntax tree, and is shown a fifth of that."""
_HOSTILE: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    "a line of 5 MB": ("notes.md", lambda: "word " * 1_000_000),
    "5 MB without a space": ("notes.md", lambda: "x" * 5_000_000),
    "JSON nested 100,000 deep": ("data.json", lambda: "[\n" * 100_000 + "]\n" * 100_000),
    "100,000 open brackets": ("module.py", lambda: "(\n" * 100_000),
    "200,000 headings": ("notes.md", lambda: "# a\n" * 200_000),
}


def bench_cutting(repository: str, report: Report, *, start_date: date | None = None) -> None:
    """Markdown and Python files of the repository's newest commit, and some that want to hurt."""
    files = files_of(repository)
    for kind, suffixes in (("Markdown", (".md",)), ("Python", (".py",)), ("reStructuredText", (".rst",))):
        found = [(path, content.decode("utf-8", "replace")) for path, content in files.with_suffix(*suffixes)]
        if found:
            _compare(report, kind, found)
    for name, (path, make) in _HOSTILE.items():
        text = make()
        started = time.process_time()
        chunks = ours(path, text)
        report.figure(_SECTION, name, time.process_time() - started, "s", at_most=20)
        kept = sum(len("".join(chunk.split())) for chunk in chunks)
        report.check(_SECTION, f"{name}: nothing is lost", kept == len("".join(text.split())), f"{kept:,} characters")
    report.show(_SECTION)


def _compare(report: Report, kind: str, files: Sequence[tuple[str, str]]) -> None:
    size = sum(len(text.encode()) for _, text in files)
    # The first round fills the memory of the token counter, as the first documents of a run do.
    speeds = [_speed(ours, files) for _ in range(_ROUNDS)]
    references = {"SentenceSplitter": sentence_splitter()}
    if kind == "Python":
        references[_SLOW] = code_token_splitter()
        references["CodeSplitter, characters"] = structure_splitter()
    else:
        references["MarkdownNodeParser"] = structure_splitter()
    report.figure(_SECTION, f"{kind}: ours, the first time", speeds[0], "MB/s", note=f"{size / 1e6:.1f} MB")
    report.figure(_SECTION, f"{kind}: ours, later", max(speeds[1:]), "MB/s")
    for name, splitter in references.items():
        some = _some(files, _REFERENCE_BYTES // 5 if name == _SLOW else _REFERENCE_BYTES)
        reference = _speed(splitter, some)
        report.figure(_SECTION, f"{kind}: {name}", reference, "MB/s", note="reference")
        report.figure(_SECTION, f"{kind}: ours to {name}", max(speeds[1:]) / reference, "times")


def _some(files: Sequence[tuple[str, str]], limit: int) -> list[tuple[str, str]]:
    chosen, size = [], 0
    for path, text in files:
        chosen.append((path, text))
        size += len(text)
        if size >= limit:
            break
    return chosen


def _speed(splitter: Splitter, files: Sequence[tuple[str, str]]) -> float:
    """Megabytes a second of processor time."""
    started = time.process_time()
    for path, text in files:
        splitter(path, text)
    return sum(len(text.encode()) for _, text in files) / 1e6 / (time.process_time() - started)
