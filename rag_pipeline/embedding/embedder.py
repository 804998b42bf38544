"""What every embedder offers, and the one place that picks a provider.

No provider's library is imported here: each has its own module, imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rag_pipeline.settings import Embedding

Vectors = NDArray[np.float32]
"""Shape (n, d), one row per text; a single vector has shape (d,)."""

BUFFER_TEXTS = 2048
"""So many texts are looked at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedBatch:
    """A finished part of one `Embedder.embed` call, ready to be stored."""

    indices: Sequence[int]
    """Which of the given texts the rows of `vectors` belong to."""
    vectors: Vectors
    """Shape (len(indices), dimensions), float32, finite."""
    tokens: int
    """What the model read (and a service charges) for this part."""
    failures: Sequence[tuple[int, str]] = ()
    """Texts that the model refuses for good: index and reason."""
    requests: int = 0
    """Answered by a service for this part; 0 for a model that runs here."""


class Embedder(Protocol):
    """Turns texts into vectors that may be compared by cosine similarity.

    One embedder is used from one thread at a time; what it does in parallel is its own affair.
    """

    @property
    def provider(self) -> str:
        """The setting `embedding.provider` that chose it."""

    @property
    def model(self) -> str:
        """The model's name, as the provider knows it."""

    @property
    def recipe(self) -> str:
        """How a text is made into the model's input, as a short readable fingerprint; part of the embedding space."""

    @property
    def dimensions(self) -> int | None:
        """Length of the vectors; None while a remote model has not answered yet and none was configured."""

    @property
    def model_seconds(self) -> float:
        """Wall-clock time during which at least one forward pass or request was running, since construction."""

    def embed(self, texts: Sequence[str]) -> Iterator[EmbeddedBatch]:
        """Vectors of the texts, in finished parts and in any order; each index comes back exactly once.

        A text that is refused for good comes back in `failures`. When a part cannot be had, the parts that were under
        way are still yielded before the error is raised, so that what was computed or paid for can be stored.

        Raises:
            TransientError: the service could not be reached or stayed overloaded through all retries.
            PermanentError: the service refuses to work, for instance because the quota is spent.
            ConfigError: a key, a model name or a package is missing or wrong.
            DimensionMismatch: the vectors do not have the expected length.
        """

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question, shape (d,); raises what `embed` raises, and ItemError when the text is refused.

        UnreadableText: the model knows too few of its words.
        """

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Length of each text in the model's tokens, without the marks that the model adds."""

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        """What `embed` will count as `tokens` for each text: with prefixes and marks, cut where it would be cut.

        Makes no request. Exact where the model's own tokenizer is known, see `token_counter`.
        """

    def close(self) -> None:
        """Stop threads and connections; safe to call twice."""


@runtime_checkable
class StreamingEmbedder(Protocol):
    """An embedder that needs no end of its texts: a slow request holds up no others, and none waits for a last one."""

    def embed_stream(self, texts: Iterable[str]) -> Iterator[EmbeddedBatch]:
        """As `Embedder.embed`; indices count the texts as they come.

        A text is read when there is work for it, on the thread that iterates and only between two parts, so memory does
        not grow with the texts. An error of `texts` is raised as one of the embedder's own would be.
        """


@runtime_checkable
class ChoosyEmbedder(Protocol):
    """An embedder whose model cannot read every text."""

    def readable(self, texts: Sequence[str]) -> list[bool]:
        """Whether the model knows enough words of each text, as it is given to `embed`. Makes no request."""


def embed_stream(
    embedder: Embedder, texts: Iterable[str], *, buffer_texts: int = BUFFER_TEXTS
) -> Iterator[EmbeddedBatch]:
    """Vectors of texts that are read as a stream; `buffer_texts` at a time by an embedder that wants a sequence."""
    if isinstance(embedder, StreamingEmbedder):
        yield from embedder.embed_stream(texts)
        return
    waiting, start = iter(texts), 0
    while buffer := list(islice(waiting, buffer_texts)):
        for batch in embedder.embed(buffer):
            yield replace(
                batch,
                indices=[start + index for index in batch.indices],
                failures=[(start + index, reason) for index, reason in batch.failures],
            )
        start += len(buffer)


def make_embedder(settings: Embedding, *, environ: Mapping[str, str]) -> Embedder:
    """The embedder that the settings ask for.

    Makes no network call and loads no model yet. A key in `environ` is read only when the chosen provider needs one,
    and only from the variable that `settings.api_key_env` names.

    Raises:
        ConfigError: an unknown local model, a missing key, base URL or optional package.
    """
    from rag_pipeline.embedding.prompts import PromptedEmbedder
    from rag_pipeline.embedding.readability import KnowsWords, SelectiveEmbedder

    provider = _provider(settings, environ)
    embedder = PromptedEmbedder(
        provider,
        passage_prefix=settings.passage_prefix,
        query_prefix=settings.query_prefix,
        context=settings.context,
    )
    if isinstance(provider, KnowsWords) and settings.min_known_share > 0:
        return SelectiveEmbedder(embedder, vocabulary=provider, min_known_share=settings.min_known_share)
    return embedder


def refusal(settings: Embedding) -> str | None:
    """Why a model that is known does not run on this machine, or with these settings; None: nothing speaks against it.

    Loads no model, and asks nobody.
    """
    if settings.provider != "local":
        return None
    from rag_pipeline.embedding import local_model

    return local_model.refusal(settings)


def _provider(settings: Embedding, environ: Mapping[str, str]) -> Embedder:
    match settings.provider:
        case "local":
            from rag_pipeline.embedding.local import LocalEmbedder

            return LocalEmbedder(settings)
        case "openai" | "azure-openai":
            from rag_pipeline.embedding.openai_compatible import OpenAIEmbedder

            return OpenAIEmbedder(settings, environ=environ)
        case "sentence-transformers":
            from rag_pipeline.embedding.hub import SentenceTransformersEmbedder

            return SentenceTransformersEmbedder(settings)
        case "fastembed":
            from rag_pipeline.embedding.hub import FastembedEmbedder

            return FastembedEmbedder(settings)
