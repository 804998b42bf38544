"""One request to an OpenAI-compatible embeddings endpoint, and what each kind of answer means.

No retries, batches or threads here: those are the embedder's. Everything leaves as vectors or as one of our errors.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rag_pipeline.embedding.embedder import Vectors
from rag_pipeline.errors import ConfigError, ItemError, RagPipelineError, TransientError
from rag_pipeline.remote.refusals import REFUSED_INPUT, Service, refusal, without_key

if TYPE_CHECKING:
    import openai

    from rag_pipeline.settings import Embedding

OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedVectors:
    """What the service answered to one request."""

    vectors: Vectors
    """Shape (texts, d), in the order of the texts."""
    usable: NDArray[np.bool_]
    """Shape (texts,): false where a vector holds NaN or infinity, or is all zero and so has no direction."""
    tokens: int | None
    """As charged; None when the service does not say."""


class EmbeddingService:
    """The embeddings endpoint that the settings name; may be called from several threads."""

    def __init__(
        self,
        settings: Embedding,
        *,
        environ: Mapping[str, str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._now = now
        self._key = _api_key(settings, environ)
        self.url = settings.base_url or OPENAI_URL
        self._client = _client(settings, key=self._key, url=self.url)
        self._format = _Format(known="" if settings.base_url and settings.provider == "openai" else "base64")

    def request(self, texts: Sequence[str], *, timeout_s: float) -> ServedVectors:
        """Vectors of the texts, in one request; in two when it turns out that the service knows no base64.

        Raises:
            TransientError: not reached, too slow, overloaded, or an answer that makes no sense.
            ItemError: the input is refused (400, 413, 422).
            ConfigError: the key, the model or the URL is wrong (401, 403, 404).
            PermanentError: the quota is spent, or another refusal that repeating cannot cure.
        """
        with self._format.chosen() as chosen:
            try:
                served = self._send(texts, chosen.name, timeout_s=timeout_s)
            except RagPipelineError as error:
                if not chosen.is_trial or (isinstance(error, TransientError) and error.overloaded):
                    raise
                chosen.name = "float"
                served = self._send(texts, chosen.name, timeout_s=timeout_s)
            chosen.works = True
        return served

    def _send(self, texts: Sequence[str], encoding: str, *, timeout_s: float) -> ServedVectors:
        import openai

        options: dict[str, Any] = {} if self._settings.dimensions is None else {"dimensions": self._settings.dimensions}
        try:
            response = self._client.embeddings.create(
                model=self._settings.model,
                input=list(texts),
                encoding_format=encoding,  # type: ignore[arg-type] # a literal of `_Format`
                timeout=timeout_s,
                **options,
            )
        except openai.APIStatusError as error:
            raise self._meaning(error) from error
        except openai.APITimeoutError as error:
            raise TransientError(f"{self.url} did not answer within {timeout_s:g} s") from error
        except openai.APIConnectionError as error:
            raise TransientError(f"cannot reach {self.url}: {error.__cause__ or error}") from error
        except (openai.OpenAIError, ValueError, RecursionError) as error:  # a body that is no JSON, or a very deep one
            raise TransientError(f"{self.url} sent an answer that cannot be read: {error}") from error
        return self._read(response, count=len(texts))

    def close(self) -> None:
        self._client.close()

    def _read(self, response: object, *, count: int) -> ServedVectors:
        """Check what the library passes on unchecked: any JSON, and even a web page, reaches this point."""
        data = getattr(response, "data", None)
        if not isinstance(data, list):
            raise TransientError(
                f"{self.url} answered with something else than embeddings: {without_key(response, self._key)}"
            )
        if len(data) != count:
            raise TransientError(f"{self.url} returned {len(data)} vectors for {count} texts")
        try:
            vectors = np.stack([_vector(item.embedding) for item in _in_order(data)])
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise TransientError(f"{self.url} returned malformed embeddings: {error}") from error
        usable = np.isfinite(vectors).all(axis=1) & (vectors != 0).any(axis=1)
        charged = getattr(getattr(response, "usage", None), "prompt_tokens", None)
        return ServedVectors(vectors=vectors, usable=usable, tokens=charged if isinstance(charged, int) else None)

    def _meaning(self, error: openai.APIStatusError) -> RagPipelineError:
        """The error that a status code stands for; of refused input, only what was said of it."""
        message = error.body.get("message") if isinstance(error.body, dict) else error.body
        # Some servers repeat the key they refuse; it must not reach a log or the table of failures.
        said = without_key(message or error.message, self._key)
        if error.status_code in REFUSED_INPUT:
            return ItemError(said)
        service = Service(
            url=self.url, model=self._settings.model, section="embedding", key_variable=self._settings.api_key_env,
            when_refused="",
        )  # fmt: skip
        return refusal(
            error.status_code, said, service=service, headers=error.response.headers, now=self._now(),
            code=f"{error.code} {error.type}",
        )  # fmt: skip


@dataclass(slots=True)
class _Chosen:
    """How the vectors of one request are written."""

    name: str
    is_trial: bool
    works: bool = False


class _Format:
    """How a service is asked to write vectors: as base64, a quarter of the bytes and much less work, if it can.

    Not every compatible server can. So the first request asks for numbers, as all understand; one after it, once, tries
    base64; and what works is kept.
    """

    def __init__(self, *, known: str) -> None:
        """`known` is empty while nobody knows."""
        self._lock = threading.Lock()
        self._known = known
        self._has_answered = self._is_trying = False

    @contextmanager
    def chosen(self) -> Iterator[_Chosen]:
        """Around one request, which sets `works` and, when its trial failed, `name`."""
        with self._lock:
            is_trial = not self._known and self._has_answered and not self._is_trying
            self._is_trying = self._is_trying or is_trial
            chosen = _Chosen(name="base64" if is_trial else self._known or "float", is_trial=is_trial)
        try:
            yield chosen
        finally:
            with self._lock:
                self._has_answered = self._has_answered or chosen.works
                if is_trial:
                    self._is_trying = False
                    self._known = chosen.name if chosen.works else ""


def _api_key(settings: Embedding, environ: Mapping[str, str]) -> str:
    key = environ.get(settings.api_key_env, "").strip()
    if key:
        return key
    asked_for = settings.provider == "azure-openai" or "api_key_env" in settings.model_fields_set
    if settings.base_url and not asked_for:
        return "none"  # Ollama, vLLM and their like take any key
    raise ConfigError(
        f"embedding.provider is {settings.provider!r}, but the environment variable {settings.api_key_env} is not set: "
        "set it, or name another with embedding.api_key_env"
    )


def _client(settings: Embedding, *, key: str, url: str) -> openai.OpenAI:
    import openai

    if settings.provider == "openai":
        return openai.OpenAI(api_key=key, base_url=url, max_retries=0)
    if not settings.base_url:
        raise ConfigError(
            "embedding.provider is 'azure-openai', but embedding.base_url is empty: "
            "set it to the resource's endpoint, such as https://NAME.openai.azure.com"
        )
    return openai.AzureOpenAI(api_key=key, azure_endpoint=url, api_version=settings.api_version, max_retries=0)


def _in_order(data: Sequence[Any]) -> Sequence[Any]:
    """The items by their `index`; as they came when the service numbers none."""
    numbers = [getattr(item, "index", None) for item in data]
    if all(number is None for number in numbers):
        return data
    if set(numbers) != set(range(len(data))):
        raise ValueError(f"their indices are not 0 to {len(data) - 1}")
    return sorted(data, key=lambda item: int(item.index))


def _vector(embedding: object) -> Vectors:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4").astype(np.float32)
    vector = np.asarray(embedding, dtype=np.float32)
    if vector.ndim != 1 or not len(vector):
        raise ValueError(f"an embedding has the shape {vector.shape}")
    return vector
