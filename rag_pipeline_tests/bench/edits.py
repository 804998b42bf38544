"""What an edit costs: how many chunk texts are new after one word of a document changed."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import Final

from rag_pipeline_tests.bench.files import files_of
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.splitters import ours

_SECTION = "edits"
_EDITS_PER_FILE: Final = 12
_WORD = re.compile(r"[^\W\d_]{3,}")


def bench_edits(repository: str, report: Report, *, start_date: date | None = None) -> None:
    """One-word edits at random places of every document and source file of the repository's newest commit."""
    rng = random.Random(7)
    for kind, found in sorted(files_of(repository).by_kind.items()):
        costs = Counter(cost for path, content in found for cost in _costs(path, content, rng))
        edits = costs.total()
        if not edits:
            continue
        mean = sum(cost * n for cost, n in costs.items()) / edits
        spread = ", ".join(f"{n} x {cost}" for cost, n in sorted(costs.items()))
        report.figure(_SECTION, f"{kind}: chunks embedded again, mean", mean, "chunks", at_most=1.5, note=spread)
        report.figure(_SECTION, f"{kind}: chunks embedded again, most", max(costs), "chunks", at_most=3)
        few = sum(n for cost, n in costs.items() if cost <= 3)
        detail = f"{few:,} of {edits:,} edits cost at most 3 chunks"
        report.check(_SECTION, f"{kind}: hardly any edit costs more than 3 chunks", few >= 0.98 * edits, detail)
    report.show(_SECTION)


def _costs(path: str, content: bytes, rng: random.Random) -> Iterator[int]:
    text = content.decode("utf-8", "replace")
    words = list(_WORD.finditer(text))
    before = _chunk_texts(path, text)
    for match in rng.sample(words, min(len(words), _EDITS_PER_FILE)):
        edited = text[: match.start()] + "another" + text[match.end() :]
        yield (_chunk_texts(path, edited) - before).total()


def _chunk_texts(path: str, text: str) -> Counter[str]:
    return Counter(ours(path, text))
