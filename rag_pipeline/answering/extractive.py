"""An answer without a language model: the passages that best support it, quoted and cited. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_pipeline.model import Answer, CitedSource, SearchHit

_WORD = re.compile(r"[a-z0-9_]+")
_PASSAGE_CHARS = 320
_PASSAGE_LINES = 6
_STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "do",
        "does",
        "for",
        "from",
        "how",
        "i",
        "if",
        "in",
        "is",
        "it",
        "me",
        "my",
        "of",
        "on",
        "or",
        "should",
        "that",
        "the",
        "there",
        "these",
        "this",
        "to",
        "use",
        "was",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "you",
        "your",
    ]
)


def answer(question: str, hits: Sequence[SearchHit], *, max_sources: int = 3) -> Answer:
    """Quotes the best passage of each of the first hits, each followed by its `[Source N]`."""
    quotes = [(hit, best_passage(question, hit.text)) for hit in hits[:max_sources]]
    if not quotes:
        return Answer(question=question, text="The index holds nothing about this.", status="unknown", confidence=0.0)
    sources = [CitedSource(number=n, hit=hit, quote=quote, support=1.0) for n, (hit, quote) in enumerate(quotes, 1)]
    text = "\n\n".join(f"{source.quote} [Source {source.number}]" for source in sources)
    return Answer(question=question, text=text, sources=sources, status="answered", confidence=quotes[0][0].score)


def best_passage(question: str, text: str) -> str:
    """The run of at most six whole lines, about 320 characters, that shares the most words with the question."""
    wanted = set(_WORD.findall(question.lower())) - _STOP_WORDS
    lines = [line.rstrip() for line in text.splitlines()]
    best, best_score = "", -1.0
    for start in range(len(lines)):
        if not lines[start].strip():
            continue
        passage = _run_from(lines, start)
        words = _WORD.findall(passage.lower())
        score = len(wanted & set(words)) + min(len(passage), _PASSAGE_CHARS) / (10 * _PASSAGE_CHARS)
        if score > best_score:
            best, best_score = passage, score
    return best


def _run_from(lines: Sequence[str], start: int) -> str:
    taken = [lines[start]]
    length = len(lines[start])
    for line in lines[start + 1 :]:
        length += len(line) + 1
        if length > _PASSAGE_CHARS or len(taken) == _PASSAGE_LINES:
            break
        taken.append(line)
    return "\n".join(taken).strip()
