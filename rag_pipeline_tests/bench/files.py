"""The files of a repository's newest commit that the pipeline would index."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_pipeline.settings import GitLimits, resolve_source
from rag_pipeline.sources.git.blobs import BlobReader
from rag_pipeline.sources.git.file_kinds import kind_of, skip_by_content, skip_by_path, skip_by_size
from rag_pipeline_tests.bench.process import CommandFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Paths and contents, by `docs`, `code`."""

    by_kind: Mapping[str, Sequence[tuple[str, bytes]]]

    def with_suffix(self, *suffixes: str) -> list[tuple[str, bytes]]:
        """Those whose path ends so."""
        return [file for files in self.by_kind.values() for file in files if file[0].endswith(suffixes)]


def files_of(repository: str) -> Files:
    """All that is neither binary nor generated nor too large.

    Raises:
        CommandFailed: git cannot read the repository.
    """
    folder = resolve_source(repository, Path.cwd())
    limits = GitLimits()
    by_kind: defaultdict[str, list[tuple[str, bytes]]] = defaultdict(list)
    with BlobReader(Path(_git(folder, "rev-parse", "--absolute-git-dir").decode().strip())) as blobs:
        for path in _git(folder, "ls-tree", "-r", "-z", "--name-only", "HEAD").decode("utf-8", "replace").split("\0"):
            kind = kind_of(path)
            if not kind or skip_by_path(path, generated=None, vendored=None):
                continue
            content = blobs.find(f"HEAD:{path}") or b""
            skipped = skip_by_size(len(content), kind=kind, limits=limits) or skip_by_content(
                content, kind=kind, generated=None, limits=limits
            )
            if not skipped:
                by_kind[kind.source_type].append((path, content))
    return Files(by_kind=by_kind)


def _git(folder: str, *arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True)
    if done.returncode:
        raise CommandFailed(f"git {arguments[0]} in {folder}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
