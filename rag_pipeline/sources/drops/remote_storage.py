"""An inbox in an object store, or in any other filesystem that fsspec knows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rag_pipeline.errors import ItemError, StorageUnavailable
from rag_pipeline.sources.drops.storage import Stored, equal, moment_of


class RemoteStorage:
    """An object store, which publishes an upload when it ends; where it offers that, only if the name is free."""

    def __init__(self, filesystem: Any, root: str) -> None:
        self._fs = filesystem
        self._root = root

    def files(self, folder: str) -> Iterator[Stored]:
        """See `Storage`."""
        for entry in self._list(folder):
            if entry["type"] == "file":
                name = str(entry["name"]).rpartition("/")[2]
                yield Stored(name, int(entry["size"] or 0), self._modified(entry))

    def folders(self, folder: str) -> list[str]:
        """See `Storage`."""
        return [
            str(entry["name"]).rstrip("/").rpartition("/")[2]
            for entry in self._list(folder)
            if entry["type"] == "directory"
        ]

    def others(self, folder: str) -> list[str]:
        """See `Storage`; an object store holds no such things."""
        del folder
        return []

    def find(self, path: str) -> Stored | None:
        """See `Storage`."""
        self._fs.invalidate_cache(self._path(path).rpartition("/")[0])
        try:
            entry = self._fs.info(self._path(path))
        except FileNotFoundError:
            return None
        if entry["type"] != "file":
            return None
        return Stored(path.rpartition("/")[2], int(entry["size"] or 0), self._modified(entry))

    def read(self, path: str, *, limit: int) -> bytes:
        """See `Storage`."""
        try:
            with self._fs.open(self._path(path), "rb") as file:
                content = file.read(limit)
        except PermissionError as error:
            raise ItemError(f"{path} cannot be read: {error}") from error
        return bytes(content)

    def create(self, path: str, content: bytes) -> bool:
        """See `Storage`."""
        # Asked first for stores that cannot refuse by themselves.
        if self.find(path) is not None:
            return False
        try:
            self._fs.pipe_file(self._path(path), content, mode="create")
        except FileExistsError:
            return False
        return True

    def replace(self, path: str, content: bytes) -> None:
        """See `Storage`."""
        self._fs.pipe_file(self._path(path), content)

    def move(self, source: str, target: str) -> None:
        """See `Storage`."""
        if self.find(source) is None:
            raise FileNotFoundError(source)
        if self.find(target) is not None:
            raise FileExistsError(target)
        self._fs.cp_file(self._path(source), self._path(target))
        self.remove(source)

    def remove(self, path: str) -> None:
        """See `Storage`."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._path(path))

    def same(self, first: str, second: str) -> bool:
        """See `Storage`."""
        try:
            with self._fs.open(self._path(first), "rb") as one, self._fs.open(self._path(second), "rb") as other:
                return equal(one, other)
        except (FileNotFoundError, PermissionError, IsADirectoryError):
            return False

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _list(self, folder: str) -> list[dict[str, Any]]:
        """What lies in the folder. Raises StorageUnavailable: it cannot be listed."""
        path = self._path(folder)
        self._fs.invalidate_cache(path)
        try:
            return list(self._fs.ls(path, detail=True))
        except FileNotFoundError:
            return []
        except Exception as error:
            # Each filesystem of fsspec has errors of its own for a store that is away or refuses the key.
            raise StorageUnavailable(
                f"{path} cannot be listed: {type(error).__name__}: {error}: check that the store answers, and that its "
                "key may list and read there; what waits is kept"
            ) from error

    def _modified(self, entry: dict[str, Any]) -> datetime:
        """When an object was written: each filesystem calls it otherwise."""
        keys = ("mtime", "LastModified", "last_modified", "updated", "created")
        value = next((entry[key] for key in keys if entry.get(key)), None) or self._fs.modified(entry["name"])
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        return moment_of(float(value))
