"""How git is called: its options, its environment, and NUL-separated output. Knows nothing of mirrors or history."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from rag_pipeline.errors import ConfigError, PermanentError, RagPipelineError, StorageUnavailable
from rag_pipeline.remote.at_once import ended_by, go_on

GIT = (
    "git", "-c", "core.quotePath=false", "-c", "i18n.logOutputEncoding=UTF-8",
    # A person's own attributes must not decide what is generated in a repository.
    "-c", f"core.attributesFile={os.devnull}",
    # Later ones hold corrected dates, over which git (2.39) counts for ever when a commit is dated before 1970.
    "-c", "commitGraph.generationVersion=1",
)  # fmt: skip
# What belongs to a repository we happen to stand in, and noise; certificates, proxies, ssh and configuration stay.
_FOREIGN = re.compile(
    r"^GIT_(ALTERNATE_OBJECT_DIRECTORIES|CONFIG|CONFIG_PARAMETERS|OBJECT_DIRECTORY|DIR|WORK_TREE|IMPLICIT_WORK_TREE"
    r"|GRAFT_FILE|INDEX_FILE|NO_REPLACE_OBJECTS|REPLACE_REF_BASE|PREFIX|SHALLOW_FILE|COMMON_DIR|NAMESPACE"
    r"|QUARANTINE_PATH|ATTR_SOURCE|LITERAL_PATHSPECS|GLOB_PATHSPECS|NOGLOB_PATHSPECS|ICASE_PATHSPECS|DEFAULT_HASH"
    r"|EXTERNAL_DIFF|DIFF_OPTS|PAGER|EDITOR|(AUTHOR|COMMITTER)_.*|TRACE.*|CURL_VERBOSE)$"
)
_LOOK_S = 0.5
_IDENTITY = {"NAME": "rag-pipeline", "EMAIL": "rag-pipeline@localhost"}


def git_environment(*, now: datetime | None = None) -> dict[str, str]:
    """Git's environment: no prompts, plain English, and nothing of a repository we happen to stand in."""
    env = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_ATTR_NOSYSTEM": "1"}
    # A folder's name may begin as git's magic words for paths do.
    env["GIT_LITERAL_PATHSPECS"] = "1"
    env |= {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}
    # Reflog entries need an identity; a fresh machine has none configured.
    env |= {f"GIT_{who}_{what}": value for who in ("COMMITTER", "AUTHOR") for what, value in _IDENTITY.items()}
    if now is not None:
        env["GIT_COMMITTER_DATE"] = f"{int(now.timestamp())} +0000"
    return env


def run_git(
    *args: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git to its end, whatever its exit status; it ends early with the work that it is for."""
    pipe = subprocess.PIPE
    with _installed():
        process = subprocess.Popen(
            [*GIT, *args], stdin=pipe, stdout=pipe, stderr=pipe, env=dict(env or git_environment())
        )
    with process, ended_by(process.terminate):
        try:
            stdout, stderr = _said_by(process, stdin or b"")
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def _said_by(process: subprocess.Popen[bytes], stdin: bytes) -> tuple[bytes, bytes]:
    """All that it writes. When the work is to end, what git has started may outlive it, and hold its pipes open."""
    given: bytes | None = stdin
    while True:
        try:
            return process.communicate(given, timeout=_LOOK_S)
        except subprocess.TimeoutExpired:
            given = None
            if process.poll() is not None:
                go_on()


def open_git(git_dir: Path, *args: str) -> subprocess.Popen[bytes]:
    """Start a git that answers on its output what is asked on its input."""
    command = [*GIT, "--git-dir", str(git_dir), *args]
    with _installed():
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=git_environment())


def stream_git(git_dir: Path, *args: str, stdin: bytes = b"") -> Iterator[bytes]:
    """NUL-terminated fields that a git command prints, as they come."""
    command = [*GIT, "--git-dir", str(git_dir), *args]
    # Files, not pipes, for what it reads and complains of: neither side can block the other.
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as errors:
        asked.write(stdin)
        asked.seek(0)
        with _installed():
            process = subprocess.Popen(
                command, stdin=asked, stdout=subprocess.PIPE, stderr=errors, env=git_environment()
            )
        with process:
            assert process.stdout is not None
            rest = b""
            while block := process.stdout.read(1 << 16):
                *fields, rest = (rest + block).split(b"\0")
                yield from fields
            if rest:
                yield rest
        if process.returncode:
            errors.seek(0)
            raise git_failed(args[0], git_dir, errors.read())


def git_failed(command: str, git_dir: Path, stderr: bytes) -> RagPipelineError:
    """The error for a git command that failed on a mirror."""
    said = stderr.decode(errors="replace")
    brief = " ".join(said.split())[:400]
    return no_room(said, git_dir) or PermanentError(
        f"git {command} failed in {git_dir}: {brief or 'no message'}; "
        "if the mirror is damaged, delete that folder: it is fetched again"
    )


def no_room(said: str, git_dir: Path) -> StorageUnavailable | None:
    """The error for a complaint of git's that the disk of a mirror is full; None: it is of something else."""
    # What begins with "remote:" is of the other side's disk.
    ours = (line.strip() for line in said.splitlines() if not line.startswith("remote:"))
    brief = next((line for line in ours if "No space left on device" in line or "quota exceeded" in line), "")
    if not brief:
        return None
    return StorageUnavailable(
        f"{git_dir} cannot be written: git says: {brief[:200]}: make room there, or let RAG_HOME name a larger disk; "
        "what was done so far is kept, and the next run goes on from there"
    )


def nul_fields(output: bytes) -> Iterable[str]:
    """NUL-terminated output as text; paths that are not UTF-8 keep their bytes as surrogates."""
    return (field.decode("utf-8", "surrogateescape") for field in output.split(b"\0")[:-1])


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    """Says plainly that there is no git, instead of a traceback about a missing file."""
    try:
        yield
    except FileNotFoundError as error:
        raise ConfigError("git is not found on the PATH: install git 2.31 or newer") from error
