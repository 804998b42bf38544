"""What `config check` says about `[answering]`: what its model lacks, and what it will be told of its costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rag_pipeline.answering.language_model import Message
from rag_pipeline.answering.models import make_language_model, what_is_missing
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.settings import Settings, cost_of
from rag_pipeline.settings.complaints import Complaint

_WITHOUT = "answers are quoted passages"


def answering_warnings(settings: Settings, environ: Mapping[str, str], *, online: bool) -> Iterator[Complaint]:
    """Everything that would only show when somebody asks; `online` also asks the model."""
    answering = settings.answering
    missing = list(what_is_missing(answering, environ))
    for key, wrong in missing:
        yield Complaint(place=("answering", key), message=f"{wrong}; until then {_WITHOUT}")
    if answering.provider == "none" or missing:
        return
    if cost_of(answering.model, 0, 0, prices=settings.prices) is None:
        yield Complaint(
            place=("answering", "model"),
            message=f"there is no price for {answering.model!r}, so that no answer says what it cost: "
            f'add `"{answering.model}" = {{input = USD, output = USD}}` under [prices] (0 when it costs nothing)',
        )
    if online:
        yield from _asked(settings, environ)


def _asked(settings: Settings, environ: Mapping[str, str]) -> Iterator[Complaint]:
    answering = settings.answering
    try:
        model = make_language_model(answering, environ=environ)
        if model is None:
            return
        try:
            question = [Message(role="user", content="Is anybody there?")]
            model.complete(question, max_tokens=answering.max_answer_tokens, timeout_s=answering.timeout_s)
        finally:
            model.close()
    except RagPipelineError as error:
        yield Complaint(place=("answering", "model"), message=f"the model cannot be used: {error}")
