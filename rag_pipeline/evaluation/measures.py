"""Measures of rankings, computed by ir-measures (MacAvaney et al. 2022, https://ir-measur.es) as trec_eval does.

At each cutoff k: precision `P@k` and recall `R@k`, where any grade from 1 up counts as relevant; the reciprocal rank of
the first relevant one, `RR@k`, whose mean is MRR; `nDCG@k` with the grade itself as gain; and `Success@k`, whether
anything relevant was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rag_pipeline.model import Scores

CUTOFFS: Final = (5, 10, 20)
_FAMILIES: Final = ("nDCG", "R", "P", "RR", "Success")
MEASURES: Final = tuple(f"{family}@{k}" for family in _FAMILIES for k in CUTOFFS)
"""Names of what is measured, the most telling family first."""
HEADLINE: Final = ("nDCG@10", "R@10", "RR@10", "P@5", "Success@5")
"""Those that fit into a table for people; the first one decides which question got worse."""


def measure(rankings: Mapping[str, Sequence[str]], grades: Mapping[str, Mapping[str, int]]) -> Scores:
    """Each measure of each question, for rankings (best first, each thing once) against the grades of what is relevant.

    A question without a ranking found nothing: 0 everywhere.

    Raises:
        ValueError: nothing is relevant to a question, so that no ranking could be better than another, or a ranking
            names something twice.
    """
    import ir_measures

    for query in grades:
        if not any(grade > 0 for grade in grades[query].values()):
            raise ValueError(f"nothing is relevant to question {query!r}: leave it out")
        if len(set(rankings.get(query, ()))) < len(rankings.get(query, ())):
            raise ValueError(f"the ranking for question {query!r} names something twice")
    # Numbers for names: trec_eval's code, written in C, takes only some of them.
    queries = list(grades)
    found: dict[str, dict[str, float]] = {query: {} for query in queries}
    measures = {getattr(ir_measures, family) @ k: f"{family}@{k}" for k in CUTOFFS for family in _FAMILIES}
    qrels, run = {}, {}
    for number, query in enumerate(queries):
        names = {name: str(n) for n, name in enumerate({*grades[query], *rankings.get(query, ())})}
        qrels[str(number)] = {names[name]: grade for name, grade in grades[query].items()}
        ranking = rankings.get(query, ())
        # Scores that fall by one: ties would be broken by name.
        run[str(number)] = {names[name]: float(len(ranking) - rank) for rank, name in enumerate(ranking)}
    for value in ir_measures.iter_calc(list(measures), qrels, run):
        found[queries[int(value.query_id)]][measures[value.measure]] = float(value.value)
    return {query: {name: found[query].get(name, 0.0) for name in MEASURES} for query in queries}
