"""Labels out of what is known already, so that nobody has to label anything. Pure.

An issue's title asks, the pull requests that closed it and their files answer: people wrote both, for each other and
not for us. And a question that was asked is answered by the hits that whoever asked it called helpful.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rag_pipeline.evaluation.labels import Label, LabelSet, Question
from rag_pipeline.index.evaluations import ClosedIssue
from rag_pipeline.index.feedback import HelpfulHit
from rag_pipeline.model import stable_id

MINED: Final = "mined from closed issues"
"""The name of the label set."""
MOST_ISSUES: Final = 500
MINED_FEEDBACK: Final = "mined from feedback"
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


def mine_feedback(hits: Iterable[HelpfulHit]) -> LabelSet:
    """A question for each that has a helpful hit, with the documents, or lines of them, that were helpful.

    A question keeps its id as long as its words are the same. Lines of a document make the whole of it superfluous.
    """
    texts: dict[str, str] = {}
    labels: dict[str, list[Label]] = {}
    for hit in hits:
        text = " ".join(hit.question.split())
        texts.setdefault(text.lower(), text)
        label = Label(source_type=hit.source_type, source_id=hit.source_id, lines=hit.lines)
        labels.setdefault(text.lower(), []).append(label)
    return LabelSet(name=MINED_FEEDBACK, questions=[
        Question(id=f"asked-{stable_id('question', key).hex[:12]}", text=text, relevant=_narrowest(labels[key]))
        for key, text in texts.items()
    ])  # fmt: skip


def _narrowest(labels: Iterable[Label]) -> tuple[Label, ...]:
    found = list(dict.fromkeys(labels))
    with_lines = {(label.source_type, label.source_id) for label in found if label.lines}
    return tuple(label for label in found if label.lines or (label.source_type, label.source_id) not in with_lines)


def _labels(issue: ClosedIssue) -> list[Label]:
    files = issue.files if len(issue.files) <= _MOST_FILES else ()
    return [
        Label(source_type="github_pull_request", source_id=issue.pull_request, grade=2),
        *(Label(source_type=kind, source_id=id_) for kind, id_ in files),
    ]
