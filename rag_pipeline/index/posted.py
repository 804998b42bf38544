"""Whether the lexical index says of every living chunk what it must say: nothing less, nothing twice, nothing else.

The numbers that segments add and take away are compared with those of all chunks, in memory: six bytes a chunk. What
terms a chunk has is asked of a sample, which is analyzed again: all postings of a million chunks are a gigabyte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.index.database import Connection
from rag_pipeline.index.inspection import SHOWN, Offences, offences
from rag_pipeline.index.segments import Worded, lexical_text
from rag_pipeline.index.sql_files import queries
from rag_pipeline.lexical.analyzer import ANALYZER_VERSION, count_terms
from rag_pipeline.lexical.postings import ENTRY, Members, among, read_members

_MOST_OCCURRENCES: Final = 65_535
_MOST_ENTRIES: Final = 500
"""Of longer postings it is looked whether they are there, not what is in them: those of common words are megabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    segment_id: int
    tenant: str
    scope: str | None
    analyzer: int
    added: Members
    removed: Members


def inspect_postings(connection: Connection, *, sample: int, seed: int) -> dict[str, Offences]:
    """What is wrong with members and postings, by name; `sample` chunks, chosen by `seed`, are analyzed again."""
    segments = _segments(connection)
    living = _living(connection)
    unposted, ghosts, twice = [], [], []
    for key in living.keys() | {(s.tenant, s.scope) for s in segments}:
        own = [segment for segment in segments if (segment.tenant, segment.scope) == key]
        numbers = living.get(key, np.empty(0, dtype=np.uint32))
        lacking, left_over, repeated = _compare(own, numbers)
        unposted.append(lacking)
        ghosts.append(left_over)
        twice.append(repeated)
    return {
        "chunks_without_postings": _numbered(connection, unposted),
        "postings_of_no_chunk": _numbered(connection, ghosts),
        "chunks_posted_twice": _numbered(connection, twice),
        "wrong_postings": _wrong_terms(connection, segments, living, sample=sample, seed=seed),
    }


def _segments(connection: Connection) -> list[_Segment]:
    rows = connection.cursor(binary=True).execute(queries("inspection")["members"])
    return [
        _Segment(
            segment_id=row[0], tenant=row[1], scope=row[2], analyzer=row[3], added=_members(row[4]),
            removed=_members(row[5]),
        )
        for row in rows
    ]  # fmt: skip


def _members(content: bytes) -> Members:
    # Bytes that are no whole number of members are another look's finding.
    return read_members([content[: len(content) // 6 * 6]])


def _living(connection: Connection) -> dict[tuple[str, str | None], NDArray[np.uint32]]:
    rows = connection.cursor(binary=True).execute(queries("inspection")["living_numbers"])
    return {(row[0], row[1]): np.sort(np.frombuffer(row[2], dtype=">i8").astype(np.uint32)) for row in rows}


def _compare(
    segments: Sequence[_Segment], living: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """Numbers that are alive and not posted, posted and not alive, and added or taken away twice; each ascending."""
    added, times = np.unique(_numbers([segment.added for segment in segments]), return_counts=True)
    removed, times_removed = np.unique(_numbers([segment.removed for segment in segments]), return_counts=True)
    posted = added[~among(added, removed)]
    # A number is given once and never again, so it is added once and taken away once at most.
    never_added = removed[~among(removed, added)]
    repeated = np.union1d(added[times > 1], removed[times_removed > 1])
    return living[~among(living, posted)], np.union1d(posted[~among(posted, living)], never_added), repeated


def _numbers(members: Sequence[Members]) -> NDArray[np.uint32]:
    parts = [np.ascontiguousarray(one["number"]) for one in members]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32)


def _numbered(connection: Connection, found: Sequence[NDArray[np.uint32]]) -> Offences:
    """Chunks by their numbers, with what is known of them."""
    numbers = [int(number) for part in found for number in part[:SHOWN]][:SHOWN]
    known = {row[0]: row for row in connection.execute(queries("inspection")["numbered"], {"numbers": numbers})}
    sample = [
        {"number": number, "chunk_id": known[number][1], "source_id": known[number][3]}
        if number in known else {"number": number, "chunk_id": "no such chunk"}
        for number in numbers
    ]  # fmt: skip
    return Offences(count=sum(map(len, found)), sample=sample)


def _wrong_terms(
    connection: Connection, segments: Sequence[_Segment],
    living: Mapping[tuple[str, str | None], NDArray[np.uint32]], *, sample: int, seed: int,
) -> Offences:  # fmt: skip
    """Chunks of a sample some of whose terms are not posted as their texts say."""
    if any(segment.analyzer != ANALYZER_VERSION for segment in segments):
        return Offences()  # another analyzer's: the next run writes them all again
    numbers = _sampled(living, sample=sample, seed=seed)
    if not len(numbers):
        return Offences()
    holder = _holders(segments, numbers)
    rows = connection.execute(queries("inspection")["worded"], {"numbers": numbers.tolist()})
    counted = [(one, count_terms(lexical_text(one))) for one in map(Worded._make, rows) if one.number in holder]
    asked = [(holder[one.number], term) for one, counts in counted for term in counts]
    values = {"segments": [s for s, _ in asked], "terms": [term for _, term in asked], "most": _MOST_ENTRIES}
    posted = _posted(connection, values)
    wrong = []
    for one, counts in counted:
        problems = list(_problems(one.number, counts, holder[one.number], posted))
        if problems:
            wrong.append({
                "number": one.number, "tenant": one.tenant, "segment": holder[one.number],
                "why": "; ".join(problems[:3]) + (f" and {len(problems) - 3} more" if len(problems) > 3 else ""),
                "text": one.text,
            })  # fmt: skip
    return offences(wrong)


def _sampled(
    living: Mapping[tuple[str, str | None], NDArray[np.uint32]], *, sample: int, seed: int
) -> NDArray[np.uint32]:
    """Others with every seed, so that in time all are looked at."""
    parts = [living[key] for key in sorted(living, key=str)]
    every = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32)
    if len(every) <= sample:
        return every
    return np.sort(np.random.default_rng(seed).choice(every, size=sample, replace=False))


def _holders(segments: Sequence[_Segment], numbers: NDArray[np.uint32]) -> dict[int, int]:
    """Which segment added each number; those of no segment are another look's finding."""
    found: dict[int, int] = {}
    for segment in segments:
        held = numbers[among(numbers, np.ascontiguousarray(segment.added["number"]))]
        found |= dict.fromkeys(held.tolist(), segment.segment_id)
    return found


def _posted(connection: Connection, values: Mapping[str, object]) -> dict[tuple[int, str], dict[int, int] | None]:
    """Of (segment, term), how often each chunk holds it; None: too many to be looked at."""
    rows = connection.cursor(binary=True).execute(queries("inspection")["posted"], values)
    found: dict[tuple[int, str], dict[int, int] | None] = {}
    for segment, term, content in rows:
        if content is None:
            found[segment, term] = None
        elif (segment, term) not in found:
            entries = np.frombuffer(content[: len(content) // ENTRY.itemsize * ENTRY.itemsize], dtype=ENTRY)
            found[segment, term] = dict(zip(entries["number"].tolist(), entries["occurrences"].tolist(), strict=True))
    return found


def _problems(
    number: int, counts: Mapping[str, int], segment: int, posted: Mapping[tuple[int, str], dict[int, int] | None]
) -> Iterator[str]:
    for term, times in counts.items():
        if (segment, term) not in posted:
            yield f"no posting of {term!r}"
            continue
        entries = posted[segment, term]
        if entries is not None and entries.get(number) != min(times, _MOST_OCCURRENCES):
            yield f"{term!r} occurs {times} times, its posting says {entries.get(number, 0)}"
