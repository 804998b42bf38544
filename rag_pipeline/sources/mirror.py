"""Bare mirrors of git repositories, and the few questions we ask git about them.

One mirror per repository under `RAG_HOME/mirrors`, fetched incrementally; `refs/rag/head` is the branch we follow and
its reflog is our memory of where the branch has been, which is how a force-push is noticed. Talks to git and to nothing
else; what a change means is `timeline`'s and `git`'s business.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO
from urllib.parse import quote

from filelock import FileLock

from rag_pipeline.errors import ConfigError, PermanentError, SourceNotFound, TransientError
from rag_pipeline.settings import Repository

HEAD = "refs/rag/head"
_TRANSIENT = re.compile(
    r"Could not resolve host|Connection (timed out|reset|refused)|early EOF|RPC failed|TLS|unexpected disconnect"
    r"|returned error: (429|5\d\d)|Operation timed out|No route to host|remote end hung up",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadMove:
    """One entry of the mirror's reflog: the branch went from `old` to `new`, seen at `at`."""

    old: str
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
            TransientError: the network or the other side failed; trying again may help.
        """
        self._check_local_source()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self.path}.lock", timeout=3600):
            if not self.exists():
                self._create()
            return self._fetch(now=now, environ=environ)

    def exists(self) -> bool:
        """Whether it was ever fetched."""
        return (self.path / "HEAD").exists()

    def head(self) -> str | None:
        """The branch's commit as last fetched."""
        done = self._git("rev-parse", "--verify", "--quiet", f"{HEAD}^{{commit}}", check=False)
        return done.stdout.decode().strip() or None

    def moves(self) -> list[HeadMove]:
        """Every move of the branch that was seen, oldest first; the first fetch is not a move."""
        log = self.path / "logs" / HEAD
        if not log.exists():
            return []
        moves = []
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            old, new, *_ = line.split(" ", 2)
            seconds = re.search(r"> (\d+) [+-]\d{4}", line)
            if seconds and set(old) != {"0"} and old != new:
                moves.append(HeadMove(old=old, new=new, at=datetime.fromtimestamp(int(seconds[1]), UTC)))
        return moves

    def run(self, *args: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> bytes:
        """Output of a git command on the mirror."""
        return self._git(*args, stdin=stdin, env=env).stdout

    def stream(self, *args: str) -> Iterator[bytes]:
        """NUL-terminated fields that a git command prints, as they come."""
        command = [*_GIT, "--git-dir", str(self.path), *args]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=git_environment()
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            rest = b""
            while block := process.stdout.read(1 << 16):
                *fields, rest = (rest + block).split(b"\0")
                yield from fields
            if rest:
                yield rest
            error = process.stderr.read()
        if process.returncode:
            raise PermanentError(f"git {args[0]} failed in {self.path}: {error.decode(errors='replace').strip()}")

    def blobs(self) -> BlobReader:
        """A reader of blobs; use it as a context manager."""
        return BlobReader(self.path)

    def _check_local_source(self) -> None:
        source = self._repository.source
        if "://" in source or re.match(r"^[\w.-]+@[\w.-]+:", source):
            return
        if not Path(source).exists():
            raise SourceNotFound(
                f"repository {source} does not exist: give an existing path, a clone URL, or owner/name on GitHub"
            )

    def _create(self) -> None:
        subprocess.run([*_GIT, "init", "--quiet", "--bare", str(self.path)], check=True, env=git_environment())
        for key, value in {
            # The reflog is our memory of rewritten history: without it a force-push could not be told from a commit.
            "core.logAllRefUpdates": "always",
            "gc.reflogExpire": "never",
            "gc.reflogExpireUnreachable": "never",
            "gc.autoDetach": "false",
            "fetch.writeCommitGraph": "true",
        }.items():
            self._git("config", key, value)

    def _fetch(self, *, now: datetime, environ: Mapping[str, str]) -> str | None:
        branch = self._repository.branch
        wanted = f"refs/heads/{branch}" if branch else "HEAD"
        args = ["fetch", "--quiet", "--no-tags", "--update-shallow", "--no-write-fetch-head"]
        env = git_environment(now=now) | self._credentials(environ)
        # "--" ends the options: a source can never be read as one.
        done = self._git(*args, "--", self._repository.source, f"+{wanted}:{HEAD}", check=False, env=env)
        if done.returncode == 0:
            return self.head()
        error = done.stderr.decode(errors="replace").strip()
        if not branch and "couldn't find remote ref HEAD" in error:
            return None
        self._raise(error)
        return None

    def _raise(self, error: str) -> None:
        source = self._repository.source
        brief = " ".join(line.strip() for line in error.splitlines() if line.strip())[:300]
        if "couldn't find remote ref" in error:
            raise SourceNotFound(f"repository {source} has no branch {self._repository.branch!r}: name one that exists")
        if _TRANSIENT.search(error):
            raise TransientError(f"cannot reach repository {source}: {brief}")
        raise SourceNotFound(
            f"repository {source} cannot be read: check the name and that you may read it "
            f"(private: set token_env for it). git says: {brief}"
        )

    def _credentials(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The token as a header in the environment: never in an argument or a file that others can read."""
        name = self._repository.token_env
        if not name:
            return {}
        if not environ.get(name):
            raise ConfigError(
                f"repository {self._repository.name}: token_env names {name}, which is not set in the environment"
            )
        import base64

        basic = base64.b64encode(f"x-access-token:{environ[name]}".encode()).decode()
        return {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
        }

    def _git(
        self, *args: str, check: bool = True, stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        command = [*_GIT, "--git-dir", str(self.path), *args]
        done = subprocess.run(
            command, input=stdin, capture_output=True, env=dict(env or git_environment()), check=False
        )
        if check and done.returncode:
            raise PermanentError(
                f"git {args[0]} failed in {self.path}: {done.stderr.decode(errors='replace').strip()[:500]}"
            )
        return done


class BlobReader:
    """Reads blobs through two long-lived `git cat-file` processes: one for sizes, one for contents."""

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> BlobReader:
        for mode in ("--batch-check=%(objectname) %(objectsize)", "--batch"):
            command = [*_GIT, "--git-dir", str(self._git_dir), "cat-file", mode]
            pipe = subprocess.PIPE
            self._processes.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, env=git_environment()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.stdout.close()
            process.wait()

    def sizes(self, blobs: Sequence[str]) -> list[int]:
        """Sizes in bytes, in the order asked; -1 for an object that is not there (a partial clone)."""
        sizes = []
        for line in self._ask(0, blobs):
            words = line.split()
            sizes.append(int(words[1]) if len(words) == 2 and words[1].isdigit() else -1)
        return sizes

    def contents(self, blobs: Sequence[str]) -> Iterator[bytes]:
        """Contents in the order asked, one in memory at a time."""
        out = self._out(1)
        for line in self._ask(1, blobs):
            size = int(line.split()[2])
            content = out.read(size)
            # Before the yield: a reader that takes just what it asked for must leave the pipe at the next answer.
            out.read(1)
            yield content

    def _ask(self, which: int, blobs: Sequence[str]) -> Iterator[bytes]:
        out = self._out(which)
        source = self._processes[which].stdin
        assert source is not None
        # A pipe holds 64 KiB: asking for more at once than fits would block both sides.
        for start in range(0, len(blobs), 500):
            asked = blobs[start : start + 500]
            source.write(b"".join(blob.encode() + b"\n" for blob in asked))
            source.flush()
            for _ in asked:
                yield out.readline()

    def _out(self, which: int) -> IO[bytes]:
        out = self._processes[which].stdout
        assert out is not None
        return out


def mirror_of(repository: Repository, *, home: Path) -> Mirror:
    """The mirror of a configured repository; the same source and branch share one, whatever the tenant."""
    key = repository.source + (f"#{repository.branch}" if repository.branch else "")
    return Mirror(home / "mirrors" / f"{quote(key, safe='').replace('%2F', '+')[-180:]}.git", repository)


def nul_fields(output: bytes) -> Iterable[str]:
    """NUL-terminated output as text; paths that are not UTF-8 keep their bytes as surrogates."""
    return (field.decode("utf-8", "surrogateescape") for field in output.split(b"\0")[:-1])


_GIT = ("git", "-c", "core.quotePath=false", "-c", "log.showRoot=true", "-c", "log.showSignature=false")


def git_environment(*, now: datetime | None = None) -> dict[str, str]:
    """Git's environment: no prompts, plain English, and nothing of a repository we happen to stand in."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith("GIT_SSH")}
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "GIT_OPTIONAL_LOCKS": "0"}
    env |= {f"GIT_{who}_{what}": value for who in ("COMMITTER", "AUTHOR") for what, value in _IDENTITY.items()}
    if now is not None:
        env["GIT_COMMITTER_DATE"] = f"{int(now.timestamp())} +0000"
    return env


# Reflog entries need an identity; a fresh machine has none configured.
_IDENTITY = {"NAME": "rag-pipeline", "EMAIL": "rag-pipeline@localhost"}
