"""What an inbox asks of the place its bytes lie in: few operations, and what must happen whole or not at all.

Paths are relative to the inbox, with slashes. The places are `local_storage` and `remote_storage`; what the folders
mean is the business of `inbox`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple, Protocol

_COMPARED_BYTES = 1 << 20


class Stored(NamedTuple):
    """A file as it is listed."""

    name: str
    size: int
    modified_at: datetime


class Storage(Protocol):
    """The few operations an inbox needs; folders are made when something is put into them."""

    def files(self, folder: str) -> Iterator[Stored]:
        """Regular files directly in the folder, in no order; none when there is no such folder."""

    def folders(self, folder: str) -> list[str]:
        """Names of the folders directly in the folder."""

    def others(self, folder: str) -> list[str]:
        """Names of what is neither a regular file nor a folder, such as links and pipes."""

    def find(self, path: str) -> Stored | None:
        """The regular file at the path, if there is one."""

    def read(self, path: str, *, limit: int) -> bytes:
        """At most `limit` bytes from the file's beginning. Raises FileNotFoundError, ItemError (not readable)."""

    def create(self, path: str, content: bytes) -> bool:
        """Write a new file durably, whole or not at all; False when there is one of this name."""

    def replace(self, path: str, content: bytes) -> None:
        """Write a file durably, whole or not at all, in place of what is there."""

    def move(self, source: str, target: str) -> None:
        """Raises FileExistsError when there is a target (which stays as it is), FileNotFoundError without a source."""

    def remove(self, path: str) -> None:
        """Remove a file; no error when it is gone."""

    def same(self, first: str, second: str) -> bool:
        """Whether two files hold the same bytes; False when one of them is gone or cannot be read."""


def equal(one: BinaryIO, other: BinaryIO) -> bool:
    """Whether two open files hold the same bytes from here on."""
    while (piece := one.read(_COMPARED_BYTES)) == other.read(_COMPARED_BYTES):
        if not piece:
            return True
    return False


def moment_of(seconds: float) -> datetime:
    """A file's time, in seconds since 1970, as UTC; 1970 when no calendar reaches it."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
