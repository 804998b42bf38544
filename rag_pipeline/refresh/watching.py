"""A look at all sources: what they show, what of it the index lacks, and so how fresh it is. It runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from rag_pipeline.errors import RagPipelineError
from rag_pipeline.index.bookkeeping import SourceKey
from rag_pipeline.index.database import Connection
from rag_pipeline.index.freshness import SourceFreshness, freshness
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import EmbeddingSpace
from rag_pipeline.refresh.drops import drops_progress
from rag_pipeline.refresh.freshness import Known, Standing, judge
from rag_pipeline.refresh.git import GitProgress
from rag_pipeline.refresh.github import GitHubProgress
from rag_pipeline.refresh.kinds import KindProgress, kinds_progress
from rag_pipeline.refresh.plan import pending_of
from rag_pipeline.refresh.readings import read_and_note
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.stage import inbox_of
from rag_pipeline.sources.github.stage import Access
from rag_pipeline.sources.kinds.protocol import Outside

_LONGEST_LOOK = timedelta(seconds=20)
"""After it no other source is asked: Dagster gives a sensor a minute."""
_REQUEST_S = 10.0
_Source: TypeAlias = GitProgress | GitHubProgress | KindProgress


def look(
    settings: Settings, *, connection: Connection, space: EmbeddingSpace | None, lake: Lake, access: Access,
    ask: bool,
) -> list[Standing]:  # fmt: skip
    """How each source stands now. With `ask`, sources are read for what is new, those first that were not for longest.

    What would take long is left to the run that is due anyway: the first reading of a source, and what has gathered on
    GitHub since a source became stale.
    """
    started = access.clock()
    sources: list[_Source] = [
        *(GitProgress(settings, repository, now=started) for repository in settings.git_repositories),
        *(
            GitHubProgress(_hurried(settings), repository, access=access, now=started)
            for repository in settings.github_repositories
        ),
        *kinds_progress(settings, now=started, outside=Outside(base=settings.base, environ=access.environ)),
    ]
    unreadable = _ask(sources, settings, connection=connection, access=access) if ask else {}
    pending = {source.key: pending_of(source, connection, space) or [] for source in sources if source.is_read()}
    pending |= {drops.key: drops.pending(connection, space) for drops in drops_progress(settings, lake, now=started)}
    known = Known(pending=pending, unreadable=unreadable, waiting_since=waiting_since(settings, now=started))
    return judge(freshness(connection), settings, now=started, known=known)


def waiting_since(settings: Settings, *, now: datetime) -> datetime | None:
    """When the oldest drop was written that waits in the inbox; None: it is empty."""
    waiting = inbox_of(settings).waiting(now=now, settle_s=settings.drops.settle_s)
    return min((file.modified_at for file in waiting), default=None)


def _ask(
    sources: Sequence[_Source], settings: Settings, *, connection: Connection, access: Access
) -> dict[SourceKey, str]:
    """Read the sources; why those that could not be read were not."""
    started = access.clock()
    seen = {row.key: row for row in freshness(connection)}
    stale = {s.key for s in judge(seen.values(), settings, now=started) if s.is_stale}
    unreadable: dict[SourceKey, str] = {}
    for source in sorted(sources, key=lambda source: _asked(seen.get(source.key), started)):
        row = seen.get(source.key)
        takes_long = isinstance(source, GitHubProgress) and source.key in stale and not (row and row.problem)
        if not source.is_read() or takes_long:
            continue
        now = access.clock()
        if now - started > _LONGEST_LOOK:
            break
        try:
            read_and_note(source, connection=connection, now=now)
        except RagPipelineError as error:
            unreadable[source.key] = str(error)
    return unreadable


def _asked(row: SourceFreshness | None, now: datetime) -> datetime:
    return row.asked_at if row and row.asked_at else now - timedelta(days=36_500)


def _hurried(settings: Settings) -> Settings:
    """Settings for somebody who would rather look again later than wait."""
    github = settings.github
    hurried = {"max_wait_s": 0.0, "max_retries": 0, "timeout_s": min(github.timeout_s, _REQUEST_S)}
    return settings.model_copy(update={"github": github.model_copy(update=hurried)})
