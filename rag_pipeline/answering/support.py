"""Whether what an answer says stands in the sources that it cites, as far as words can tell.

Cheap and without a model: which share of a sentence's terms its source holds, the rare ones counting more, and whether
numbers and negation agree. A source can bear out a sentence in other words, which this sees in part; what it can tell
for sure is that a source does not even speak of something. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from rag_pipeline.answering.citations import renumbered
from rag_pipeline.answering.claims import Claim, claims_of
from rag_pipeline.answering.terms import (
    Rarity,
    content_terms,
    identifiers,
    is_negated,
    language_of,
    numbers,
    rarities,
    sentences,
)  # fmt: skip
from rag_pipeline.lexical.analyzer import terms_of
from rag_pipeline.model import SearchHit

BORNE_OUT: Final = 0.35
"""From here on a source bears a sentence out; docs/answering.md has the figures."""
UNTOLD: Final = 0.5
"""Of a sentence that has no words to compare, or is in another language than its source."""
_UNCITED: Final = 0.5
"""What a sentence without a citation counts, though some source bears it out."""
_IDENTIFIER_WEIGHT: Final = 1.5
_MISSING_NUMBER: Final = 0.4
_OTHER_NEGATION: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An answer after its citations were held against their sources."""

    text: str
    """Citations that are not borne out are taken out, the others renumbered without gaps."""
    sources: Sequence[SearchHit]
    """Those that are still cited, by their numbers."""
    supports: Sequence[float]
    """Of each: how well it bears out the sentences that cite it."""
    claims: Sequence[str]
    """Of each: the words of these sentences."""
    support: float
    """Of the whole answer, 0 to 1."""

    @property
    def is_borne_out(self) -> bool:
        """Whether the answer stands on its sources."""
        return bool(self.sources) and self.support >= BORNE_OUT


def source_text(hit: SearchHit) -> str:
    """All that a hit says: where it stands, too."""
    return "\n".join([hit.title, *hit.heading_path, hit.text])


def support(claim: str, source: str, *, rarity: Rarity) -> float:
    """How well a source bears a sentence out, 0 to 1."""
    terms = content_terms(claim)
    named = identifiers(claim)
    spoken, written = language_of(claim), language_of(source)
    if spoken and written and spoken != written:
        terms = [term for term in terms if term in named]
    if not terms:
        return UNTOLD
    held = frozenset(terms_of(source))
    weights = {term: rarity.of(term) * (_IDENTIFIER_WEIGHT if term in named else 1) for term in terms}
    covered = sum(weight for term, weight in weights.items() if term in held) / sum(weights.values())
    if numbers(claim) - numbers(source):
        covered *= _MISSING_NUMBER
    if _denies(claim, source, weights):
        covered *= _OTHER_NEGATION
    return min(1.0, covered)


def checked(text: str, cited: Sequence[SearchHit], *, found: Sequence[SearchHit]) -> Checked:
    """A cleaned answer whose `[Source N]` is the Nth of `cited`, held against them; `found` is all that was shown."""
    rarity = rarities([source_text(hit) for hit in found])
    texts = [source_text(hit) for hit in cited]
    claims = _with_code_cited(claims_of(text))
    scored = [
        (claim, {n: support(claim.text, texts[n - 1], rarity=rarity) for n in claim.cited if 1 <= n <= len(texts)})
        for claim in claims
    ]
    kept = [(claim, {n: score for n, score in scores.items() if score >= BORNE_OUT}) for claim, scores in scored]
    numbers_kept = sorted({n for _, scores in kept for n in scores})
    return Checked(
        text=renumbered(_without_refuted(text, kept), numbers_kept),
        sources=[cited[n - 1] for n in numbers_kept],
        supports=[fmean(scores[n] for _, scores in kept if n in scores) for n in numbers_kept],
        claims=[" ".join(claim.text for claim, scores in kept if n in scores) for n in numbers_kept],
        support=_of_all(kept, [source_text(hit) for hit in found], rarity=rarity),
    )


def _with_code_cited(claims: Sequence[Claim]) -> list[Claim]:
    """A block of code without a citation stands on what the sentence before it cites."""
    found: list[Claim] = []
    for claim in claims:
        cited = found[-1].cited if claim.is_code and not claim.cited and found else claim.cited
        found.append(
            Claim(start=claim.start, end=claim.end, text=claim.text, cited=cited, is_code=claim.is_code)
        )  # fmt: skip
    return found


def _of_all(claims: Sequence[tuple[Claim, Mapping[int, float]]], found: Sequence[str], *, rarity: Rarity) -> float:
    """The mean over the claims, each by how much it says."""
    total = weight = 0.0
    for claim, scores in claims:
        says = float(len(content_terms(claim.text)) or 1)
        borne_out = [_UNCITED * support(claim.text, text, rarity=rarity) for text in found] if not scores else []
        total += says * max([*scores.values(), *borne_out], default=0.0)
        weight += says
    return total / weight if weight else 0.0


def _without_refuted(text: str, kept: Sequence[tuple[Claim, Mapping[int, float]]]) -> str:
    """The text without the marks of sources that do not bear out the sentence they stand in."""
    parts, at = [], 0
    for claim, scores in kept:
        inside = text[claim.start : claim.end]
        for number in claim.cited:
            if number not in scores:
                inside = inside.replace(f" [Source {number}]", "").replace(f"[Source {number}]", "")
        parts += [text[at : claim.start], inside]
        at = claim.end
    return "".join([*parts, text[at:]])


def _denies(claim: str, source: str, weights: Mapping[str, float]) -> bool:
    """Whether the sentence of the source that comes closest says no where the claim says yes, or the other way."""
    total = sum(weights.values())
    best, best_share = "", 0.5
    for sentence in sentences(source):
        held = frozenset(terms_of(sentence))
        share = sum(weight for term, weight in weights.items() if term in held) / total
        if share > best_share:
            best, best_share = sentence, share
    return bool(best) and is_negated(best) != is_negated(claim)
