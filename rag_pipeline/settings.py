"""The one typed `Settings`: read from `rag_pipeline.toml` and the environment, validated, frozen.

Secrets never stand in the file: the file names the environment variable that holds one (`api_key_env`, `token_env`).
Nothing here touches the network, a database or a repository.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from rag_pipeline.errors import ConfigError

CONFIG_NAME = "rag_pipeline.toml"
_VARIABLE = re.compile(r"^[A-Z_][A-Z0-9_]*$")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")


def _variable(name: str) -> str:
    if name and not _VARIABLE.match(name):
        raise ValueError("must be the name of an environment variable, in capitals, and never the secret itself")
    return name


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Repository(_Section):
    """One git repository to index."""

    source: str = Field(min_length=1)
    """A local path, a clone URL, or `owner/name` on GitHub."""
    name: str = ""
    """What it is called in the index; by default `owner/name` of the URL, or the folder's name."""
    tenant: str = ""
    """Whose knowledge it is; by default the file's `tenant`."""
    branch: str = ""
    """By default the remote's HEAD."""
    start_date: date | None = None
    """Its first daily partition; everything older is in that one. By default the file's `start_date`."""
    include: tuple[str, ...] = ()
    """Globs of paths to index (gitignore syntax); empty means all."""
    exclude: tuple[str, ...] = ()
    """Globs of paths never to index (gitignore syntax)."""
    web_url: str = ""
    """Base of links, such as `https://github.com/owner/name`; by default taken from the clone URL."""
    token_env: str = ""
    """Environment variable with a token for an https clone; empty: git's own credentials."""

    @field_validator("name")
    @classmethod
    def _name_is_plain(cls, name: str) -> str:
        if name and not _NAME.match(name):
            raise ValueError("may hold letters, digits, '.', '_', '-' and single slashes")
        return name

    @field_validator("source")
    @classmethod
    def _source_holds_no_secret(cls, source: str) -> str:
        if re.match(r"^https?://[^/]*@|^[a-z+]+://[^/@]*:[^/]*@", source):
            raise ValueError("holds a credential: take it out, and name the variable that holds it as `token_env`")
        return source

    @field_validator("token_env")
    @classmethod
    def _token_is_named(cls, name: str) -> str:
        return _variable(name)


class GitLimits(_Section):
    """What is too much of a file to be knowledge."""

    max_file_bytes: int = Field(default=1_000_000, ge=1)
    max_line_chars: int = Field(default=2_000, ge=80)
    """Files whose lines are longer than this on average are minified or data."""
    extra_vendored: tuple[str, ...] = ()
    """More globs of vendored paths, beside the built-in ones."""


class Chunking(_Section):
    """Sizes in tokens of the embedding model."""

    max_tokens: int = Field(default=200, ge=16, le=8192)
    min_tokens: int = Field(default=24, ge=0)

    @model_validator(mode="after")
    def _ordered(self) -> Chunking:
        if self.min_tokens * 2 > self.max_tokens:
            raise ValueError("min_tokens must be at most half of max_tokens")
        return self


class Embedding(_Section):
    """Which model makes vectors. A key in the environment alone never selects a provider."""

    provider: Literal["local", "openai", "azure-openai", "sentence-transformers", "fastembed"] = "local"
    model: str = "all-MiniLM-L6-v2"
    dimensions: int | None = Field(default=None, ge=1, le=4000)
    """Asked of models that can shorten their vectors; by default the model's own length."""
    base_url: str = ""
    """Of an OpenAI-compatible server; empty: api.openai.com."""
    api_version: str = "2024-10-21"
    """Azure OpenAI only."""
    api_key_env: str = "OPENAI_API_KEY"
    batch_texts: int = Field(default=256, ge=1, le=2048)
    batch_tokens: int = Field(default=100_000, ge=1)
    max_input_tokens: int = Field(default=8191, ge=1)
    """Longer inputs are shortened to this before they are sent."""
    concurrency: int = Field(default=4, ge=1, le=64)
    timeout_s: float = Field(default=60.0, gt=0)
    max_retries: int = Field(default=6, ge=0)
    threads: int = Field(default=0, ge=0)
    """Sessions of one thread each for the local model; 0: one per core, at most 8."""
    price_per_million_tokens: float = Field(default=0.0, ge=0)
    """In USD, for the estimated cost in the metadata."""

    @field_validator("api_key_env")
    @classmethod
    def _key_is_named(cls, name: str) -> str:
        return _variable(name)


class Quality(_Section):
    """When a run must not look healthy."""

    max_failures: int = Field(default=50, ge=0)
    max_failure_share: Annotated[float, Field(ge=0, le=1)] = 0.05
    """A run fails when more items than `max_failures` and a larger share than this failed."""


class Settings(_Section):
    """Everything that can be configured."""

    tenant: str = Field(default="default", min_length=1)
    start_date: date | None = None
    """The first daily partition; by default one week before this RAG_HOME was first used."""
    repositories: tuple[Repository, ...] = ()
    git: GitLimits = GitLimits()
    chunking: Chunking = Chunking()
    embedding: Embedding = Embedding()
    quality: Quality = Quality()
    sample_question: str = "How do I get started?"
    """Answered after `rag-pipeline up`, and the default of the `query` asset."""

    home: Path = Field(default=Path(".rag"), exclude=True)
    lake: str = Field(default="", exclude=True)
    database_url: str | None = Field(default=None, exclude=True, repr=False)
    config_file: Path | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Settings:
        seen: dict[tuple[str, str], str] = {}
        for repository in self.repositories:
            key = (repository.tenant, repository.name)
            if key in seen:
                raise ValueError(
                    f"repositories {seen[key]!r} and {repository.source!r} are both named {repository.name!r} "
                    f"for tenant {repository.tenant!r}: give one of them another `name`"
                )
            seen[key] = repository.source
        return self

    @property
    def lake_url(self) -> str:
        """Where stage data lies: any fsspec URL, by default a folder in RAG_HOME."""
        return self.lake or str(self.home / "lake")

    @property
    def first_day(self) -> date:
        """The first daily partition of the code location (UTC)."""
        days = [r.start_date for r in self.repositories if r.start_date]
        if self.start_date is None and len(days) < max(1, len(self.repositories)):
            days.append(_first_use(self.home) - timedelta(days=7))
        if self.start_date is not None:
            days.append(self.start_date)
        return min(days)

    def first_day_of(self, repository: Repository) -> date:
        """The first daily partition of one repository (UTC)."""
        return repository.start_date or self.start_date or self.first_day


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


def fingerprint(section: BaseModel | Mapping[str, object]) -> str:
    """A short hash of settings, to tell whether what was made with them is still what they would make."""
    data = section.model_dump(mode="json") if isinstance(section, BaseModel) else section
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest()


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
        if not isinstance(repository, dict) or not isinstance(repository.get("source"), str):
            continue
        source = resolve_source(repository["source"], base)
        repository["source"] = source
        repository["name"] = repository.get("name") or repository_name(source)
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


def _first_use(home: Path) -> date:
    """The day this RAG_HOME was first used; kept in a file, so that partitions do not slide."""
    marker = home / "first_use"
    try:
        return date.fromisoformat(marker.read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        today = datetime.now(UTC).date()
        home.mkdir(parents=True, exist_ok=True)
        marker.write_text(today.isoformat() + "\n", encoding="utf-8")
        return today


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
