"""An answer without a language model: the passages that best support it, quoted and cited. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rag_pipeline.answering.cleaning import Cleaner
from rag_pipeline.answering.links import Links
from rag_pipeline.answering.terms import Rarity, content_terms, rarities, sentence_spans
from rag_pipeline.lexical.analyzer import terms_of
from rag_pipeline.model import Answer, CitedSource, SearchHit
from rag_pipeline.retrieval.fencing import fenced

NOTHING: Final = "The index holds nothing about this."
MAX_SOURCES: Final = 3
_PASSAGE_CHARS: Final = 320
_LONGEST_CHARS: Final = 600
_MOST_SENTENCES: Final = 3
_MOST_LINES: Final = 6
_LOOKED_AT: Final = 8
_WORTH_QUOTING: Final = 0.6
"""Of what the best passage says about the question, so much a further one has to say."""
_UNDER_HEADING: Final = 0.7
"""What a term counts that only the heading above a passage holds."""
_SAME: Final = 0.8
"""Passages that share so much of their words say the same."""
_PROSE: Final = frozenset({None, "", "markdown", "rst", "asciidoc", "text", "html"})
_POINTS_ELSEWHERE: Final = re.compile(
    r"\W*(?:for (?:more|further|additional)\b|see (?:also\b|the\b|\[))", re.IGNORECASE
)
_HEADING: Final = re.compile(r"\s*(?:#{1,6}\s.*|[=\-~^*+#]{3,}\s*|(?:\"\"\"|''')\s*|```\w*\s*)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Some words of a hit, as they stand there."""

    hit: SearchHit
    quote: str
    says: float
    """How much of the question it speaks of, the rare words counting more; 0: nothing."""


def answer(question: str, hits: Sequence[SearchHit], *, max_sources: int = MAX_SOURCES) -> Answer:
    """Quotes the best passages of the first hits, each followed by its `[Source N]`; quotes nothing twice."""
    passages = best_passages(question, hits, most=max_sources)
    if not passages:
        return Answer(question=question, asked=question, text=NOTHING, status="unknown", confidence=0.0)
    links = Links(text for hit in hits for text in (hit.text, hit.url))
    sources, parts, removed = [], [], 0
    for number, passage in enumerate(passages, start=1):
        text, dangling = _shown(passage, links)
        removed += dangling
        parts.append(f"{text}{_before_mark(text)}[Source {number}]")
        sources.append(CitedSource(number=number, hit=passage.hit, quote=passage.quote, support=1.0))
    return Answer(
        question=question, asked=question, text="\n\n".join(parts), sources=sources, status="answered",
        confidence=max(0.0, min(1.0, hits[0].score)), removed_citations=removed,
    )  # fmt: skip


def best_passages(question: str, hits: Sequence[SearchHit], *, most: int) -> list[Passage]:
    """The passages worth quoting, in the order of their hits."""
    rarity = rarities([hit.text for hit in hits[:_LOOKED_AT]])
    found = [_best_of(question, hit, rarity) for hit in hits[:_LOOKED_AT]]
    passages = [passage for passage in found if passage.quote]
    enough = _WORTH_QUOTING * max((passage.says for passage in passages), default=0.0)
    chosen: list[Passage] = []
    for passage in passages:
        says_enough = passage.says >= enough and (passage.says > 0 or not chosen)
        if len(chosen) < most and says_enough and not any(_alike(passage.quote, one.quote) for one in chosen):
            chosen.append(passage)
    return chosen


def best_passage(question: str, text: str, *, code: bool = False, rarity: Rarity | None = None) -> str:
    """The few sentences of a text, or lines of code, that speak most of what is asked; its own words, in one piece."""
    return _best(question, text, code=code, rarity=rarity or rarities([text]))[0]


def is_code(hit: SearchHit) -> bool:
    """Whether a hit is read by its lines, not by its sentences."""
    return hit.source_type == "code" or hit.language not in _PROSE


def _best_of(question: str, hit: SearchHit, rarity: Rarity) -> Passage:
    quote, says = _best(question, hit.text, code=is_code(hit), rarity=rarity)
    return Passage(hit=hit, quote=quote, says=says)


def _best(question: str, text: str, *, code: bool, rarity: Rarity) -> tuple[str, float]:
    wanted = {term: rarity.of(term) for term in content_terms(question)}
    best, best_score, says = "", float("-inf"), 0.0
    for window in _windows(text, code=code):
        passage = text[window.start : window.end]
        held, above = set(terms_of(passage)), set(terms_of(window.heading))
        told = sum(weight for term, weight in wanted.items() if term in held)
        told += _UNDER_HEADING * sum(weight for term, weight in wanted.items() if term in above - held)
        # Of two that say as much, the shorter one; but a few words more than a bare line.
        score = told - 0.1 * window.parts + 0.2 * min(1.0, len(passage) / 80)
        if _POINTS_ELSEWHERE.match(passage):
            score -= 0.5 * told  # it names the subject, and says nothing of it
        if score > best_score:
            best, best_score, says = passage, score, told
    return best, says


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A run of sentences or lines, and the heading of the text that it stands under."""

    start: int
    end: int
    parts: int
    heading: str


def _windows(text: str, *, code: bool) -> Iterator[_Window]:
    """Runs that cross no heading; headings alone are none, unless there is nothing else."""
    spans = [span for span in (_line_spans(text) if code else sentence_spans(text)) if text[span[0] : span[1]].strip()]
    # In code such a line is a comment, or opens a docstring.
    headings = [not code and bool(_HEADING.fullmatch(text[start:end])) for start, end in spans]
    if all(headings):
        headings = [False] * len(spans)
    most = _MOST_LINES if code else _MOST_SENTENCES
    heading = ""
    for at, (start, own_end) in enumerate(spans):
        if headings[at]:
            heading = text[start:own_end]
            continue
        for parts, (_, end) in enumerate(spans[at : at + most], start=1):
            if headings[at + parts - 1] or (parts > 1 and end - start > _PASSAGE_CHARS):
                break
            first, last = _trimmed(text, start, end)
            yield _Window(start=first, end=last, parts=parts, heading=heading)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    end = min(end, start + _LONGEST_CHARS)
    inside = text[start:end]
    return start + len(inside) - len(inside.lstrip("\n")), start + len(inside.rstrip())


def _line_spans(text: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    for line in text.splitlines(keepends=True):
        spans.append((start, start + len(line)))
        start += len(line)
    return spans


def _alike(one: str, other: str) -> bool:
    left, right = set(terms_of(one)), set(terms_of(other))
    return one == other or len(left & right) >= _SAME * max(1, min(len(left), len(right)))


def _shown(passage: Passage, links: Links) -> tuple[str, int]:
    """A quote as it stands in an answer, and how many marks in it pointed to nothing."""
    quote = passage.quote
    if is_code(passage.hit):
        quote = fenced(quote)
    elif "```" not in quote and "|" not in quote and not re.search(r"^\s*(?:[-*+]|\d+[.)])\s", quote, re.MULTILINE):
        quote = " ".join(quote.split())  # a paragraph is one line
    cleaner = Cleaner(sources=0, links=links)
    return cleaner.feed(quote) + cleaner.finish(), cleaner.numbering.removed


def _before_mark(text: str) -> str:
    """A mark behind a block of code would be part of its last line."""
    return "\n" if text.endswith(("```", "~~~")) else " "
