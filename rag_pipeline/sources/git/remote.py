"""The other side of a fetch: which ref is wanted, with which credentials, and what git's complaints mean to people."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rag_pipeline.errors import ConfigError, SourceNotFound, TransientError
from rag_pipeline.settings import Repository
from rag_pipeline.sources.git.command import git_environment, run_git

_TRANSIENT = re.compile(
    r"could not resolve host|failed to connect|connection (timed out|reset|refused|closed)|early EOF|RPC failed"
    r"|unexpected disconnect|returned error: (408|429|5\d\d)|operation (timed out|too slow)|no route to host"
    r"|network is unreachable|remote end hung up|gnutls_handshake|SSL_(connect|read|ERROR_SYSCALL)"
    r"|temporary failure|index-pack (failed|died)",
    re.IGNORECASE,
)


def local_path(source: str) -> Path | None:
    """The folder that a source names, by path or `file://` URL; None when it is elsewhere."""
    if source.startswith("file://"):
        return Path(unquote(urlsplit(source).path))
    if "://" in source or re.match(r"^[\w.-]+@[\w.-]+:", source):
        return None
    return Path(source)


def check_local(repository: Repository) -> None:
    """Raise SourceNotFound when a local source does not exist."""
    path = local_path(repository.source)
    if path is not None and not path.exists():
        raise SourceNotFound(
            f"repository {repository.source} does not exist: "
            "give an existing path, a clone URL, or owner/name on GitHub"
        )


def wanted_ref(repository: Repository) -> str:
    """The ref to fetch: the configured branch, or whatever the other side's HEAD names."""
    return f"refs/heads/{repository.branch}" if repository.branch else "HEAD"


def local_head(repository: Repository) -> str | None:
    """The branch's commit in a local source, at a tenth of a fetch's cost; None when only a fetch can tell."""
    path = local_path(repository.source)
    if path is None:
        return None
    # The folder itself must be the repository, not one further up.
    env = git_environment() | {"GIT_CEILING_DIRECTORIES": str(path.parent)}
    wanted = wanted_ref(repository)
    done = run_git("-C", str(path), "rev-parse", "--verify", "--quiet", f"{wanted}^{{commit}}", env=env)
    return done.stdout.decode().strip() or None if done.returncode == 0 else None


def credentials(repository: Repository, environ: Mapping[str, str]) -> dict[str, str]:
    """The token as a header in the environment: never in an argument or a file that others can read.

    Raises:
        ConfigError: the variable that `token_env` names is not set.
    """
    name = repository.token_env
    if not name:
        return {}
    if not environ.get(name):
        raise ConfigError(f"repository {repository.name}: token_env names {name}, which is not set in the environment")
    url = urlsplit(repository.source)
    if url.scheme not in ("http", "https"):
        return {}
    basic = base64.b64encode(f"x-access-token:{environ[name]}".encode()).decode()
    # Only for that host: a redirect elsewhere must not carry the token along. Others' entries stay.
    host = url.netloc.rpartition("@")[2]
    number = int(git_environment().get("GIT_CONFIG_COUNT") or 0)
    return {
        "GIT_CONFIG_COUNT": str(number + 1),
        f"GIT_CONFIG_KEY_{number}": f"http.{url.scheme}://{host}/.extraHeader",
        f"GIT_CONFIG_VALUE_{number}": f"Authorization: Basic {basic}",
    }


def is_transient(error: str, repository: Repository) -> bool:
    """Whether git's complaint is of something that may pass by itself; between two folders nothing does."""
    if local_path(repository.source) is not None:
        return False
    return bool(_TRANSIENT.search(error.replace(repository.source, "")))


def explain(error: str, repository: Repository, *, environ: Mapping[str, str]) -> None:
    """Raise what a fetch's complaint means; return when it means that the repository has no commit yet."""
    source = repository.source
    if "find remote ref" in error or "invalid refspec" in error.lower():
        _explain_missing_branch(repository, source, environ)
        return
    brief = " ".join(error.split())[:300]
    if "dubious ownership" in error:
        raise SourceNotFound(
            f"repository {source} belongs to another user, and git refuses to read such: "
            f"run `git config --global --add safe.directory {local_path(repository.source)}`"
        )
    if local_path(repository.source) is not None and "not appear to be a git repository" in error:
        raise SourceNotFound(f"{source} is not a git repository: give the folder that holds its .git, or a clone URL")
    if is_transient(error, repository):
        raise TransientError(f"cannot reach repository {source}: {brief}")
    raise SourceNotFound(
        f"repository {source} cannot be read: check the name and that you may read it "
        f"(private: set token_env for it). git says: {brief}"
    )


def _explain_missing_branch(repository: Repository, source: str, environ: Mapping[str, str]) -> None:
    env = git_environment() | credentials(repository, environ)
    listed = run_git("ls-remote", "--heads", "--", repository.source, env=env).stdout.decode(errors="replace")
    branches = [line.partition("refs/heads/")[2] for line in listed.splitlines()]
    if not branches and not repository.branch:
        return
    missing = (
        f"has no branch {repository.branch!r}" if repository.branch else "names a default branch that does not exist"
    )
    known = f"one of {', '.join(sorted(branches)[:8])}" if branches else "it has no commit yet"
    raise SourceNotFound(f"repository {source} {missing}: set `branch` to one that exists ({known})")
