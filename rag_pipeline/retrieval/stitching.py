"""Hits that stand beside each other in one document, joined into one: a passage reads better than its pieces. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final
from uuid import UUID

from rag_pipeline.model import SearchHit

_MOST_OVERLAP_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a chunk stands in its document's text, as the index holds it."""

    position: int
    """Order inside the document, from 0."""
    start_char: int
    end_char: int


Places = Mapping[UUID, Place]
"""Chunk ids to their places; a hit may lack one."""


def stitched(hits: Sequence[SearchHit], places: Places | None = None) -> list[SearchHit]:
    """The hits, those of one document that stand next to each other joined, best first and numbered again from 1.

    Two are neighbours when nothing stands between them: by their places one follows the other, or without places the
    lines of one touch or overlap those of the other. They must belong to the same section: what a joined hit points
    at (URL, location) spans all of its lines, and where no such address can be made they stay apart. A joined hit
    stands where its best one stood and keeps that one's identity, score and legs; the text of each is in it in full,
    what overlaps only once. Its `tokens` are those of the pieces together, so never too few.
    """
    by_document: defaultdict[UUID, list[SearchHit]] = defaultdict(list)
    for hit in hits:
        by_document[hit.document_id].append(hit)
    joined = [
        _joined(run, places or {})
        for group in by_document.values()
        for run in _runs(_in_order(group, places or {}), places or {})
    ]
    joined.sort(key=lambda pair: pair[0])
    return [replace(hit, rank=rank) for rank, (_, hit) in enumerate(joined, start=1)]


def _in_order(hits: Sequence[SearchHit], places: Places) -> list[SearchHit]:
    """Hits of one document in its order; of two that begin together, the shorter one comes first."""
    known = {hit.chunk_id: place for hit in hits if (place := places.get(hit.chunk_id))}
    if len(known) == len({hit.chunk_id for hit in hits}):
        return sorted(hits, key=lambda hit: (known[hit.chunk_id].start_char, known[hit.chunk_id].end_char, hit.rank))
    return sorted(hits, key=lambda hit: (hit.start_line, hit.end_line, hit.rank))


def _runs(hits: Sequence[SearchHit], places: Places) -> Iterator[list[SearchHit]]:
    """Hits of one document in its order, those that belong together in one list."""
    run: list[SearchHit] = []
    for hit in hits:
        if run and not (_touches(run, hit, places) and _addresses([*run, hit])):
            yield run
            run = []
        run.append(hit)
    if run:
        yield run


def _touches(run: Sequence[SearchHit], hit: SearchHit, places: Places) -> bool:
    place = places.get(hit.chunk_id)
    others = [places.get(other.chunk_id) for other in run]
    if place is not None and None not in others:
        return any(other is not None and 0 <= place.position - other.position <= 1 for other in others)
    return hit.start_line <= max(other.end_line for other in run) + 1


def _joined(run: Sequence[SearchHit], places: Places) -> tuple[int, SearchHit]:
    """One hit of all, and the rank of the best of them."""
    best = min(run, key=lambda hit: hit.rank)
    addresses = _addresses(run)
    if len(run) == 1 or addresses is None:
        return best.rank, best
    url, location = addresses
    text, furthest = run[0].text, run[0]
    for hit in run[1:]:
        text = _continued(text, furthest, hit, places)
        furthest = max(furthest, hit, key=lambda hit: _end(hit, places))
    return best.rank, replace(
        best,
        text=text,
        url=url,
        location=location,
        heading_path=_common([hit.heading_path for hit in run]),
        start_line=min(hit.start_line for hit in run),
        end_line=max(hit.end_line for hit in run),
        tokens=sum(hit.tokens for hit in run),
        matched_terms=tuple(dict.fromkeys(term for hit in [best, *run] for term in hit.matched_terms)),
    )


def _continued(text: str, before: SearchHit, hit: SearchHit, places: Places) -> str:
    """The text so far and the hit's text after it, what they share only once; `before` is what reached furthest."""
    place, place_before = places.get(hit.chunk_id), places.get(before.chunk_id)
    known = place is not None and place_before is not None
    shared = place_before.end_char - place.start_char if place and place_before else 0
    if (shared > 0 or not known) and hit.end_line <= before.end_line and hit.text in text:
        return text
    if not known and hit.start_line <= before.end_line:
        # Both hold a part of the same line: it is the end of one and the beginning of the other.
        shared = _overlap(text, hit.text)
    if shared > 0 and text.endswith(hit.text[:shared]):
        return text + hit.text[shared:]
    return _apart(text, hit.text, hit.start_line - before.end_line)


def _end(hit: SearchHit, places: Places) -> tuple[int, int]:
    place = places.get(hit.chunk_id)
    return hit.end_line, place.end_char if place else 0


def _overlap(text: str, following: str) -> int:
    """Length of the longest end of `text` that `following` begins with, from the start of a word on; 0: none."""
    for length in range(min(len(text), len(following), _MOST_OVERLAP_CHARS), 0, -1):
        at = len(text) - length
        if text.endswith(following[:length]) and (at == 0 or text[at - 1].isspace()):
            return length
    return 0


def _apart(text: str, following: str, lines: int) -> str:
    """Both with a line break between them, or a blank line where there was at least one."""
    if text.endswith("\n") or following.startswith("\n"):
        return text + following
    return text + ("\n\n" if lines > 1 else "\n") + following


def _addresses(run: Sequence[SearchHit]) -> tuple[str, str] | None:
    """URL and location of all lines of the run; None when its hits do not stand in one section."""
    lines = [(hit.start_line, hit.end_line) for hit in run]
    url = _spanning([hit.url for hit in run], lines)
    location = _spanning([hit.location for hit in run], lines)
    return None if url is None or location is None else (url, location)


def _spanning(labels: Sequence[str], lines: Sequence[tuple[int, int]]) -> str | None:
    """The label of all lines together, found from how the labels hold their own lines; None when they do not agree."""
    if len(set(labels)) == 1 and len(set(lines)) == 1:
        return labels[0]
    whole = min(start for start, _ in lines), max(end for _, end in lines)
    for template in _templates(labels[0], *lines[0]):
        if all(_filled(template, own) == label for label, own in zip(labels, lines, strict=True)):
            return _filled(template, whole)
    return None


def _templates(label: str, start: int, end: int) -> Iterator[tuple[str, ...]]:
    """What a label may be made of, cut where the lines stand: first and last line, only the first, or none."""
    if (last := _rightmost(label, end)) is not None and (first := _rightmost(label[:last], start)) is not None:
        yield label[:first], label[first + len(str(start)) : last], label[last + len(str(end)) :]
    if (only := _rightmost(label, start)) is not None:
        yield label[:only], label[only + len(str(start)) :]
    yield (label,)


def _rightmost(label: str, number: int) -> int | None:
    """Where the number stands as a whole number for the last time."""
    found = [match.start() for match in re.finditer(rf"(?<![0-9]){number}(?![0-9])", label)]
    return found[-1] if found else None


def _filled(template: Sequence[str], lines: tuple[int, int]) -> str:
    numbers = [str(lines[0]), str(lines[1])][: len(template) - 1]
    return "".join(part + number for part, number in zip(template, [*numbers, ""], strict=True))


def _common(paths: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The headings that all stand under."""
    return tuple(level[0] for level in takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False)))
