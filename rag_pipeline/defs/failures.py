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
from rag_pipeline.model import DayRange, Failure

_MAX_RETRIES = 3
_LONGEST_WAIT_S = 300.0


@contextmanager
def stage_errors(
    context: dg.AssetExecutionContext | dg.OpExecutionContext | dg.AssetCheckExecutionContext,
) -> Iterator[None]:
    """Retries transient errors with exponential backoff and jitter; fails permanent ones without a retry."""
    try:
        yield
    except TransientError as error:
        if context.retry_number >= _MAX_RETRIES:
            raise dg.Failure(description=redact(str(error)).text, allow_retries=False) from error
        # Jitter spreads the retries of parallel runs; what the other side asked for is the least we wait.
        wait = min(_LONGEST_WAIT_S, random.uniform(0.5, 1.0) * 2.0 ** (context.retry_number + 1))
        wait = max(wait, error.retry_after_s or 0.0)
        context.log.warning(f"{redact(str(error)).text}; trying again in {wait:.0f} s")
        raise dg.RetryRequested(max_retries=_MAX_RETRIES, seconds_to_wait=wait) from error
    except RagPipelineError as error:
        raise dg.Failure(description=redact(str(error)).text, allow_retries=False) from error


def quarantine(
    pipeline: Pipeline, failures: Sequence[Failure], *, stage: str, days: DayRange, items: int
) -> dict[str, dg.MetadataValue]:
    """Put a stage's failures on record and return them as metadata; too many of them fail the run.

    What a person has accepted (`rag-pipeline quarantine accept`) is shown apart, and fails nothing.

    Raises:
        TooManyFailures: more than the configured number and share of `items` failed.
    """
    # What a source said of a failure may hold the address, and with it the token, that was used.
    failures = [replace(failure, reason=redact(failure.reason).text) for failure in failures]
    with pipeline.connection() as connection:
        unaccepted = record_failures(connection, failures, stage=stage, days=days, now=pipeline.clock())
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
