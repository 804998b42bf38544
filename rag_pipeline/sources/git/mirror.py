"""Bare mirrors of git repositories: fetched incrementally, renewed when damaged, remembering where the branch has been.

One mirror per repository under `RAG_HOME/mirrors`; `refs/rag/head` is the branch we follow and its reflog is our memory
of its heads, which is how a force-push is noticed. What a change means is `timeline`'s and `changes`' business.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from filelock import Timeout

from rag_pipeline.errors import TransientError
from rag_pipeline.remote.at_once import locked
from rag_pipeline.settings import Repository
from rag_pipeline.sources.git import remote
from rag_pipeline.sources.git.blobs import BlobReader
from rag_pipeline.sources.git.command import git_environment, git_failed, no_room, run_git, stream_git

HEAD = "refs/rag/head"
_LOCK_TIMEOUT_S = 3600
_STALE_LOCK_S = 60
_MOVE = re.compile(r"^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*> (\d+) [+-]\d{4}(\t.*)?$")
_LOCKED = re.compile(r"Unable to create '(?P<path>.+?\.lock)': File exists")
_DAMAGED = re.compile(
    r"not a git repository|object file .* is empty|is corrupt|bad object|bad config|unable to read"
    r"|invalid (sha1|object)|could not read [0-9a-f]{40}|missing (blob|tree|commit)|does not point to a valid object"
    r"|broken ref|reference broken|unresolved|did not send all necessary|revision walk setup failed|garbage at end of"
    r"|bad signature|too small to be|bad packed object|file .*\.pack",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadMove:
    """One entry of the mirror's reflog: the branch went from `old` (None: the first fetch) to `new`, seen at `at`."""

    old: str | None
    new: str
    at: datetime


class Mirror:
    """A bare mirror of one repository's branch."""

    def __init__(self, path: Path, repository: Repository) -> None:
        self.path = path
        self._repository = repository

    def fetch(self, *, now: datetime, environ: Mapping[str, str] = os.environ) -> str | None:
        """Bring the mirror up to date and return the branch's commit; None when the repository has no commit yet.

        Raises:
            SourceNotFound: the repository or branch does not exist or may not be read.
            ConfigError: the variable that `token_env` names is not set, or git is not installed.
            TransientError: the network or the other side failed; trying again may help.
        """
        remote.check_local(self._repository)
        with self._locked():
            if not self.exists():
                return self._renew(now=now, environ=environ)
            if not self.shallow_boundary() and (head := self.head()) and head == remote.local_head(self._repository):
                return head
            error = self._fetch(now=now, environ=environ)
            if not error:
                return self.head()
            if _DAMAGED.search(error) and not remote.is_transient(error, self._repository):
                return self._renew(now=now, environ=environ)
            remote.explain(error, self._repository, environ=environ)
            return None

    def exists(self) -> bool:
        """Whether it was ever fetched."""
        return (self.path / "HEAD").exists()

    def head(self) -> str | None:
        """The branch's commit as last fetched."""
        with contextlib.suppress(OSError):
            # Git may also keep it in `packed-refs`; a process costs a hundred times as much as this file.
            return (self.path / HEAD).read_text(encoding="ascii").strip() or None
        done = run_git("--git-dir", str(self.path), "rev-parse", "--verify", "--quiet", f"{HEAD}^{{commit}}")
        return done.stdout.decode().strip() or None

    def moves(self) -> list[HeadMove]:
        """Every move of the branch that was seen, oldest first, beginning with the first fetch."""
        try:
            log = (self.path / "logs" / HEAD).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        entries = (_MOVE.match(line) for line in log.split("\n"))
        return [
            HeadMove(
                old=None if set(entry[1]) == {"0"} else entry[1],
                new=entry[2],
                at=datetime.fromtimestamp(int(entry[3]), UTC),
            )
            for entry in entries
            if entry and entry[1] != entry[2] and set(entry[2]) != {"0"}
        ]

    def run(self, *args: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> bytes:
        """Output of a git command on the mirror.

        Raises:
            PermanentError: git failed, as on a damaged mirror.
        """
        done = run_git("--git-dir", str(self.path), *args, stdin=stdin, env=env)
        if done.returncode:
            raise git_failed(args[0], self.path, done.stderr)
        return done.stdout

    def stream(self, *args: str, stdin: bytes = b"") -> Iterator[bytes]:
        """NUL-terminated fields that a git command prints, as they come."""
        return stream_git(self.path, *args, stdin=stdin)

    def blobs(self) -> BlobReader:
        """A reader of blobs; use it as a context manager."""
        return BlobReader(self.path)

    def shallow_boundary(self) -> bytes:
        """Where the history ends that a shallow source has; nothing when it is whole."""
        try:
            return (self.path / "shallow").read_bytes()
        except FileNotFoundError:
            return b""

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with locked(Path(f"{self.path}.lock"), timeout_s=_LOCK_TIMEOUT_S):
                yield
        except Timeout as error:
            raise TransientError(
                f"another process has been fetching {self.path} for an hour: try again later"
            ) from error

    def _renew(self, *, now: datetime, environ: Mapping[str, str]) -> str | None:
        """Fetch all into a new folder and put it in the mirror's place: what is there is whole, or is not there."""
        fresh = Mirror(self.path.with_name(f"{self.path.name}.new"), self._repository)
        error = ""
        try:
            # A repository says only by refusing that it counts its objects by SHA-256.
            for object_format in ("sha1", "sha256"):
                fresh._create(object_format)
                error = fresh._fetch(now=now, environ=environ)
                if "mismatched algorithms" not in error:
                    break
            if error:
                remote.explain(error, self._repository, environ=environ)
                return None
            shutil.rmtree(self.path, ignore_errors=True)
            fresh.path.rename(self.path)
            return self.head()
        finally:
            shutil.rmtree(fresh.path, ignore_errors=True)

    def _create(self, object_format: str) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        # No template: a person's hooks have no business here. Refs as files: we read the reflog ourselves.
        env = git_environment() | {"GIT_DEFAULT_REF_FORMAT": "files"}
        done = run_git(
            "init", "--quiet", "--bare", "--template=", f"--object-format={object_format}", str(self.path), env=env
        )
        if done.returncode:
            raise git_failed("init", self.path, done.stderr)
        with (self.path / "config").open("a", encoding="utf-8") as config:
            config.write(_CONFIG)

    def _fetch(self, *, now: datetime, environ: Mapping[str, str]) -> str:
        """Git's complaint, or nothing when all went well; locks that a killed git left behind are cleared away.

        Raises:
            StorageUnavailable: the mirror's disk is full.
        """
        args = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"]
        # A shallow source is copied as it is; once it has its whole history, so shall we.
        args.append("--unshallow" if self.shallow_boundary() else "--update-shallow")
        env = git_environment(now=now) | remote.credentials(self._repository, environ)
        # "--" ends the options: a source can never be read as one.
        spec = f"+{remote.wanted_ref(self._repository)}:{HEAD}"
        for _ in range(10):
            done = run_git("--git-dir", str(self.path), *args, "--", self._repository.source, spec, env=env)
            error = done.stderr.decode(errors="replace").strip()
            if done.returncode == 0:
                return ""
            if not self._clear_lock(error):
                break
        if (full := no_room(error, self.path)) is not None:
            raise full
        return error or f"git fetch ended with status {done.returncode}"

    def _clear_lock(self, error: str) -> bool:
        """Remove the lock that git complains of, when nobody can hold it any more; we hold the mirror's own."""
        found = _LOCKED.search(error)
        if not found:
            return False
        path = Path(found["path"])
        path = path if path.is_absolute() else self.path / path
        if not path.resolve().is_relative_to(self.path.resolve()):
            return False
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime < _STALE_LOCK_S:
                raise TransientError(
                    f"another git is at work in {self.path} ({path.name} is new): try again in a minute"
                )
            path.unlink()
        return True


def mirror_of(repository: Repository, *, home: Path) -> Mirror:
    """The mirror of a configured repository; the same source and branch share one, whatever the tenant."""
    key = repository.source + (f"#{repository.branch}" if repository.branch else "")
    name = quote(key, safe="").replace("%2F", "+")
    if len(name) > 180:
        name = f"{name[-140:]}-{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}"
    return Mirror(home / "mirrors" / f"{name}.git", repository)


_CONFIG = """\
[core]
\t# The reflog is our memory of rewritten history: without it a force-push could not be told from a commit.
\tlogAllRefUpdates = always
[gc]
\treflogExpire = never
\treflogExpireUnreachable = never
\tautoDetach = false
[maintenance]
\tautoDetach = false
[fetch]
\twriteCommitGraph = true
[http]
\t# A connection that gives less than 1 kB/s for a minute is dead.
\tlowSpeedLimit = 1000
\tlowSpeedTime = 60
"""
