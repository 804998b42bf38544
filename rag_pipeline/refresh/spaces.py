"""Which embedding spaces a run feeds, and how another one is filled beside the one that answers questions.

Documents wait for the vectors of one space: the active one. Spaces that are being built are fed with the same texts,
but what goes wrong with them is put down and holds nothing up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from rag_pipeline.embedding import Embedder, refusal
from rag_pipeline.embedding.readability import REMEDY
from rag_pipeline.embedding.spaces import config_of, embedder_of, settings_of
from rag_pipeline.embedding.stage import EmbeddingsReport, embed_chunks
from rag_pipeline.errors import ConfigError, PermanentError, RagPipelineError, TransientError
from rag_pipeline.index.bookkeeping import forget_stored, record_part, stored_parts
from rag_pipeline.index.claims import Claims
from rag_pipeline.index.database import Connection
from rag_pipeline.index.graph import ensure_graph
from rag_pipeline.index.orphans import counting_on_vectors
from rag_pipeline.index.promotion import Standing, standing
from rag_pipeline.index.spaces import (
    SpaceVectors,
    active_space,
    building_spaces,
    create_space,
    find_space,
    live_texts,
    remember_config,
    resume,
    still_there,
)  # fmt: skip
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import DayRange, EmbeddingSpace, Graph
from rag_pipeline.progress import Progress
from rag_pipeline.refresh.accounts import Account
from rag_pipeline.settings import Embedding

_ALL_DAYS = DayRange(first=date.min, last=date.max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """How embedders are made in this process: of the settings, and of spaces that remember their own."""

    settings: Embedding
    environ: Mapping[str, str]
    make: Callable[..., Embedder]

    def configured(self) -> Embedder:
        """The embedder that the settings name; raises as `make_embedder`."""
        return self.make(self.settings, environ=self.environ)

    def of(self, space: EmbeddingSpace) -> Embedder:
        """The embedder of a space.

        Raises:
            ConfigError: this code makes other vectors than the space holds; and everything that `make_embedder` raises.
        """
        embedder = self.unchecked(space)
        if not _makes(embedder, space):
            embedder.close()
            raise ConfigError(
                f"embedding space {space.space_id} was made with recipe {space.recipe!r} of {space.model}, this code "
                f"uses {embedder.recipe!r} of {embedder.model}: create a new one with `rag-pipeline spaces create`"
            )
        return embedder

    def fit(self, space: EmbeddingSpace) -> bool:
        """Whether this code still makes vectors that may be compared with the space's."""
        embedder = self.unchecked(space)
        embedder.close()
        return _makes(embedder, space)

    def unchecked(self, space: EmbeddingSpace) -> Embedder:
        """The embedder of a space, whether or not this code still makes its vectors."""
        return embedder_of(space, settings=self.settings, environ=self.environ, make=self.make)


@dataclass(slots=True, kw_only=True)
class Feed:
    """The spaces that a run feeds."""

    space: EmbeddingSpace
    """Documents wait for its vectors."""
    candidates: Sequence[EmbeddingSpace] = ()
    """Being built beside it: fed too, but nothing waits for them."""
    problems: list[str] = field(default_factory=list)
    """What kept candidates from being fed, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What building a space did, and how far it is."""

    embeddings: EmbeddingsReport
    graph_built: bool
    standing: Standing


def known_space(connection: Connection, embedder: Embedder) -> EmbeddingSpace | None:
    """The embedding space of an embedder, if it has one; nothing is asked of a model of unknown length."""
    return find_space(
        connection, provider=embedder.provider, model=embedder.model, recipe=embedder.recipe,
        dimensions=embedder.dimensions,
    )  # fmt: skip


def serving_space(connection: Connection, models: Models) -> EmbeddingSpace | None:
    """The space that documents wait for: the active one; the settings' own while there is none; None: not made yet.

    An active space that this code makes no vectors for any more (its recipe has changed) can neither be fed nor asked,
    so the settings' space takes its place.
    """
    active = active_space(connection)
    if active is not None and models.fit(active):
        return active
    embedder = models.configured()
    embedder.close()
    return known_space(connection, embedder)


def made_space(
    connection: Connection, models: Models, *, partitions: int = 1, graph: Graph | None = None
) -> EmbeddingSpace:
    """The space of the configured model, made if there is none; a model of unknown length is asked once.

    `partitions` and `graph` of a new one (see `create_space`); one that is there keeps its own.

    Raises:
        ConfigError: there is none, and this machine could not fill it.
    """
    embedder = models.configured()
    try:
        known = known_space(connection, embedder)
        if known is not None:
            _note_config(connection, known, models.settings)
            return known
        if reason := refusal(models.settings):
            raise ConfigError(reason)
        dimensions = embedder.dimensions or len(embedder.embed_query("How long are your vectors?"))
        return create_space(
            connection, provider=embedder.provider, model=embedder.model, recipe=embedder.recipe,
            dimensions=dimensions, config=config_of(models.settings), partitions=partitions, graph=graph,
        )  # fmt: skip
    finally:
        embedder.close()


def spaces_to_feed(connection: Connection, models: Models) -> Feed:
    """The active space and those that are being built; that of the settings is made if there is none.

    Raises:
        ConfigError: the settings' model or the active one cannot be used as it is configured.
    """
    problems: list[str] = []
    serving = serving_space(connection, models)
    try:
        own = made_space(connection, models)
    except (TransientError, PermanentError) as error:
        if serving is None:
            raise
        own, problems = serving, [f"the space of {models.settings.model} cannot be made: {error}"]
    space = serving or own
    candidates = [other for other in building_spaces(connection) if other.space_id != space.space_id]
    return Feed(space=space, candidates=candidates, problems=problems)


def embed_space(
    lake: Lake, days: DayRange, space: EmbeddingSpace, *, models: Models, connection: Connection, account: Account,
    now: datetime, progress: Progress, only: Callable[[str, Sequence[UUID]], set[UUID]] | None = None,
) -> EmbeddingsReport:  # fmt: skip
    """Bring the vectors of these days' chunks up to date in one space; see `embed_chunks`."""
    embedder = models.of(space)
    settings = settings_of(space, models.settings)
    try:
        with counting_on_vectors(connection), closing(Claims(connection, space)) as claims:
            return embed_chunks(
                lake, days, space=space, embedder=embedder,
                vectors_of=lambda tenant: SpaceVectors(connection, space, tenant=tenant, claims=claims),
                stored=StoredVectors(connection, space, days, now=now), progress=progress, only=only,
                spending_of=lambda tenant: account.spending(connection, space, settings=settings, tenant=tenant),
            )  # fmt: skip
    finally:
        embedder.close()


def feed_candidates(
    lake: Lake, days: DayRange, feed: Feed, *, models: Models, connection: Connection, account: Account, now: datetime,
    progress: Progress,
) -> list[tuple[EmbeddingSpace, EmbeddingsReport]]:  # fmt: skip
    """Give the candidates the vectors of these days; what one of them raises goes to `feed.problems`.

    That their budget is spent, too: what answers questions shall not wait for them.
    """
    reports = []
    for space in feed.candidates:
        try:
            with still_there(space):
                report = embed_space(
                    lake, days, space, models=models, connection=connection, account=account, now=now,
                    progress=progress,
                )  # fmt: skip
                _require_paid(report)
        except RagPipelineError as error:
            feed.problems.append(f"embedding space {space.space_id} ({space.model}) was not fed: {error}")
        else:
            reports.append((space, report))
    return reports


def build_space(
    lake: Lake, space: EmbeddingSpace, *, models: Models, connection: Connection, account: Account, now: datetime,
    progress: Progress,
) -> BuildReport:  # fmt: skip
    """Give a space every text that the index shows and it lacks, then its graph; a retired one is fed from then on.

    The texts come from the lake, because only there they stand as they are embedded, with their context. What is
    stored stays stored: after a crash it goes on where it was.

    Raises:
        SpaceUnavailable: somebody dropped it meanwhile.
        BudgetExceeded: the next text may not be paid for. And everything that `Embedder.embed` raises.
    """
    models.of(space).close()  # what cannot be filled is not to be fed either

    def fill() -> EmbeddingsReport:
        report = embed_space(
            lake, _ALL_DAYS, space, models=models, connection=connection, account=account, now=now, progress=progress,
            only=lambda tenant, hashes: live_texts(connection, tenant, hashes),
        )  # fmt: skip
        _require_paid(report)
        return report

    with still_there(space):
        if settings_of(space, models.settings) is models.settings:
            _note_config(connection, space, models.settings)
        resume(connection, space)
        embeddings = fill()
        if not embeddings.refused and standing(connection, space).missing:
            # Vectors were lost of parts that are on record as stored: look at all of them.
            forget_stored(connection, space, stage="embeddings")
            embeddings = fill()
        graph_built = ensure_graph(connection, space)
        return BuildReport(embeddings=embeddings, graph_built=graph_built, standing=standing(connection, space))


def _require_paid(report: EmbeddingsReport) -> None:
    if report.over_budget:
        raise report.over_budget[0]


def unreadable_note(unreadable: int, space: EmbeddingSpace) -> str:
    """What there is to say and to do about texts that a run's model cannot read, for people; empty: there are none."""
    if not unreadable:
        return ""
    texts = "1 text" if unreadable == 1 else f"{unreadable:,} texts"
    return (
        f"{space.model} knows too few words of {texts} (embedding.min_known_share), which can be found by their words "
        f"alone: to find them by their meaning, too, {REMEDY}"
    )


def candidate_notes(connection: Connection, feed: Feed) -> list[str]:
    """What there is to say of the spaces beside the one that documents waited for, a line each, for people."""
    return feed.problems + [next_step(space, standing(connection, space)) for space in feed.candidates]


def after_build(space: EmbeddingSpace, report: BuildReport) -> str:
    """How far a space is after it was filled, and what to do about what it still lacks, for people."""
    now, number = report.standing, space.space_id
    if not now.missing:
        return next_step(space, now)
    lacks = f"embedding space {number} ({space.provider} {space.model}) lacks {now.missing:,} of {now.texts:,} texts"
    if refused := len(report.embeddings.refused):
        return f"{lacks}; the model refuses {refused:,}: `rag-pipeline spaces promote {number} --force` accepts that"
    return (
        f"{lacks}, which the lake does not hold: `rag-pipeline materialize --from DAY` reads them again, from the "
        f"first day on; then run `rag-pipeline spaces build {number}` again"
    )


def next_step(space: EmbeddingSpace, standing: Standing) -> str:
    """How far a space that is being built is, and what to do about it, for people."""
    name, number = f"embedding space {space.space_id} ({space.provider} {space.model})", space.space_id
    if standing.missing:
        lacks = f"{name} lacks {standing.missing:,} of {standing.texts:,} texts"
        return f"{lacks}: fill it with `rag-pipeline spaces build {number}`"
    if standing.vectors and not standing.has_graph:
        return f"{name} has all texts and no graph yet: build it with `rag-pipeline spaces build {number}`"
    return (
        f"{name} is complete: compare it with `rag-pipeline spaces evaluate {number}`, let it answer with "
        f"`rag-pipeline spaces promote {number}`, or remove it with `rag-pipeline spaces drop {number}`"
    )


class StoredVectors:
    """Which parts' vectors the database holds; reads the list once."""

    def __init__(self, connection: Connection, space: EmbeddingSpace, days: DayRange, *, now: datetime) -> None:
        self._connection = connection
        self._space = space
        self._now = now
        self._known = stored_parts(connection, space, days, stage="embeddings")

    def fingerprint(self, part: Part) -> str | None:
        """Of what is stored of a part."""
        return self._known.get(part)

    def record(self, part: Part, fingerprint: str) -> None:
        """Note that all of a part is stored."""
        record_part(self._connection, self._space, part, stage="embeddings", fingerprint=fingerprint, now=self._now)


def _note_config(connection: Connection, space: EmbeddingSpace, settings: Embedding) -> None:
    """Remember the settings of now; where they ask for other texts to be readable, all texts are looked at again."""
    config = config_of(settings)
    if space.config == config:
        return
    with connection.transaction():
        before = (space.config or {}).get("min_known_share")
        if before not in (None, settings.min_known_share):
            forget_stored(connection, space, stage="embeddings")
        remember_config(connection, space, config)


def _makes(embedder: Embedder, space: EmbeddingSpace) -> bool:
    made = (embedder.provider, embedder.model, embedder.recipe)
    fits = embedder.dimensions in (None, space.dimensions)
    return fits and made == (space.provider, space.model, space.recipe)
