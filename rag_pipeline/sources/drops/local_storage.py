"""An inbox in a local folder: what is written there is on disk, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from rag_pipeline.errors import ItemError
from rag_pipeline.lake.refusals import spoken_of
from rag_pipeline.sources.drops.storage import Stored, equal, moment_of

_CANNOT_LINK = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK}
# A link in the inbox must not make us read what it points at, nor a pipe make us wait; Windows has neither flag.
_OPEN_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)  # fmt: skip


class LocalStorage:
    """A folder: files are written under a hidden temporary name, synced to disk, and then linked to their own."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def files(self, folder: str) -> Iterator[Stored]:
        """See `Storage`."""
        for entry in self._entries(folder):
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield Stored(entry.name, status.st_size, moment_of(status.st_mtime))

    def folders(self, folder: str) -> list[str]:
        """See `Storage`."""
        return [entry.name for entry in self._entries(folder) if entry.is_dir(follow_symlinks=False)]

    def others(self, folder: str) -> list[str]:
        """See `Storage`."""
        no_link = {"follow_symlinks": False}
        entries = self._entries(folder)
        return [entry.name for entry in entries if not entry.is_dir(**no_link) and not entry.is_file(**no_link)]

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        """What lies in the folder. Raises StorageUnavailable: it cannot be listed."""
        try:
            with spoken_of(self._root / folder):
                return list(os.scandir(self._root / folder))
        except FileNotFoundError:
            return []

    def find(self, path: str) -> Stored | None:
        """See `Storage`."""
        try:
            status = (self._root / path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return Stored(path.rpartition("/")[2], status.st_size, moment_of(status.st_mtime))

    def read(self, path: str, *, limit: int) -> bytes:
        """See `Storage`."""
        try:
            with os.fdopen(os.open(self._root / path, _OPEN_FLAGS), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ItemError(f"{path} is not a file")
                return file.read(limit)
        except OSError as error:
            if isinstance(error, PermissionError | IsADirectoryError) or error.errno == errno.ELOOP:
                raise ItemError(f"{path} cannot be read: {error.strerror}") from error
            raise

    def create(self, path: str, content: bytes) -> bool:
        """See `Storage`."""
        target = self._root / path
        with _temporary(target, content) as temporary:
            try:
                _link(temporary, target)
            except FileExistsError:
                return False
            finally:
                # Also when another was first: who is told "it is there" must be able to rely on it.
                _sync_folder(target.parent)
        return True

    def replace(self, path: str, content: bytes) -> None:
        """See `Storage`."""
        target = self._root / path
        with _temporary(target, content) as temporary:
            temporary.replace(target)
            _sync_folder(target.parent)

    def move(self, source: str, target: str) -> None:
        """See `Storage`."""
        destination = self._root / target
        if self.find(source) is None:
            raise FileNotFoundError(source)
        if destination.exists():
            raise FileExistsError(target)
        _make_folder(destination.parent)
        # One step, unlike a link and an unlink: what replaces the source in between is moved, and never removed.
        (self._root / source).rename(destination)

    def remove(self, path: str) -> None:
        """See `Storage`."""
        (self._root / path).unlink(missing_ok=True)

    def same(self, first: str, second: str) -> bool:
        """See `Storage`."""
        try:
            with (self._root / first).open("rb") as one, (self._root / second).open("rb") as other:
                return equal(one, other)
        except (FileNotFoundError, PermissionError, IsADirectoryError):
            return False


@contextlib.contextmanager
def _temporary(target: Path, content: bytes) -> Iterator[Path]:
    """The content on disk under a hidden name beside the target; gone when the block ends, unless it was moved."""
    _make_folder(target.parent)
    temporary = target.parent / f".{uuid4().hex}.tmp"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _link(source: Path, target: Path) -> None:
    """A second name for a file; unlike a rename it refuses when the target exists, however many try at once."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        # Some mounts know no links, and some kernels refuse them on files of others.
        if target.exists():
            raise FileExistsError(str(target)) from error
        source.rename(target)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk; Windows cannot, and does not need to."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
