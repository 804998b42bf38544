"""`rag_pipeline.toml` and the environment to `Settings`; what is wrong in them is said in one line."""

from __future__ import annotations

import copy
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from rag_pipeline.errors import ConfigError
from rag_pipeline.settings.complaints import complaints_of, spoken
from rag_pipeline.settings.model import Settings

CONFIG_NAME = "rag_pipeline.toml"
INTERNAL = ("home", "lake", "database_url", "replica_url", "config_file")
"""What `Settings` takes from the environment, never from the file."""


def load_settings(
    *, config_file: Path | None = None, environ: Mapping[str, str] = os.environ, cwd: Path | None = None
) -> Settings:
    """Settings of this process.

    `config_file`, else `$RAG_CONFIG`, else `rag_pipeline.toml` in `cwd`; then the environment: `RAG_HOME`, `RAG_LAKE`,
    `DATABASE_URL`, `RAG_REPLICA_URL`, and `RAG_REPO` (index this repository instead of the configured ones).

    Raises:
        ConfigError: the file is missing, is not TOML, or holds an unknown key or a wrong value.
    """
    cwd = cwd or Path.cwd()
    path = config_path(config_file=config_file, environ=environ, cwd=cwd)
    written = read_toml(path) if path.is_file() else {}
    for internal in INTERNAL:
        if internal in written:
            raise ConfigError(f"{path}: {refused(internal)}")
    try:
        return Settings.model_validate(values_of(written, path, environ=environ, cwd=cwd))
    except ValidationError as error:
        raise ConfigError(f"{path}: {spoken(complaints_of(error)[0])}") from error


def config_path(*, config_file: Path | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """The configuration file of this process; one that was not named need not exist.

    Raises:
        ConfigError: the named one does not exist.
    """
    named = config_file or (Path(environ["RAG_CONFIG"]) if environ.get("RAG_CONFIG") else None)
    path = (cwd / named) if named else cwd / CONFIG_NAME
    if named and not path.is_file():
        raise ConfigError(f"configuration file {path} does not exist: create it, or name another with --config")
    return path


def values_of(
    written: dict[str, object], path: Path, *, environ: Mapping[str, str], cwd: Path
) -> dict[str, object]:  # fmt: skip
    """What the file says, completed by the environment: everything that `Settings` is made of."""
    values = {key: value for key, value in written.items() if key not in INTERNAL}
    base = path.parent if path.is_file() else cwd
    if environ.get("RAG_REPO"):
        values["repositories"] = [{"source": environ["RAG_REPO"]}]
        values.pop("sources", None)
        base = cwd
    home = Path(environ.get("RAG_HOME") or base / ".rag").expanduser()
    values |= {
        "home": (cwd / home).resolve(),
        "lake": _absolute(environ.get("RAG_LAKE", ""), cwd),
        "database_url": environ.get("DATABASE_URL") or None,
        "replica_url": environ.get("RAG_REPLICA_URL") or None,
        "config_file": path if path.is_file() else None,
    }
    try:
        _complete_repositories(values, base)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return values


def read_toml(path: Path) -> dict[str, object]:
    """What the file says.

    Raises:
        ConfigError: it is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deeply to be read: write its lists and tables flat") from error


def refused(internal: str) -> str:
    """What to do instead of naming an internal key in the file."""
    names = "RAG_HOME, RAG_LAKE, DATABASE_URL or RAG_REPLICA_URL"
    return f"{internal!r} is not a key of this file: set {names} in the environment"


def _complete_repositories(values: dict[str, object], base: Path) -> None:
    """Fill in what a repository takes from the file: absolute path, name, tenant."""
    repositories = values.get("repositories")
    if not isinstance(repositories, list):
        return
    # The caller's own tables stay as they were written.
    repositories = values["repositories"] = copy.deepcopy(repositories)
    tenant = values.get("tenant", "default")
    for repository in repositories:
        if not isinstance(repository, dict) or not isinstance(repository.get("source", ""), str):
            continue
        if source := repository.get("source"):
            repository["source"] = resolve_source(source, base)
        default = repository_name(repository["source"]) if source else repository.get("github")
        repository["name"] = repository.get("name") or default or ""
        repository["tenant"] = repository.get("tenant") or tenant


def _absolute(lake: str, cwd: Path) -> str:
    """Processes of one installation run in different folders: the same words must name the same lake in all."""
    return lake if not lake or "://" in lake else str((cwd / Path(lake).expanduser()).resolve())


def resolve_source(source: str, base: Path) -> str:
    """A path as an absolute path, a URL as it is, `owner/name` as GitHub's clone URL; an existing folder wins.

    Raises:
        ConfigError: it is none of these.
    """
    if "://" in source or re.match(r"^[\w.-]+@[\w.-]+:", source):
        return source
    try:
        path = (base / Path(source).expanduser()).resolve()
        exists = path.exists()
    except (RuntimeError, ValueError, OSError) as error:  # a user without a home, a NUL, too long a name, a circle
        raise ConfigError(f"source {source[:200]!r} is not a path, a URL or owner/name: {error}") from error
    if exists or not re.match(r"^[A-Za-z0-9][\w.-]*/[\w.-]+$", source):
        return str(path)
    return f"https://github.com/{source}.git"


def repository_name(source: str) -> str:
    """`owner/name` of a clone URL, the folder's name of a path."""
    if "://" in source and not source.startswith("file://"):
        path = source.split("://", 1)[1].partition("/")[2]
    elif re.match(r"^[\w.-]+@[\w.-]+:", source):
        path = source.partition(":")[2]
    else:
        path = Path(source.removeprefix("file://")).resolve().name
    name = re.sub(r"[^A-Za-z0-9._/-]+", "-", path.strip("/").removesuffix(".git"))
    return re.sub(r"(^|/)[._-]+", r"\1", name) or "repository"
