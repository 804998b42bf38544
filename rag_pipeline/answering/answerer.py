"""A question, with the conversation that it goes on with, to an answer: at once, or piece by piece as it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rag_pipeline.answering import confidence, extractive
from rag_pipeline.answering.cleaning import Cleaner
from rag_pipeline.answering.extractive import best_passage, is_code
from rag_pipeline.answering.follow_ups import follow_ups
from rag_pipeline.answering.language_model import LanguageModel, Message, Piece
from rag_pipeline.answering.links import Links
from rag_pipeline.answering.own_words import not_borne_out, not_known, pleasantry, says_unknown
from rag_pipeline.answering.prompts import answer_messages
from rag_pipeline.answering.reply import Reply
from rag_pipeline.answering.rewriting import rewritten
from rag_pipeline.answering.support import Checked, checked
from rag_pipeline.embedding.tokens import TokenCounter, encoding_counter
from rag_pipeline.index.changes import IndexState
from rag_pipeline.model import Answer, CitedSource, SearchHit
from rag_pipeline.retrieval.context import Context, assemble
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found
from rag_pipeline.retrieval.small_talk import should_retrieve
from rag_pipeline.settings import Answering, cost_of

Price = Callable[[str, int, int], float | None]
"""Model, input tokens, output tokens → USD; None: nobody knows."""

_ENCODING: Final = "o200k_base"
_REWRITING_SHARE: Final = 0.25
"""Of the time for an answer, so much may go into understanding the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody wants to know."""

    query: SearchQuery
    """The question as it was asked, by whom, and where to look."""
    history: Sequence[Message] = ()
    """Earlier turns of user and assistant, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What the answer will be made from."""

    asked: str
    """What was looked up: the question, made to stand alone."""
    hits: Sequence[SearchHit]
    degraded: str
    """What the search had to do without."""
    state: IndexState | None = None
    """As the search said it; see `Found.state`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """More of the text, cleaned; what it cites is held against the sources only when it is complete."""

    text: str


@dataclass(slots=True, kw_only=True)
class _Work:
    """What is known of an answer while it is made."""

    question: str
    asked: str
    problems: list[str]
    spent: list[Piece]
    hits: Sequence[SearchHit] = ()
    evidence: float = 0.0


@dataclass(slots=True, kw_only=True)
class _Writing:
    """A model's text while it comes in."""

    reply: Reply
    cleaner: Cleaner
    shown: Sequence[SearchHit]
    text: str = ""
    is_cut_off: bool = False


class Answerer:
    """Answers questions from what a search finds; may be used from several threads.

    Without a model, and where one fails, answers are quotes. `prices` says what a model's tokens cost. `count_tokens`
    counts what is shown to the model, by default in OpenAI's o200k tokens.
    """

    def __init__(
        self, *, search: Callable[[SearchQuery], Found], model: LanguageModel | None, settings: Answering,
        count_tokens: TokenCounter | None = None, prices: Price = cost_of,
    ) -> None:  # fmt: skip
        self._search = search
        self._model = model
        self._settings = settings
        self._count_tokens = count_tokens
        self._prices = prices

    def ask(self, question: Question) -> Answer:
        """The answer; raises as `stream`."""
        *_, last = self.stream(question)
        assert isinstance(last, Answer)
        return last

    def stream(self, question: Question) -> Iterator[Looked | Wrote | Answer]:
        """What was found, the text piece by piece, and one answer at the end, which is authoritative.

        Small talk is answered without a search. A model that fails is not raised: the answer is then made of quotes,
        and says so in `degraded`.

        Raises:
            ConfigError: the query cannot be answered as it stands; and whatever the search raises.
        """
        query = question.query
        query.check()
        if not should_retrieve(query.text):
            reply = pleasantry(query.text)
            yield Wrote(text=reply)
            yield Answer(question=query.text, asked=query.text, text=reply, status="small_talk", confidence=1.0)
            return
        turns = _turns(question.history, most=self._settings.history_turns)
        work = self._understood(query.text, turns)
        found = self._search(replace(query, text=work.asked))
        work.hits = found.hits
        work.problems += [found.degraded] if found.degraded else []
        yield Looked(asked=work.asked, hits=found.hits, degraded=found.degraded, state=found.state)
        # What the conversation adds helps to find, and may say nothing about what answers.
        work.evidence = max(confidence.evidence(text, found.hits) for text in {query.text, work.asked})
        yield from self._answered(work, turns)

    def _understood(self, text: str, turns: Sequence[Message]) -> _Work:
        patience = self._settings.timeout_s * _REWRITING_SHARE
        alone = rewritten(text, history=turns, model=self._model, timeout_s=patience)
        problems = [alone.problem] if alone.problem else []
        return _Work(question=text, asked=alone.text, spent=list(alone.spent), problems=problems)

    def _answered(self, work: _Work, turns: Sequence[Message]) -> Iterator[Wrote | Answer]:
        if not work.hits or work.evidence < self._settings.min_evidence:
            yield from self._given(self._unknown(work), work)
            return
        context = self._context(work) if self._model else None
        if self._model is None or context is None:
            yield from self._given(self._quoted(work), work)
            return
        links = Links(text for hit in context.sources for text in (hit.text, hit.url))
        cleaner = Cleaner(sources=len(context.sources), links=links)
        writing = _Writing(reply=Reply(), cleaner=cleaner, shown=context.sources)
        try:
            yield from self._written(self._model, writing, self._messages(work, context, turns), work)
            answer = self._checked(writing, work)
        # Whatever a model or its library does, there are still the passages.
        except Exception as error:
            work.problems.append(f"answered with quotes, since the language model failed: {error}")
            answer = self._quoted(work)
        yield self._complete(answer, work)

    def _given(self, answer: Answer, work: _Work) -> Iterator[Wrote | Answer]:
        yield Wrote(text=answer.text)
        yield self._complete(answer, work)

    def _written(
        self, model: LanguageModel, writing: _Writing, messages: Sequence[Message], work: _Work
    ) -> Iterator[Wrote]:
        """The pieces of a model's text that can be shown already."""
        settings = self._settings
        for piece in model.stream(messages, max_tokens=settings.max_answer_tokens, timeout_s=settings.timeout_s):
            work.spent.append(replace(piece, text=""))
            writing.is_cut_off |= piece.is_cut_off
            if shown := writing.cleaner.feed(writing.reply.feed(piece.text)):
                writing.text += shown
                yield Wrote(text=shown)
        if rest := writing.cleaner.feed(writing.reply.finish()) + writing.cleaner.finish():
            writing.text += rest
            yield Wrote(text=rest)

    def _messages(self, work: _Work, context: Context, turns: Sequence[Message]) -> list[Message]:
        return answer_messages(
            work.question, context=context.text, asked=work.asked, history=turns,
            follow_ups=self._settings.follow_ups,
        )  # fmt: skip

    def _context(self, work: _Work) -> Context | None:
        """What the model is shown; None where that cannot be made, which the answer says."""
        try:
            counter = self._count_tokens or encoding_counter(_ENCODING)
            context = assemble(work.hits, budget_tokens=self._settings.context_tokens, count_tokens=counter)
        # A tokenizer that cannot be loaded is no reason not to answer.
        except Exception as error:
            work.problems.append(f"answered with quotes, since the sources could not be counted: {error}")
            return None
        if not context.enabled:
            work.problems.append(
                f"answered with quotes, since nothing that was found fits {self._settings.context_tokens} tokens: "
                "raise answering.context_tokens"
            )
            return None
        return context

    def _checked(self, writing: _Writing, work: _Work) -> Answer:
        """What a model wrote, held against its sources."""
        assert self._model is not None
        numbering = writing.cleaner.numbering
        if not writing.text and not writing.reply.is_unknown:
            work.problems.append("answered with quotes, since the language model wrote nothing")
            return self._quoted(work)
        cited = [writing.shown[number - 1] for number in numbering.cited]
        held = checked(writing.text, cited, found=writing.shown)
        if writing.is_cut_off:
            work.problems.append(f"cut off after answering.max_answer_tokens = {self._settings.max_answer_tokens}")
        answer = Answer(
            question=work.question, text=f"{held.text} …" if writing.is_cut_off else held.text, status="answered",
            sources=_sources(held), confidence=confidence.of_answer(work.evidence, held.support),
            removed_citations=numbering.removed, model=self._model.name,
        )  # fmt: skip
        if writing.reply.is_unknown or (not held.sources and says_unknown(held.text)):
            text = answer.text or not_known(work.asked, work.hits)
            return replace(answer, status="unknown", text=text, confidence=work.evidence)
        suggested = follow_ups(work.asked, writing.reply.questions, writing.shown, most=self._settings.follow_ups)
        if not held.is_borne_out:
            text = f"{not_borne_out(work.question)}\n\n{answer.text}"
            return replace(answer, status="unsupported", text=text, follow_ups=suggested)
        return replace(answer, follow_ups=suggested)

    def _quoted(self, work: _Work) -> Answer:
        answer = extractive.answer(work.asked, work.hits)
        suggested = follow_ups(work.asked, [], work.hits, most=self._settings.follow_ups)
        return replace(answer, confidence=work.evidence, follow_ups=suggested if answer.sources else ())

    def _unknown(self, work: _Work) -> Answer:
        text = not_known(work.asked, work.hits)
        return Answer(question=work.question, text=text, status="unknown", confidence=work.evidence)

    def _complete(self, answer: Answer, work: _Work) -> Answer:
        """With what was asked of models, what that cost, and what could not be done."""
        read = sum(piece.input_tokens for piece in work.spent)
        written = sum(piece.output_tokens for piece in work.spent)
        cost: float | None = 0.0
        if self._model and (read or written):
            cost = self._prices(self._model.name, read, written)
        elif answer.model:
            cost = None  # written by a service that does not say how much that was
        return replace(
            answer, question=work.question, asked=work.asked, input_tokens=read, output_tokens=written, cost_usd=cost,
            degraded="; ".join(dict.fromkeys(work.problems)),
        )  # fmt: skip


def _sources(held: Checked) -> list[CitedSource]:
    """What a checked answer cites, by number, with the words that bear it out."""
    cited = zip(held.sources, held.supports, held.claims, strict=True)
    return [
        CitedSource(number=n, hit=hit, support=share, quote=best_passage(said, hit.text, code=is_code(hit)))
        for n, (hit, share, said) in enumerate(cited, start=1)
    ]


def _turns(history: Sequence[Message], *, most: int) -> list[Message]:
    """The last turns of user and assistant; whoever sends a conversation has no system to speak for."""
    turns = [turn for turn in history if turn.role in ("user", "assistant") and turn.content.strip()]
    return turns[len(turns) - most :] if len(turns) > most else turns
