"""`rag_pipeline.toml` and the environment to `Settings`; what is wrong in them is said in one line."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from pydantic import BaseModel, ValidationError

from rag_pipeline.errors import ConfigError
from rag_pipeline.settings.model import Settings

CONFIG_NAME = "rag_pipeline.toml"


def load_settings(
    *, config_file: Path | None = None, environ: Mapping[str, str] = os.environ, cwd: Path | None = None
) -> Settings:
    """Settings of this process.

    `config_file`, else `$RAG_CONFIG`, else `rag_pipeline.toml` in `cwd`; then the environment: `RAG_HOME`, `RAG_LAKE`,
    `DATABASE_URL`, and `RAG_REPO` (index this repository instead of the configured ones).

    Raises:
        ConfigError: the file is missing, is not TOML, or holds an unknown key or a wrong value.
    """
    cwd = cwd or Path.cwd()
    named = config_file or (Path(environ["RAG_CONFIG"]) if environ.get("RAG_CONFIG") else None)
    path = (cwd / named) if named else cwd / CONFIG_NAME
    if named and not path.is_file():
        raise ConfigError(f"configuration file {path} does not exist: create it, or name another with --config")
    values = _read_toml(path) if path.is_file() else {}
    base = path.parent if path.is_file() else cwd
    if environ.get("RAG_REPO"):
        values["repositories"] = [{"source": environ["RAG_REPO"]}]
        base = cwd
    home = Path(environ.get("RAG_HOME") or base / ".rag").expanduser()
    values |= {
        "home": (cwd / home).resolve(),
        "lake": _absolute(environ.get("RAG_LAKE", ""), cwd),
        "database_url": environ.get("DATABASE_URL") or None,
        "config_file": path if path.is_file() else None,
    }
    _complete_repositories(values, base)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, path)) from error


def _read_toml(path: Path) -> dict[str, object]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    for internal in ("home", "lake", "database_url", "config_file"):
        if internal in values:
            raise ConfigError(
                f"{path}: {internal!r} is not a key of this file: "
                "set RAG_HOME, RAG_LAKE or DATABASE_URL in the environment"
            )
    return values


def _complete_repositories(values: dict[str, object], base: Path) -> None:
    """Fill in what a repository takes from the file: absolute path, name, tenant."""
    repositories = values.get("repositories")
    if not isinstance(repositories, list):
        return
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
    """A path as an absolute path, a URL as it is, `owner/name` as GitHub's clone URL; an existing folder wins."""
    if "://" in source or re.match(r"^[\w.-]+@[\w.-]+:", source):
        return source
    path = (base / Path(source).expanduser()).resolve()
    if path.exists() or not re.match(r"^[A-Za-z0-9][\w.-]*/[\w.-]+$", source):
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


def _explain(error: ValidationError, path: Path) -> str:
    """The first thing that is wrong, as one line; what may be a secret is not repeated."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the file"
    if first["type"] == "extra_forbidden":
        return f"{path}: unknown key {where!r}: {_hint([str(part) for part in first['loc']])}"
    message = str(first["msg"]).removeprefix("Value error, ")
    got = first.get("input")
    telling = isinstance(got, str | int | float | bool | date) and not where.endswith(("_env", ".source"))
    return f"{path}: {where}: {message}" + (f" (got {str(got)[:80]!r})" if telling else "")


def _hint(loc: Sequence[str]) -> str:
    """The key that was probably meant: of the same section, else of another."""
    *section, wrong = [part for part in loc if not part.isdigit()]
    paths = _paths(Settings)
    own = {path[-1]: path for path in paths if path[:-1] == tuple(section)}
    elsewhere = {path[-1]: path for path in paths}
    exact = {wrong: elsewhere[wrong]} if wrong in elsewhere else {}
    for keys in (exact, own, elsewhere):
        if close := difflib.get_close_matches(wrong, keys, n=1):
            path = keys[close[0]]
            return f"did you mean {close[0] if path[:-1] == tuple(section) else '.'.join(path)!r}?"
    return "see docs/configuration.md for the keys there are"


def _paths(model: type[BaseModel], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The keys of the file, each with the sections it stands in."""
    found: list[tuple[str, ...]] = []
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        found.append((*above, name))
        for candidate in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                found += _paths(candidate, (*above, name))
    return found
