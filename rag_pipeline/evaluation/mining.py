"""Labels out of what the index knows: an issue's title asks, the pull requests that closed it and their files answer.

People wrote both, for each other and not for us, and nobody had to label anything. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rag_pipeline.evaluation.labels import Label, LabelSet, Question
from rag_pipeline.index.evaluations import ClosedIssue

MINED: Final = "mined from closed issues"
"""The name of the label set."""
MOST_ISSUES: Final = 500
_MOST_FILES = 10
"""A pull request that changed more files than this does not say where the answer lies."""
_FEWEST_WORDS = 2
_REFERENCE = re.compile(r"[([]?(?:\b[\w.-]+/[\w.-]+)?(?:#|\bGH-)\d+\b[)\]]?:?")


def mine(issues: Iterable[ClosedIssue]) -> LabelSet:
    """A question for each issue that a merged pull request closed: the pull request has grade 2, its files grade 1.

    The question is the issue's title without numbers of issues, which the answer would quote; the issue itself, which
    the title finds first, is left out of the ranking.
    """
    questions: dict[str, Question] = {}
    for issue in issues:
        text = " ".join(_REFERENCE.sub(" ", issue.title).split())
        if len(re.findall(r"\w+", text)) < _FEWEST_WORDS:
            continue
        known = questions.get(issue.issue)
        labels = dict.fromkeys([*(known.relevant if known else ()), *_labels(issue)])
        questions[issue.issue] = Question(
            id=issue.reference, text=text, relevant=tuple(labels),
            left_out=(Label(source_type="github_issue", source_id=issue.issue),),
        )  # fmt: skip
    return LabelSet(name=MINED, questions=list(questions.values()))


def _labels(issue: ClosedIssue) -> list[Label]:
    files = issue.files if len(issue.files) <= _MOST_FILES else ()
    return [
        Label(source_type="github_pull_request", source_id=issue.pull_request, grade=2),
        *(Label(source_type=kind, source_id=id_) for kind, id_ in files),
    ]
