"""An inbox as those see it who drop files and who look for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import fsspec

from rag_pipeline.sources.drops.inbox import Inbox


class Place:
    """An inbox and a look behind it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.inbox = Inbox(url)
        self._fs, self._root = fsspec.core.url_to_fs(url)

    @property
    def files(self) -> dict[str, bytes]:
        """Content by path relative to the inbox."""
        paths = self._fs.find(self._root) if self._fs.exists(self._root) else []
        return {path.removeprefix(self._root).lstrip("/"): self._fs.cat_file(path) for path in paths}

    def write(self, path: str, content: bytes = b"content") -> None:
        """Put a file there as a stranger does."""
        self._fs.makedirs(f"{self._root}/{path}".rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(f"{self._root}/{path}", content)

    def waiting(self, settle_s: float = 0.0) -> list[str]:
        now = datetime.now(UTC) + timedelta(seconds=5)
        return [file.name for file in self.inbox.waiting(now=now, settle_s=settle_s)]
