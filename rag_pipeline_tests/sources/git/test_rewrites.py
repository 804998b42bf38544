"""The branch was moved to a commit that does not continue it: what follows from that, and when."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from rag_pipeline.sources.git.timeline import Position
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.sources.git.reading import NOW, Index, Source, day


@pytest.fixture
def index(source: Source) -> Index:
    return Index(source=source)


def observe(source: Source, now: datetime) -> None:
    source.now = now
    source.fetch()


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2024-{text}+00:00")


def test_a_force_push_is_a_change_of_the_moment_it_was_seen(
    repository: GitRepository, source: Source, index: Index
) -> None:
    base = repository.commit("2024-01-02", {"a.md": "a", "kept.md": "k"})
    repository.commit("2024-01-03", {"a.md": "mistake", "secret.md": "s"})
    observe(source, at("01-03T12:00"))
    index.refresh()
    repository.git("reset", "--quiet", "--hard", base)
    repository.commit("2024-01-03T01:00", {"better.md": "b"})
    observe(source, at("01-08T12:00"))
    items = {item.path: item for item in source.read(day("01-04"))}
    assert {path: (item.day, item.deleted) for path, item in items.items()} == {
        "a.md": (day("01-08"), False), "secret.md": (day("01-08"), True), "better.md": (day("01-08"), False),
    }  # fmt: skip
    assert source.report.rewrites == 1
    index.refresh()
    assert index.live() == {"a.md": b"a", "kept.md": b"k", "better.md": b"b"}


def test_what_abandoned_commits_touched_is_settled_even_if_it_looks_unchanged(
    repository: GitRepository, source: Source, index: Index
) -> None:
    base = repository.commit("2024-01-02", {"a.md": "0", "b.md": "0"})
    repository.commit("2024-01-05", {"a.md": "half-way", "b.md": "half-way"})
    repository.commit("2024-01-06", {"a.md": "1", "b.md": "0"})
    observe(source, at("01-06T12:00"))
    index.run(day("01-01"), day("01-05"))
    repository.git("reset", "--quiet", "--hard", base)
    repository.commit("2024-01-03", {"a.md": "1"})
    observe(source, at("01-08T12:00"))
    index.run(day("01-01"), day("01-08"))
    assert index.live() == {"a.md": b"1", "b.md": b"0"}


def test_a_foxtrot_merge_is_a_rewrite(repository: GitRepository, source: Source, index: Index) -> None:
    repository.commit("2024-01-02", {"a.md": "a"})
    repository.git("branch", "side")
    repository.commit("2024-01-03", {"main.md": "m"})
    observe(source, at("01-03T12:00"))
    index.refresh()
    repository.git("switch", "--quiet", "side")
    repository.commit("2024-01-03T06:00", {"side.md": "s"})
    repository.git("merge", "--quiet", "-m", "main into side", "main", at="2024-01-03T07:00")
    repository.git("branch", "-f", "main", "side")
    repository.git("switch", "--quiet", "main")
    observe(source, at("01-04T12:00"))
    index.refresh()
    assert index.live() == {"a.md": b"a", "main.md": b"m", "side.md": b"s"}
    assert index.held["side.md"].day == day("01-04")


def test_a_branch_reset_and_moved_forward_again_keeps_the_days_of_its_commits(
    repository: GitRepository, source: Source, index: Index
) -> None:
    repository.commit("2024-01-02", {"a.md": "1"})
    head = repository.commit("2024-01-03", {"a.md": "2", "b.md": "b"})
    observe(source, at("01-03T12:00"))
    index.refresh()
    before = source.timeline()
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    observe(source, at("01-10T12:00"))
    index.refresh()
    assert index.live() == {"a.md": b"1"}
    repository.git("reset", "--quiet", "--hard", head)
    observe(source, at("01-11T12:00"))
    assert [step for step in source.timeline().steps if not step.is_rewrite] == list(before.steps)
    index.refresh()
    assert index.live() == {"a.md": b"2", "b.md": b"b"}


def test_commits_after_a_rewrite_are_not_counted_before_it(
    repository: GitRepository, source: Source, index: Index
) -> None:
    base = repository.commit("2024-01-02", {"a.md": "0"})
    repository.commit("2024-01-03", {"a.md": "old"})
    observe(source, at("01-03T12:00"))
    repository.git("reset", "--quiet", "--hard", base)
    repository.commit("2024-01-04", {"a.md": "new"})
    observe(source, at("01-10T12:00"))
    index.refresh()
    repository.commit("2024-01-05", {"a.md": "newest"})
    observe(source, at("01-11T12:00"))
    index.refresh()
    assert index.live() == {"a.md": b"newest"}


def test_a_position_on_an_abandoned_commit_is_followed_by_the_rewrite(
    repository: GitRepository, source: Source
) -> None:
    base = repository.commit("2024-01-02", {"a.md": "0"})
    middle = repository.commit("2024-01-03", {"a.md": "1"})
    old = repository.commit("2024-01-04", {"a.md": "2"})
    observe(source, at("01-04T12:00"))
    repository.git("reset", "--quiet", "--hard", base)
    repository.commit("2024-01-05", {"a.md": "3"})
    observe(source, at("01-09T12:00"))
    timeline = source.timeline()

    def due(commit: str, moment: datetime) -> object:
        return timeline.first_day_after(Position(commit=commit, at=moment), first_day=source.first_day)

    assert due(base, at("01-02T00:00")) == day("01-05")
    assert due(middle, at("01-03T00:00")) == due(old, at("01-04T00:00")) == day("01-09")
    assert due("0" * 40, at("01-03T00:00")) == day("01-02")
    assert timeline.first_day_after(timeline.head, first_day=source.first_day) is None
    assert timeline.first_day_after(None, first_day=day("01-07")) == day("01-07")


def test_hundreds_of_rewrites_cost_one_process(
    repository: GitRepository, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = repository.commit("2024-01-02", {"a.md": "0"})
    one = repository.commit("2024-01-03", {"a.md": "1"})
    repository.git("reset", "--quiet", "--hard", base)
    other = repository.commit("2024-01-03", {"a.md": "2"})
    source.fetch()
    repository.git("branch", "one", one)
    source.options = {"branch": "one"}
    source.fetch()
    # Both commits are in the second mirror once its branch was moved; the log of the moves is then made longer.
    repository.git("branch", "-f", "one", other)
    source.now = NOW + timedelta(hours=1)
    source.fetch()
    log = source.mirror.path / "logs/refs/rag/head"
    seconds = int(source.now.timestamp())
    for number in range(300):
        old, new = (other, one) if number % 2 == 0 else (one, other)
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{old} {new} x <x@x> {seconds + number} +0000\tfetch\n")
    calls = []
    run = source.mirror.__class__.run
    monkeypatch.setattr(
        source.mirror.__class__, "run", lambda self, *args, **kw: calls.append(args) or run(self, *args, **kw)
    )
    timeline = source.timeline()
    assert sum(step.is_rewrite for step in timeline.steps) == 301
    assert len(calls) == 1
