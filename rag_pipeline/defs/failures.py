"""How the pipeline's errors become Dagster's: what is transient is retried, what is permanent fails at once."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import dagster as dg

from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.documents.redaction import redact
from rag_pipeline.errors import RagPipelineError, TooManyFailures, TransientError
from rag_pipeline.index.bookkeeping import record_failures
from rag_pipeline.index.database import Connection
from rag_pipeline.index.refusals import in_words as database_in_words
from rag_pipeline.lake.refusals import spoken as spoken_of_files
from rag_pipeline.model import DayRange, Failure
from rag_pipeline.remote.retry import LONGEST_RETRY_AFTER_S

_MAX_RETRIES = 3
_LONGEST_WAIT_S = 300.0


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
        if context.retry_number >= _MAX_RETRIES:
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


def quarantine(
    pipeline: Pipeline, connection: Connection, failures: Sequence[Failure], *, stage: str, days: DayRange, items: int
) -> dict[str, dg.MetadataValue]:
    """Put a stage's failures on record and return them as metadata; too many of them fail the run.

    What a person has accepted (`rag-pipeline quarantine accept`) is shown apart, and fails nothing.

    Raises:
        TooManyFailures: more than the configured number and share of `items` failed.
    """
    # What a source said of a failure may hold the address, and with it the token, that was used.
    failures = [replace(failure, reason=redact(failure.reason).text) for failure in failures]
    with pipeline.still_connected(connection) as live:
        unaccepted = record_failures(live, failures, stage=stage, days=days, now=pipeline.clock())
    accepted, failures = len(failures) - len(unaccepted), unaccepted
    quality = pipeline.settings.quality
    if len(failures) > quality.max_failures and len(failures) > quality.max_failure_share * max(items, 1):
        raise TooManyFailures(
            f"{stage}: {len(failures)} of {items} items failed, the first with: {failures[0].reason}. "
            "See rag.ingestion_failures; raise [quality] max_failures to accept them"
        )
    left_out = {"accepted_failures": dg.MetadataValue.int(accepted)} if accepted else {}
    if not failures:
        return dict(left_out)
    rows = "\n".join(f"| `{f.source_id}` | {f.reason.replace('|', ' ')[:200]} |" for f in failures[:20])
    return {
        **left_out,
        "quarantined": dg.MetadataValue.int(len(failures)),
        "quarantined_items": dg.MetadataValue.md(f"| item | reason |\n|---|---|\n{rows}"),
    }
