"""Commits of any size into a bare repository, as fast as git can take them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from rag_pipeline_tests.bench.process import CommandFailed


def new_repository(folder: Path) -> None:
    """An empty bare repository."""
    command = ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder)]
    subprocess.run(command, env=_environment(), check=True)


def commit_files(
    folder: Path, commits: Iterable[tuple[datetime, Mapping[str, str | None]]], *, is_empty: bool = False
) -> None:
    """Commit files (None: deleted) on `main`, one commit on top of the other.

    Raises:
        CommandFailed: git refuses.
    """
    command = ["git", "-C", str(folder), "fast-import", "--quiet", "--date-format=raw"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=_environment())
    assert process.stdin is not None
    # Only the first must be told where the branch stands.
    onto = b"" if is_empty else b"from refs/heads/main^0\n"
    with process.stdin as stream:
        for at, files in commits:
            who = f"committer Bench <bench@example.org> {int(at.timestamp())} +0000"
            stream.write(f"commit refs/heads/main\n{who}\ndata 7\nchange\n\n".encode() + onto)
            for path, text in files.items():
                stream.write(_written(path, text))
            onto = b""
    if process.wait():
        raise CommandFailed(f"git fast-import ended with {process.returncode} in {folder}")


def _written(path: str, text: str | None) -> bytes:
    if text is None:
        return f"D {path}\n".encode()
    content = text.encode("utf-8", "replace")
    return f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n"


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
