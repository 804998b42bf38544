"""Whatever the history, and in whatever order and how often its days are run: the index becomes what HEAD holds."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline_tests.sources.git.histories import START, Epoch, Repository, covers, histories, snapshot
from rag_pipeline_tests.sources.git.reading import Index, Source

_MODERATE = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@_MODERATE
@given(epochs=histories(), data=st.data())
def test_any_cover_of_the_days_gives_the_snapshot_of_head(epochs: list[Epoch], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository, index = _start(Path(folder))
        for epoch in epochs:
            _observe(repository, index.source, epoch)
            for first, last in epoch.runs:
                index.run(first, last)
        for first, last in data.draw(covers(START.date(), index.source.now.date()), label="cover"):
            index.run(first, last)
        assert index.live() == _head(epochs[-1])


@_MODERATE
@given(epochs=histories())
def test_each_refresh_gives_the_snapshot_of_head(epochs: list[Epoch]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository, index = _start(Path(folder))
        for epoch in epochs:
            _observe(repository, index.source, epoch)
            index.refresh()
            assert index.live() == _head(epoch)
            for first, last in epoch.runs:
                index.run(first, last)
            assert index.live() == _head(epoch)
        before = dict(index.held)
        index.refresh()
        assert index.held == before


def _start(folder: Path) -> tuple[Repository, Index]:
    repository = Repository(folder / "project.git")
    return repository, Index(source=Source(path=repository.path, home=folder / "home", now=START))


def _observe(repository: Repository, source: Source, epoch: Epoch) -> None:
    repository.advance(epoch)
    source.now = max(epoch.fetched_at, source.now)
    source.fetch()


def _head(epoch: Epoch) -> dict[str, bytes]:
    return snapshot(epoch.commits[epoch.head].tree)
