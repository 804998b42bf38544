"""The figures of docs/scaling.md are those of the formulas, and the formulas agree with what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_pipeline.index.graph import graph_bytes
from rag_pipeline_tests.bench.arithmetic import LOCAL, PAGE, SERVICE, SIZES, estimate, page_with, vector_bytes


def test_the_page_shows_what_the_formulas_give() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page_with(text) == text, "run `python -m rag_pipeline_tests.bench.arithmetic --write`"


def test_what_was_measured_comes_out_as_it_was_measured() -> None:
    million, tenth = estimate(1_000_000, LOCAL), estimate(100_000, LOCAL)
    assert million.graph_hours * 3600 == pytest.approx(95, abs=0.5)
    assert million.write_hours * 3600 == pytest.approx(222, abs=1)
    assert million.graph_bytes == pytest.approx(455e6, rel=0.03)
    assert graph_bytes(200_000, dimensions=384, graph="vectors") == pytest.approx(223 * 2**20, rel=0.01)
    assert million.search_ms == 20.3
    assert tenth.search_ms == pytest.approx(7.9, abs=0.1)


def test_more_chunks_cost_more_and_what_they_need_for_a_build_fits() -> None:
    for given in (LOCAL, SERVICE):
        found = [estimate(size, given) for size in SIZES]
        for name in ("embedding_usd", "disk_bytes", "graph_hours", "search_ms"):
            values = [getattr(one, name) for one in found]
            assert values == sorted(values)
        for one in found:
            parts = one.chunks // one.partitions + 1
            assert estimate(parts, given).build_memory_bytes <= 1.01 * given.build_memory_bytes
    assert estimate(SIZES[0], replace(LOCAL, price_per_million=2.0)).embedding_usd == pytest.approx(249.4)


def test_a_vector_takes_what_its_dimensions_need() -> None:
    assert 1_000 < vector_bytes(1_000_000, 384) / 1e6 < 1_100
    assert vector_bytes(1_000_000, 1_536) / 1e6 > 2 * 1_536
