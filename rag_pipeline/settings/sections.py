"""The sections of `rag_pipeline.toml`, each with what it means, its default and what it may be.

Secrets never stand in the file: it names the environment variable that holds one (`api_key_env`, `token_env`, …).
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rag_pipeline.settings.noisy_authors import NOISY_AUTHORS

_VARIABLE = re.compile(r"^[A-Z_][A-Z0-9_]*$")
_LANGUAGE = re.compile(r"^[a-z][a-z0-9+#.-]{0,30}$")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")


def variable_name(name: str) -> str:
    """The name of an environment variable, checked."""
    if name and not _VARIABLE.match(name):
        raise ValueError("must be the name of an environment variable, in capitals, and never the secret itself")
    return name


def web_address(url: str) -> str:
    """An address, checked, without a slash at its end."""
    if url and not re.match(r"^https?://[^/@\s?#]+(/[^@\s?#]*)?$", url):
        raise ValueError("must be an http(s) address without credentials, query or fragment")
    return url.rstrip("/")


def plain_name(name: str) -> str:
    """The name of a source in the index, checked."""
    if name and not _NAME.match(name):
        raise ValueError("may hold letters, digits, '.', '_', '-' and single slashes")
    return name


Context = Literal["none", "symbols", "headings"]
"""What a chunk is embedded with beside its text: the function or type that code is from, where it does not name it
itself (`symbols`); also the headings of prose (`headings`)."""


class Section(BaseModel):
    """A section of the file: frozen, and nothing in it that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ServiceSection(Section):
    """A section that names a service on the web; sections of this kind say themselves what their fields mean."""

    base_url: str = ""
    api_key_env: str = ""

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        return web_address(url)

    @field_validator("api_key_env")
    @classmethod
    def _key_is_named(cls, name: str) -> str:
        return variable_name(name)


class Repository(Section):
    """One repository to index: its files, its pull requests and issues on GitHub, or both."""

    source: str = ""
    """A local path, a clone URL, or `owner/name` on GitHub; empty: only what `github` names."""
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
    """Environment variable with a token for an https clone and for GitHub's API; empty: git's own credentials, and
    `github.token_env`."""
    github: str = ""
    """`owner/name` on GitHub whose pull requests and issues are indexed too; empty: none."""
    github_base_url: str = ""
    """REST API of the GitHub that holds it; by default `github.base_url`."""

    @field_validator("github")
    @classmethod
    def _github_is_owner_and_name(cls, github: str) -> str:
        if github and not re.match(r"^[A-Za-z0-9][\w.-]*/[\w.-]+$", github):
            raise ValueError("must be owner/name, as in the repository's address on GitHub")
        return github

    @field_validator("github_base_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        return web_address(url)

    @model_validator(mode="after")
    def _names_something(self) -> Repository:
        if not self.source and not self.github:
            raise ValueError("names nothing to index: give it a `source` (git), a `github` (owner/name), or both")
        return self

    @field_validator("name")
    @classmethod
    def _name_is_plain(cls, name: str) -> str:
        return plain_name(name)

    @field_validator("source")
    @classmethod
    def _source_holds_no_secret(cls, source: str) -> str:
        if re.match(r"^https?://[^/]*@|^[a-z+]+://[^/@]*:[^/]*@", source):
            raise ValueError("holds a credential: take it out, and name the variable that holds it as `token_env`")
        return source

    @field_validator("token_env")
    @classmethod
    def _token_is_named(cls, name: str) -> str:
        return variable_name(name)


DOCS_LANGUAGES = (
    "asciidoc", "html", "markdown", "mdx", "notebook", "org", "restructuredtext", "text",
)  # fmt: skip
"""In which docs are read; every other markup is text."""


class FileType(Section):
    """What files of a name or an ending are."""

    kind: Literal["docs", "code", "none"]
    """Prose, source code, or not for the index."""
    language: str = "text"
    """Of docs: how they are read. Of code: any, in lower case."""

    @model_validator(mode="after")
    def _language_is_known(self) -> FileType:
        if self.kind == "docs" and self.language not in DOCS_LANGUAGES:
            raise ValueError(f"docs are not read as {self.language!r}: choose from {', '.join(DOCS_LANGUAGES)}")
        if self.kind == "code" and not _LANGUAGE.match(self.language):
            raise ValueError(f"{self.language!r} is no language: use lower-case letters, digits, '+', '#', '.' and '-'")
        if self.kind == "none" and "language" in self.model_fields_set:
            raise ValueError("files that are not for the index have no language: leave `language` out")
        return self


class GitLimits(Section):
    """What of a repository is knowledge, and what is too much of a file."""

    max_file_bytes: int = Field(default=1_000_000, ge=1)
    """Larger files are not indexed."""
    max_line_chars: int = Field(default=2_000, ge=80)
    """Files whose lines are longer than this on average are minified or data."""
    extra_vendored: tuple[str, ...] = ()
    """More globs of vendored paths, beside the built-in ones."""
    file_types: dict[str, FileType] = Field(default_factory=dict)
    """By ending (`.foo`) or name (`Foofile`), in any case: what such files are, whatever is built in."""

    @field_validator("file_types")
    @classmethod
    def _are_names_and_endings(cls, types: dict[str, FileType]) -> dict[str, FileType]:
        lowered: dict[str, FileType] = {}
        for name, type_ in types.items():
            if not name.strip(". ") or re.search(r"[/\\*?\[\]]", name) or name != name.strip():
                raise ValueError(f"{name!r} is no ending and no name: write `.foo` or `Foofile`, without a path or `*`")
            if name.lower() in lowered:
                raise ValueError(f"{name!r} is there twice, and case does not matter: keep one of them")
            lowered[name.lower()] = type_
        return lowered


class GitHub(Section):
    """How GitHub is asked for pull requests and issues."""

    base_url: str = "https://api.github.com"
    """REST API; of GitHub Enterprise Server `https://HOST/api/v3`."""
    token_env: str = "GITHUB_TOKEN"
    """Environment variable with a token. When it is not set, GitHub is asked without one (60 requests an hour)."""
    app_id: str = ""
    """Of a GitHub App to authenticate as, instead of with a token."""
    app_installation_id: int | None = Field(default=None, ge=1)
    """By default looked up by the repository."""
    app_private_key_env: str = "GITHUB_APP_PRIVATE_KEY"
    """Environment variable with the App's private key: the PEM text, or the path of its file."""
    quota_share_left: float = Field(default=0.1, ge=0, lt=1)
    """This share of the rate limit is left to others."""
    max_wait_s: float = Field(default=300.0, ge=0)
    """Longer waits for a rate limit end the reading; the next run goes on from there."""
    max_retries: int = Field(default=5, ge=0)
    """Of one request, after server errors and broken connections."""
    timeout_s: float = Field(default=30.0, gt=0)
    """Patience with one request."""
    max_removed_items: int = Field(default=10, ge=0)
    """A removal of more items of a kind within a day than this, and a larger share than `max_removed_share`, waits."""
    max_removed_share: Annotated[float, Field(ge=0, le=1)] = 0.1
    """A removal of more items of a kind within a day than `max_removed_items`, and a larger share than this, waits."""

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        return web_address(url)

    @field_validator("token_env", "app_private_key_env")
    @classmethod
    def _secret_is_named(cls, name: str) -> str:
        return variable_name(name)


class Threads(Section):
    """What of a conversation is noise."""

    noisy_authors: tuple[str, ...] = NOISY_AUTHORS
    """Globs of logins (case does not matter) whose comments and reviews are left out; what they open is kept."""
    kept_authors: tuple[str, ...] = ()
    """Globs of logins that are never noise, whatever `noisy_authors` says."""


class Redaction(Section):
    """What does not leave cleaning. Keys, tokens and passwords never do."""

    emails: bool = False
    """Addresses of people are redacted too; those of documentation (`@example.com`) stay."""
    allowed: tuple[str, ...] = ()
    """Regular expressions of values that are no secrets; each matches a whole value."""

    @field_validator("allowed")
    @classmethod
    def _are_patterns(cls, allowed: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in allowed:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return allowed

    def allows(self, value: str) -> bool:
        """Whether a value is known to be no secret."""
        return any(re.fullmatch(pattern, value) for pattern in self.allowed)


class Drops(Section):
    """The inbox that webhooks and people drop knowledge into."""

    inbox: str = ""
    """A folder or fsspec URL; by default `RAG_HOME/inbox`."""
    max_batch: int = Field(default=500, ge=1)
    """Drops that one run takes; what is left waits for the next."""
    settle_s: float = Field(default=2.0, ge=0)
    """A file that changed more recently than this is still being written."""
    max_drop_bytes: int = Field(default=27_262_976, ge=1)
    """Larger files are rejected."""


class Webhooks(Section):
    """The receiver of GitHub's deliveries (`rag-pipeline webhooks`)."""

    secret_env: str = "GITHUB_WEBHOOK_SECRET"
    """Environment variable with the secret that signs the deliveries."""
    max_body_bytes: int = Field(default=26_214_400, ge=1)
    """GitHub sends at most 25 MB."""

    @field_validator("secret_env")
    @classmethod
    def _secret_is_named(cls, name: str) -> str:
        return variable_name(name)


class Documents(Section):
    """What one document may cost, so that none stalls the others; one that costs more is quarantined."""

    max_bytes: int = Field(default=20_000_000, ge=1_000)
    """Of its source."""
    timeout_s: float = Field(default=60.0, gt=0)
    """For cleaning it, and again for chunking it."""
    memory_bytes: int = Field(default=4 << 30, ge=1 << 29)
    """For each process that reads documents."""


class Chunking(Section):
    """Sizes in tokens of the embedding model."""

    max_tokens: int = Field(default=160, ge=16, le=8192)
    """No chunk is longer."""
    min_tokens: int = Field(default=24, ge=0)
    """Smaller chunks are joined to a neighbour where both fit."""
    overlap_tokens: int = Field(default=0, ge=0)
    """So much of the end of a chunk, in whole sentences or lines, stands at the beginning of the next one, too."""

    @model_validator(mode="after")
    def _ordered(self) -> Chunking:
        if self.overlap_tokens * 2 > self.max_tokens:
            raise ValueError("overlap_tokens must be at most half of max_tokens")
        if self.min_tokens * 2 > self.max_tokens - self.overlap_tokens:
            raise ValueError("min_tokens must be at most half of max_tokens, overlap_tokens taken off")
        return self


class Embedding(ServiceSection):
    """Which model makes vectors. A key in the environment alone never selects a provider."""

    provider: Literal["local", "openai", "azure-openai", "sentence-transformers", "fastembed"] = "local"
    """Who makes the vectors; `local` needs no account and no network."""
    model: str = "all-MiniLM-L6-v2"
    """As the provider knows it."""
    dimensions: int | None = Field(default=None, ge=1, le=4000)
    """Asked of models that can shorten their vectors; by default the model's own length."""
    context: Context = "symbols"
    """What a chunk is embedded with beside its text: the function or type that code is from (`symbols`), also the
    headings of prose (`headings`)."""
    passage_prefix: str = ""
    """Put before every chunk that is embedded, for models that were trained so (`"passage: "`)."""
    query_prefix: str = ""
    """Put before every question (`"query: "`)."""
    min_known_share: float = Field(default=0.5, ge=0, le=1)
    """Of a text's words the model must know so many, or the text gets no vector and is found by its words alone; only
    for models with a fixed vocabulary, as the local one has."""
    base_url: str = ""
    """Of an OpenAI-compatible server; empty: api.openai.com."""
    api_version: str = "2024-10-21"
    """Azure OpenAI only."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key."""
    batch_texts: int = Field(default=256, ge=1, le=2048)
    """In one request."""
    batch_tokens: int = Field(default=100_000, ge=1)
    """In one request."""
    max_input_tokens: int = Field(default=8191, ge=1)
    """Longer inputs are shortened to this before they are sent."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Requests under way at once."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Patience with one request."""
    max_retries: int = Field(default=6, ge=0)
    """Further attempts after a transient failure."""
    threads: int = Field(default=0, ge=0)
    """Threads of the local model; 0: one per core that this process may use, two for a GPU."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the local model runs; `auto`: on a GPU where the installed onnxruntime can use one."""
    precision: Literal["auto", "float32"] = "auto"
    """What the local model computes in; `auto`: bfloat16 where the processor can (AMX, AVX-512 BF16)."""
    price_per_million_tokens: float = Field(default=0.0, ge=0)
    """In USD; above 0 it comes before `[prices]`."""
