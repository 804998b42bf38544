"""What an edit costs: how many chunk texts are new after one word of a document changed."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from typing import Final, NamedTuple

from rag_pipeline_tests.bench.files import files_of
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.splitters import ours

_SECTION = "edits"
EDITS_PER_FILE: Final = 12
_LIMIT: Final = 3
_AT_ONCE: Final = 300
"""Edits of one file that a process makes one after the other: a large file is spread over the cores."""
_SHOWN: Final = 20
_WORD = re.compile(r"[^\W\d_]{3,}")


class _Job(NamedTuple):
    path: str
    text: str
    words: Sequence[tuple[int, int]]
    """Where they begin and end in the text."""
    new: str


class _Costs(NamedTuple):
    """Of some edits of a file, how many cost so many chunks; and those over the limit, by their words."""

    counts: Counter[int]
    over: list[str]


def bench_edits(
    repository: str, report: Report, *, start_date: date | None = None, edits: int = EDITS_PER_FILE,
    new: str = "another",
) -> None:  # fmt: skip
    """One-word edits of every document and source file of the repository's newest commit, on all cores.

    `edits`: so many of each file, at random places; 0: one for every word. `new` is what stands in the word's place.
    """
    rng = random.Random(7)
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for kind, found in sorted(files_of(repository).by_kind.items()):
            jobs = [job for path, content in found for job in _jobs(path, content, rng, edits=edits, new=new)]
            costs = list(processes.map(_costs, jobs))
            counts = sum((cost.counts for cost in costs), Counter[int]())
            if counts:
                _report(kind, counts, [edit for cost in costs for edit in cost.over], report)
    report.show(_SECTION)


def _report(kind: str, counts: Counter[int], over: Sequence[str], report: Report) -> None:
    edits = counts.total()
    mean = sum(cost * n for cost, n in counts.items()) / edits
    spread = ", ".join(f"{n:,} x {cost}" for cost, n in sorted(counts.items()))
    report.figure(_SECTION, f"{kind}: chunks embedded again, mean", mean, "chunks", at_most=1.5, note=spread)
    report.figure(_SECTION, f"{kind}: chunks embedded again, most", max(counts), "chunks", at_most=_LIMIT)
    few = edits - len(over)
    detail = "; ".join([f"{few:,} of {edits:,} edits cost at most {_LIMIT} chunks", *over[:_SHOWN]])
    report.check(_SECTION, f"{kind}: hardly any edit costs more than {_LIMIT} chunks", few >= 0.98 * edits, detail)


def _jobs(path: str, content: bytes, rng: random.Random, *, edits: int, new: str) -> Iterator[_Job]:
    text = content.decode("utf-8", "replace")
    words = [match.span() for match in _WORD.finditer(text)]
    chosen = rng.sample(words, min(len(words), edits)) if edits else words
    for first in range(0, len(chosen), _AT_ONCE):
        yield _Job(path, text, chosen[first : first + _AT_ONCE], new)


def _costs(job: _Job) -> _Costs:
    path, text, words, new = job
    before = _chunk_texts(path, text)
    done = _Costs(Counter(), [])
    for start, end in words:
        cost = (_chunk_texts(path, text[:start] + new + text[end:]) - before).total()
        done.counts[cost] += 1
        if cost > _LIMIT:
            line = text.count("\n", 0, start) + 1
            done.over.append(f"{path}:{line}: {text[start:end]!r} replaced by {new!r} costs {cost}")
    return done


def _chunk_texts(path: str, text: str) -> Counter[str]:
    return Counter(ours(path, text))
