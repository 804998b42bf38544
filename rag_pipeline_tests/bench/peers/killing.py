"""What is left of a system's index when it is killed in the middle of a first load and run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rag_pipeline_tests.bench.peers.corpora import Corpus
from rag_pipeline_tests.bench.peers.systems import OtherLibrary, OurPipeline, System
from rag_pipeline_tests.bench.place import place_for

_MOMENTS: Final = (0.6, 0.9)
"""Shares of the time that an undisturbed load took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survived:
    """Against the rows of an undisturbed first load of the same files."""

    kills: int
    """Runs that were killed before they had ended."""
    twice: int
    """Rows too many after the run that followed, at worst."""
    lost: int
    """Rows that lack, at worst."""
    drifted: int
    """Rows by which the index that went through all changes differs from a first load."""

    def __str__(self) -> str:
        return f"{self.twice:,} twice, {self.lost:,} lost"


def killed_and_run_again(corpus: Corpus, system: System, python: Path) -> Survived:
    """Kill first loads of the corpus as it is now, each on an empty database, and run each again to its end."""
    with _empty(corpus, system, python, "_undisturbed") as fresh:
        wall_s = fresh.refresh().wall_s
        right = Counter(fresh.rows())
    kills = twice = lost = 0
    for number, share in enumerate(_MOMENTS):
        with _empty(corpus, system, python, f"_killed_{number}") as fresh:
            kills += fresh.kill_during(share * wall_s)
            fresh.refresh()
            found = Counter(fresh.rows())
        twice, lost = max(twice, (found - right).total()), max(lost, (right - found).total())
    changed = Counter(system.rows())
    drifted = (changed - right).total() + (right - changed).total()
    return Survived(kills=kills, twice=twice, lost=lost, drifted=drifted)


@contextmanager
def _empty(corpus: Corpus, system: System, python: Path, tag: str) -> Iterator[System]:
    """The same system, with nothing in it."""
    if isinstance(system, OtherLibrary):
        other = OtherLibrary(
            system.peer, corpus, python=python, variant=system.variant, model=system.model, tag=tag
        )  # fmt: skip
        other.create()
        yield other
        return
    with place_for(str(corpus.place.clone), start_date=corpus.place.start_date) as place:
        ours = OurPipeline(corpus, model=system.model, place=place)
        ours.create()
        yield ours
