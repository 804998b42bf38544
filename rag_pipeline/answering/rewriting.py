"""A question that goes on with a conversation, made to stand alone before it is looked up.

Asked of the model when there is one and the question needs it; by rules otherwise, which are pure: what the last
questions were about is added to it. Never fails: in the worst case the question is looked up as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rag_pipeline.answering.citations import without_marks
from rag_pipeline.answering.language_model import LanguageModel, Message, Piece
from rag_pipeline.answering.prompts import rewriting_messages
from rag_pipeline.answering.reply import Reply
from rag_pipeline.answering.terms import content_terms, identifiers
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.lexical.analyzer import terms_of

_MOST_TOKENS: Final = 120
_MOST_CHARS: Final = 400
_MOST_ADDED: Final = 6
_TURNS: Final = 2
"""So many of the user's last turns say what is talked about."""
_FEW_TERMS: Final = 3
_REFERS: Final = re.compile(
    r"\b(?:it|its|they|them|their|theirs|this|that|these|those|one|ones|he|she|him|her|there|then|the same|such|both|"
    r"another|others?|the (?:first|second|last|former|latter)|above|instead|so|es|sie|ihn|ihm|ihr|ihre|dies\w*|das|"
    r"dafür|damit|davon|dort|jene\w*|ça|cela|celui|celle|ceux|eso|esto|ello|ellos|questo|quello|isso|isto)\b",
    re.IGNORECASE,
)
_GOES_ON: Final = re.compile(
    r"^\s*(?:and|but|or|so|also|what about|how about|why|then|ok|okay|und|aber|oder|was ist mit|wie wäre|et|mais|ou|y|"
    r"pero|e|ma)\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W_][\w./:+#-]*[\w+#]|\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A question as it is looked up."""

    text: str
    spent: Sequence[Piece] = ()
    """What the model charged, text aside."""
    problem: str = ""
    """Why the model was asked in vain."""


def depends_on(question: str, history: Sequence[Message]) -> bool:
    """Whether a question seems to need the conversation to be understood."""
    if not any(turn.role == "user" and turn.content.strip() for turn in history):
        return False
    few = len(content_terms(question)) <= _FEW_TERMS
    return few or bool(_REFERS.search(question)) or bool(_GOES_ON.search(question))


def rewritten(
    question: str, *, history: Sequence[Message], model: LanguageModel | None, timeout_s: float
) -> Rewritten:  # fmt: skip
    """The question to look up; never raises for what a model does, and asks it only where it may help."""
    if not depends_on(question, history):
        return Rewritten(text=question)
    if model is None:
        return Rewritten(text=with_topic(question, history))
    try:
        messages = rewriting_messages(question, history=history)
        piece = model.complete(messages, max_tokens=_MOST_TOKENS, timeout_s=timeout_s)
    except RagPipelineError as error:
        return Rewritten(text=with_topic(question, history), problem=f"not rewritten by the model: {error}")
    spent = (Piece(input_tokens=piece.input_tokens, output_tokens=piece.output_tokens),)
    text = "" if piece.is_cut_off else _one_question(piece.text, question, history)
    return Rewritten(text=text or with_topic(question, history), spent=spent)


def with_topic(question: str, history: Sequence[Message]) -> str:
    """The question with the words that the user's last questions were about, the telling ones first. Pure."""
    known = set(terms_of(question))
    added: list[str] = []
    turns = [turn.content for turn in history if turn.role == "user" and turn.content.strip()][-_TURNS:]
    for turn in reversed(turns):
        telling = set(content_terms(turn))
        named = identifiers(turn)
        words = [word for word in _WORD.findall(turn) if telling & set(terms_of(word))]
        for word in sorted(words, key=lambda one: not named & set(terms_of(one))):
            terms = set(terms_of(word))
            if len(added) < _MOST_ADDED and not terms <= known:
                added.append(word)
                known |= terms
    return f"{question.strip()} ({' '.join(added)})" if added else question


def _one_question(said: str, question: str, history: Sequence[Message]) -> str:
    """The model's question; empty where it wrote something else: many lines, an essay, or words from nowhere."""
    reply = Reply()
    text = without_marks((reply.feed(said) + reply.finish()).strip()).strip("\"'`* \n")
    if not text or "\n" in text or len(text) > max(_MOST_CHARS, 2 * len(question)):
        return ""
    told = set(terms_of("\n".join([question, *(turn.content for turn in history)])))
    terms = content_terms(text)
    known = sum(term in told for term in terms)
    return text if terms and known >= len(terms) / 2 else ""
