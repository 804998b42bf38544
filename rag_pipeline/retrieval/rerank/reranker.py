"""What every reranker offers, what it reads of a hit, and the one place that picks a provider.

No provider's library is imported here: each has its own module, imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from rag_pipeline.embedding.tokens import encodable
from rag_pipeline.model import SearchHit

if TYPE_CHECKING:
    from rag_pipeline.settings import Rerank


class Reranker(Protocol):
    """Scores passages against a question, seeing both together. May be called from several threads."""

    @property
    def name(self) -> str:
        """Provider and model, for people."""

    def scores(self, question: str, hits: Sequence[SearchHit]) -> list[float]:
        """One finite score for each hit, in the order of the hits; higher is better, comparable within one call.

        Raises:
            TransientError: a service could not be reached, stayed overloaded through all retries, or took too long.
            PermanentError: it refuses to work, or its answer makes no sense.
            ConfigError: a key, a model name, an address or a package is missing or wrong.
        """

    def close(self) -> None:
        """Let go of models and connections; safe to call twice."""


def make_reranker(settings: Rerank, *, environ: Mapping[str, str]) -> Reranker | None:
    """The reranker that the settings ask for; None when they ask for none.

    Makes no network call and loads no model yet. A key in `environ` is read only when the chosen provider takes one.

    Raises:
        ConfigError: a missing key, model name, base URL or optional package.
    """
    match settings.provider:
        case "none":
            return None
        case "cross-encoder":
            from rag_pipeline.retrieval.rerank.cross_encoder import make_cross_encoder

            return make_cross_encoder(settings)
        case "hosted":
            from rag_pipeline.retrieval.rerank.hosted import HostedReranker

            return HostedReranker(settings, environ=environ)
        case "openai":
            from rag_pipeline.retrieval.rerank.judge import LanguageModelJudge

            return LanguageModelJudge(settings, environ=environ)


def passage_of(hit: SearchHit) -> str:
    """What a reranker reads of a hit: its text, under those of its title and headings that the text does not hold."""
    above = [name for name in dict.fromkeys((hit.title, *hit.heading_path)) if name and name not in hit.text]
    return encodable(" > ".join(above) + "\n\n" + hit.text if above else hit.text)
