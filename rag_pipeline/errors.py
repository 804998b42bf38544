"""Every error the pipeline raises on purpose.

One base, few leaves. What is transient may be retried, what is permanent may not; what the user can put right
is a `UserError` and is shown as one line (what, which, what to do). No other module defines an exception.
"""

from __future__ import annotations


class RagPipelineError(Exception):
    """Base of all errors raised on purpose."""


class UserError(RagPipelineError):
    """Something the person at the keyboard can put right; the message says what, which and what to do."""


class ConfigError(UserError):
    """The configuration file or the environment says something that cannot be followed."""


class UnreadableText(ConfigError):
    """The embedding model knows too few words of a text to tell it from others."""


class NothingIndexed(ConfigError):
    """There is no index to ask yet, whatever is asked of it."""


class UnknownSource(ConfigError):
    """A question is limited to a repository or a source type of which the asker may see nothing."""


class SourceNotFound(UserError):
    """A repository, branch or path that was named does not exist or cannot be read."""


class DatabaseUnavailable(UserError):
    """PostgreSQL cannot be reached, or lacks what the index needs."""


class StorageUnavailable(UserError):
    """A disk is full, or a file may not be read or written."""


class MigrationError(UserError):
    """The database's schema and the migrations on disk disagree."""


class DimensionMismatch(UserError):
    """The embedding model returned vectors of another length than its embedding space holds."""


class SpaceUnavailable(UserError):
    """An embedding space that was named does not exist, or cannot do now what it was asked to do."""


class DeliveryFailed(RagPipelineError):
    """An alert did not get through; it is sent again later."""


class CheckFailed(UserError):
    """Data did not pass a check that blocks what comes after; the message says which, what was observed, what to do."""


class TooManyFailures(RagPipelineError):
    """More items failed than the configured threshold allows; the run must not look healthy."""


class TransientError(RagPipelineError):
    """A failure that may pass by itself.

    `retry_after_s` is how long the other side asked us to wait; `overloaded`: it has too much to do, or was asked too
    much.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None, overloaded: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.overloaded = overloaded


class QuotaExhausted(TransientError):
    """A rate limit that lasts longer than we may wait; what was read is kept, and the next run goes on from there."""


class PermanentError(RagPipelineError):
    """A failure that repeating the same call cannot cure."""


class PartError(RagPipelineError):
    """A part of the lake cannot be read: which, so that the rest can go on without it."""

    def __init__(self, message: str, *, stage: str, part: object) -> None:
        super().__init__(message)
        self.stage = stage
        self.part = part


class DamagedPart(PartError, PermanentError):
    """A part is there and is not what a stage writes: the stage that owns it makes it again."""


class RefusedPart(PartError, StorageUnavailable):
    """A part is there, and the system does not let us read or replace it."""


class ItemError(PermanentError):
    """One item cannot be processed; it is quarantined and the rest goes on."""


class BrokenFrontMatter(ItemError):
    """The front matter of a text was meant as such and cannot be read; `line` is the line of the problem, from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


class ResourceGone(PermanentError):
    """The source says that something is not there (any more): deleted, transferred, or never existed."""


class BudgetExceeded(PermanentError):
    """What is to be done next costs more than the budget holds; what was done before is kept."""
