"""What the file system refuses, in words that say what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rag_pipeline.errors import StorageUnavailable

_KEPT: Final = "what was done so far is kept, and the next run goes on from there"
_ADVICE: Final = {
    errno.ENOSPC: "make room there, or let RAG_LAKE or RAG_HOME name a larger disk",
    errno.EDQUOT: "raise the quota, or let RAG_LAKE or RAG_HOME name another disk",
    errno.EFBIG: "raise the limit on the size of files",
    errno.EACCES: "run as its owner, or give this user the right to read and write there",
    errno.EPERM: "run as its owner, or give this user the right to read and write there",
    errno.EROFS: "mount it for writing, or let RAG_LAKE or RAG_HOME name another place",
    errno.EMFILE: "raise the limit of open files (`ulimit -n`)",
    errno.ENFILE: "raise the machine's limit of open files",
    errno.EIO: "look at the disk: it fails",
    errno.ESTALE: "mount the network file system again",
    errno.EISDIR: "a folder stands where a file belongs: move it away",
    errno.ENOTDIR: "a file stands where a folder belongs: move it away",
}

ONE_FILE: Final = (errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR)
"""What may be wrong with a single file, while all others can be written."""


def spoken(error: BaseException, *, where: str | Path = "") -> StorageUnavailable | None:
    """Our error for what the system refused about a file; None: it is not about one.

    `where`: the file, for errors that do not name it, as a full disk does not.
    """
    if not isinstance(error, OSError) or error.errno not in _ADVICE:
        return None
    file = where or error.filename or "a file"
    return StorageUnavailable(f"{file} cannot be used: {error.strerror}: {_ADVICE[error.errno]}; {_KEPT}")


@contextmanager
def spoken_of(file: str | Path) -> Iterator[None]:
    """What the system refuses about this file inside is raised as our error, with its name.

    Raises:
        StorageUnavailable: somebody has to do something first.
    """
    try:
        yield
    except OSError as error:
        ours = spoken(error, where=file)
        if ours is None:
            raise
        raise ours from error
