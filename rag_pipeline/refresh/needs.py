"""How many tokens a model has to read for the texts of a rehearsed run that have no vector in its space yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress
from uuid import UUID

from rag_pipeline.embedding import Embedder, TokenCounter, counting_version, refusal, token_counter
from rag_pipeline.embedding.embedder import ChoosyEmbedder
from rag_pipeline.embedding.local import MODELS as LOCAL_MODELS
from rag_pipeline.embedding.spaces import settings_of
from rag_pipeline.embedding.stage import lake_stage
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.index.bookkeeping import stored_parts
from rag_pipeline.index.database import Connection
from rag_pipeline.index.spaces import building_spaces, embedded_texts
from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.schemas import ids_of
from rag_pipeline.lake.store import Lake, Part, whole_batches
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.refresh.rehearsal import Rehearsal
from rag_pipeline.refresh.spaces import Models, known_space, serving_space
from rag_pipeline.settings import Embedding, Price, embedding_prices, price_of

SERVING = "answers questions"
BUILDING = "is being built"


@dataclass(slots=True, kw_only=True)
class Need:
    """What one model has to embed."""

    settings: Embedding
    embedder: Embedder
    space: EmbeddingSpace | None
    """None: it is made by the run."""
    role: str
    price: float | None
    """USD per million tokens; None: not known."""
    texts: int = 0
    """Of parts that are not yet embedded wholly."""
    reused: int = 0
    """Of these, texts that have a vector, come a second time, or cannot be read by the model."""
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Of the others, by the tenant and repository that first bring them."""
    elsewhere: dict[str, int] = field(default_factory=dict)
    """The same texts in the tokens of other models, by `counting_version`."""
    counters: Mapping[str, TokenCounter] = field(default_factory=dict)
    """For these."""
    seen: set[UUID] = field(default_factory=set)

    @property
    def to_embed(self) -> int:
        """Texts that have to be sent."""
        return self.texts - self.reused

    def add(self, connection: Connection, lake: Lake, run: Rehearsal) -> None:
        """Count what a run still has to embed, after all runs that were counted before."""
        stored = stored_parts(connection, self.space, run.days, stage="embeddings") if self.space else {}
        for where, part in run.parts:
            if not self._is_stored(where, lake, part, stored):
                self._restored(lake, part)
                for hashes, texts in run.texts(where, part):
                    self._count(connection, part, dict(zip(hashes, texts, strict=True)))

    @property
    def _stage(self) -> str | None:
        """Where the lake keeps the vectors of its space; None: of unknown length, so there are none."""
        made, embedder = self.space, self.embedder
        if made is None and embedder.dimensions is not None:
            made = EmbeddingSpace(
                space_id=0, provider=embedder.provider, model=embedder.model, recipe=embedder.recipe,
                dimensions=embedder.dimensions, status="building",
            )  # fmt: skip
        return lake_stage(made) if made else None

    def _is_stored(self, where: Lake, lake: Lake, part: Part, stored: Mapping[Part, str]) -> bool:
        stage = self._stage
        if self.space is None or stage is None:
            return False
        expected = combine(stage, str(where.fingerprint("chunks", part)))
        return stored.get(part) == expected == lake.fingerprint(stage, part)

    def _restored(self, lake: Lake, part: Part) -> None:
        """What the lake holds is given back to a database that lost it, without a model."""
        if self._stage is not None:
            for batch in whole_batches(lake.read(self._stage, part, columns=["text_hash"])):
                self.seen.update(ids_of(batch.column("text_hash")))

    def _count(self, connection: Connection, part: Part, texts: Mapping[UUID, str]) -> None:
        new = [text_hash for text_hash in texts if text_hash not in self.seen]
        known = embedded_texts(connection, self.space, new) if self.space else set()
        missing = _readable(self.embedder, [texts[text_hash] for text_hash in new if text_hash not in known])
        self.seen.update(new)
        self.texts += len(texts)
        self.reused += len(texts) - len(missing)
        self.tokens[part.tenant, part.repository] += sum(self.embedder.input_tokens(missing))
        for version, count in self.counters.items():
            self.elsewhere[version] = self.elsewhere.get(version, 0) + sum(count(missing))


def _readable(embedder: Embedder, texts: list[str]) -> list[str]:
    if not isinstance(embedder, ChoosyEmbedder):
        return texts
    return list(compress(texts, embedder.readable(texts)))


def needs_of(connection: Connection, models: Models, *, prices: Mapping[str, Price]) -> list[Need]:
    """One for each model that a run feeds, the one that documents wait for first; close their embedders.

    Raises:
        ConfigError: the model that documents wait for cannot be used as it is configured.
    """
    serving, own = serving_space(connection, models), models.configured()
    own_space = known_space(connection, own)
    counters = _counters(prices)

    def need(settings: Embedding, embedder: Embedder, space: EmbeddingSpace | None, role: str) -> Need:
        return Need(settings=settings, embedder=embedder, space=space, role=role, price=price_of(settings, prices))

    if serving is None:
        first = need(models.settings, own, None, SERVING)
        first.counters = counters
        return [first]
    first = need(settings_of(serving, models.settings), models.of(serving), serving, SERVING)
    first.counters = counters
    candidates = []
    for space in building_spaces(connection):
        # What is wrong with a candidate keeps a run from feeding it, and holds nothing else up.
        with suppress(RagPipelineError):
            if space.space_id != serving.space_id:
                settings = settings_of(space, models.settings)
                candidates.append(need(settings, models.of(space), space, BUILDING))
    if own_space is None:
        return [first, *candidates, need(models.settings, own, None, BUILDING)]
    own.close()
    return [first, *candidates]


def counting_of(model: str) -> str:
    """In whose tokens a model of the price table is paid."""
    return counting_version(_named(model))


def runs_here(model: str) -> bool:
    """Whether a model of the price table could be had on this machine."""
    return refusal(_named(model)) is None


def _counters(prices: Mapping[str, Price]) -> dict[str, TokenCounter]:
    return {counting_of(model): token_counter(_named(model)) for model in embedding_prices(prices)}


def _named(model: str) -> Embedding:
    return Embedding(provider="local" if model in LOCAL_MODELS else "openai", model=model)
