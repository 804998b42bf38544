"""Git repositories made to order: commits at given times, as real as git makes them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path


class GitRepository:
    """A repository with a work tree; every commit's time is given."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def commit(
        self, at: str | datetime, files: Mapping[str, str | bytes | None] | None = None, *, message: str = "change"
    ) -> str:
        """Write (or with None delete) files and commit all; `at` is ISO, UTC. Returns the commit."""
        for name, content in (files or {}).items():
            path = self.path / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message, at=at)
        return self.head()

    def move(self, source: str, target: str) -> None:
        """Rename a file in the work tree; commit it with `commit`."""
        (self.path / target).parent.mkdir(parents=True, exist_ok=True)
        (self.path / source).rename(self.path / target)

    def head(self) -> str:
        """The present commit."""
        return self.git("rev-parse", "HEAD").strip()

    def git(self, *args: str, at: str | datetime = "2024-01-01T00:00:00") -> str:
        """Run git in the repository at a moment; returns what it prints."""
        moment = datetime.fromisoformat(at) if isinstance(at, str) else at
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        stamp = f"{int(moment.timestamp())} +0000"
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.path), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org", "GIT_COMMITTER_DATE": stamp,
        }  # fmt: skip
        done = subprocess.run(["git", *args], cwd=self.path, env=environment, capture_output=True, check=True)
        return done.stdout.decode("utf-8", "surrogateescape")
