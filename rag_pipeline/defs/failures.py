"""How the pipeline's errors become Dagster's: what is transient is retried, what is permanent fails at once."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

import dagster as dg

from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.documents.redaction import redact
from rag_pipeline.errors import RagPipelineError, TooManyFailures, TransientError
from rag_pipeline.index.bookkeeping import accepted_states, record_failures
from rag_pipeline.index.database import Connection
from rag_pipeline.index.refusals import in_words as database_in_words
from rag_pipeline.lake.derive import Source, TooMany
from rag_pipeline.lake.refusals import spoken as spoken_of_files
from rag_pipeline.lake.store import Part
from rag_pipeline.model import DayRange, Failure
from rag_pipeline.remote.retry import LONGEST_RETRY_AFTER_S
from rag_pipeline.settings import Quality
from rag_pipeline.sources.github.client import QUOTA_REACHED

_MAX_RETRIES = 3
_LONGEST_WAIT_S = 300.0
PART: Final = "part"
"""The source type of what goes on record of a part of the lake."""
NO_PARTS: Final[Mapping[Part, str]] = MappingProxyType({})
_LAST: Final = (
    "raw_checks", "documents", "documents_checks", "chunks", "chunks_checks", "embeddings", "embeddings_checks",
    "knowledge_index", "knowledge_index_checks",
)  # fmt: skip
"""The steps of a run, in order: the last of them that a run has fails it, if something was left out."""


@contextmanager
def files_in_words() -> Iterator[None]:
    """What the file system refuses inside is raised as one of our errors."""
    try:
        yield
    except OSError as error:
        ours = spoken_of_files(error)
        if ours is None:
            raise
        raise ours from error


@contextmanager
def stage_errors(
    context: dg.AssetExecutionContext | dg.OpExecutionContext | dg.AssetCheckExecutionContext,
) -> Iterator[None]:
    """Retries transient errors with exponential backoff and jitter; fails permanent ones without a retry.

    Without one fails, too, what the other side asks to be left alone for longer than five minutes.
    What PostgreSQL or the file system refuses is one or the other, in words.
    """
    try:
        with database_in_words(), files_in_words():
            yield
    except TransientError as error:
        asked = error.retry_after_s or 0.0
        if asked > LONGEST_RETRY_AFTER_S:
            # A step that sleeps for an hour keeps its place in a pool meanwhile.
            description = f"{redact(str(error)).text}; it asks to be left alone for {asked:.0f} s: run again after that"
            raise dg.Failure(description=description, allow_retries=False) from error
        if not _may_pass(context, error):
            raise dg.Failure(description=redact(str(error)).text, allow_retries=False) from error
        # Jitter spreads the retries of parallel runs; what the other side asked for is the least we wait.
        wait = min(_LONGEST_WAIT_S, random.uniform(0.5, 1.0) * 2.0 ** (context.retry_number + 1))
        wait = max(wait, asked)
        context.log.warning(f"{redact(str(error)).text}; trying again in {wait:.0f} s")
        raise dg.RetryRequested(max_retries=_MAX_RETRIES, seconds_to_wait=wait) from error
    except RagPipelineError as error:
        raise dg.Failure(description=redact(str(error)).text, allow_retries=False) from error
    except ImportError as error:
        # Libraries in C++ that are interrupted while they are loaded make an error of their own of it.
        if isinstance(error.__cause__, KeyboardInterrupt | dg.DagsterExecutionInterruptedError):
            raise error.__cause__ from None
        raise


def retry_if_none_was_read(context: dg.AssetExecutionContext, unread: Sequence[RagPipelineError], *, of: int) -> None:
    """Inside `stage_errors`: try the step again where all sources of a kind failed, and may be read in a moment.

    Raises:
        TransientError: why the first of them could not be read.
    """
    if unread and len(unread) >= of and all(_may_pass(context, error) for error in unread):
        raise unread[0]


def note_unread(pipeline: Pipeline, reasons: Sequence[str], *, stage: str, of: int) -> None:
    """If all sources of a kind (there are `of` them) could not be read, the run fails in the end.

    The other kinds go on. Where GitHub's quota has ended a reading, the run ends well.
    """
    if reasons and len(reasons) >= of:
        pipeline.left_out += [f"{stage}: {reason}" for reason in reasons if QUOTA_REACHED not in reason]


def too_many_failures(pipeline: Pipeline, connection: Connection, *, stage: str) -> TooMany:
    """Whether failures of one source are more than the settings allow; what a person has accepted does not count."""
    quality = pipeline.settings.quality

    def too_many(failures: Sequence[Failure], items: int) -> bool:
        if not _is_beyond(quality, len(failures), items):
            return False
        with pipeline.still_connected(connection) as live:
            accepted = accepted_states(live, stage=stage)
        counted = [f for f in failures if (f.tenant, f.source_type, f.source_id, f.source_updated_at) not in accepted]
        return _is_beyond(quality, len(counted), items)

    return too_many


def quarantine(
    pipeline: Pipeline, connection: Connection, failures: Sequence[Failure], *, stage: str, days: DayRange,
    items: Mapping[Source, int], left_aside: Mapping[Part, str] = NO_PARTS,
) -> dict[str, dg.MetadataValue]:  # fmt: skip
    """Put a stage's failures on record and return them as metadata; too many of one source stop that source.

    `items`: how many each source has, tenant and repository. The run goes on with the others, and `fail_in_the_end`
    says what was stopped. What a person has accepted (`rag-pipeline quarantine accept`) is shown apart, and stops
    nothing. Parts that were `left_aside` are put on record, too.
    """
    now = pipeline.clock()
    failures = [*failures, *(_of_part(part, reason, stage=stage, now=now) for part, reason in left_aside.items())]
    # What a source said of a failure may hold the address, and with it the token, that was used.
    failures = [replace(failure, reason=redact(failure.reason).text) for failure in failures]
    with pipeline.still_connected(connection) as live:
        unaccepted = record_failures(live, failures, stage=stage, days=days, now=now)
    accepted, failures = len(failures) - len(unaccepted), unaccepted
    pipeline.left_out += [f"{stage}: {failure.reason}" for failure in failures if failure.source_type == PART]
    pipeline.left_out += _stopped(pipeline.settings.quality, failures, stage=stage, items=items)
    left_out = {"accepted_failures": dg.MetadataValue.int(accepted)} if accepted else {}
    if not failures:
        return dict(left_out)
    rows = "\n".join(f"| `{f.source_id}` | {f.reason.replace('|', ' ')[:200]} |" for f in failures[:20])
    return {
        **left_out,
        "quarantined": dg.MetadataValue.int(len(failures)),
        "quarantined_items": dg.MetadataValue.md(f"| item | reason |\n|---|---|\n{rows}"),
    }


def note_damage(
    pipeline: Pipeline, connection: Connection, left_aside: Mapping[Part, str], *, stage: str
) -> None:  # fmt: skip
    """Put parts of a stage on record that its checks could not read, so that the next refresh takes their days up."""
    now = pipeline.clock()
    failures = [_of_part(part, redact(reason).text, stage=stage, now=now) for part, reason in left_aside.items()]
    if failures:
        record_failures(connection, failures, stage=stage, days=None, now=now)
        pipeline.left_out += [f"{stage}: {failure.reason}" for failure in failures]


def fail_in_the_end(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, pipeline: Pipeline) -> None:
    """In the last step of a run: fail it if something was left out, so that it does not look healthy.

    Everything else is done by then.

    Raises:
        TooManyFailures: names what was stopped or left aside, and what to do.
    """
    steps = {node.name for node in context.job_def.nodes}
    mine = context.op_def.name
    later = _LAST[_LAST.index(mine) + 1 :] if mine in _LAST else _LAST
    if not pipeline.left_out or steps & set(later):
        return
    with stage_errors(context):
        raise TooManyFailures(left_out_of(pipeline))


def left_out_of(pipeline: Pipeline) -> str:
    """What a run has stopped or left aside, as its failure says it."""
    return redact(" · ".join(dict.fromkeys(pipeline.left_out))).text


def _may_pass(
    context: dg.AssetExecutionContext | dg.OpExecutionContext | dg.AssetCheckExecutionContext, error: RagPipelineError
) -> bool:  # fmt: skip
    """Whether the step tries again after this error."""
    is_soon = isinstance(error, TransientError) and (error.retry_after_s or 0.0) <= LONGEST_RETRY_AFTER_S
    return is_soon and context.retry_number < _MAX_RETRIES


def _is_beyond(quality: Quality, failed: int, items: int) -> bool:
    return failed > quality.max_failures and failed > quality.max_failure_share * max(items, 1)


def _stopped(quality: Quality, failures: Sequence[Failure], *, stage: str, items: Mapping[Source, int]) -> list[str]:
    """What there is to say of each source with too many failures."""
    by_source: defaultdict[Source, list[Failure]] = defaultdict(list)
    for failure in failures:
        if failure.source_type != PART:
            by_source[failure.tenant, failure.repository].append(failure)
    return [
        f"{stage}: {repository} (tenant {tenant}) was stopped and keeps its former state where items failed, the "
        f"other sources went on: {len(mine):,} of {max(items.get((tenant, repository), 0), len(mine)):,} items "
        f"failed, the first with: {mine[0].reason}. Look at `rag-pipeline quarantine list`; put them right, accept "
        "them (`rag-pipeline quarantine accept`), or raise [quality] max_failures"
        for (tenant, repository), mine in by_source.items()
        if _is_beyond(quality, len(mine), items.get((tenant, repository), 0))
    ]


def _of_part(part: Part, reason: str, *, stage: str, now: datetime) -> Failure:
    return Failure(
        tenant=part.tenant, source_type=PART, source_id=f"{part.repository} {part.day}", stage=stage,
        repository=part.repository, day=part.day, source_updated_at=now, reason=reason[:500],
    )  # fmt: skip
