"""Where a repository's mirror lies, which repository it is of, and who may write it.

A mirror is found by the name in the settings but kept under GitHub's numeric id, so that it survives renames of the
repository and of its entry in the settings. Reading GitHub into it is `fetch`'s, `reconcile`'s and `deliveries`' work.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from filelock import Timeout

from rag_pipeline.errors import ResourceGone, SourceNotFound, TransientError
from rag_pipeline.forgotten import Forgotten, read_marks
from rag_pipeline.lake.refusals import spoken_of
from rag_pipeline.remote.at_once import locked
from rag_pipeline.settings import GitHub, Repository, Settings
from rag_pipeline.sources.github.client import GitHubClient, Page
from rag_pipeline.sources.github.refusal import refusal
from rag_pipeline.sources.github.store import Store
from rag_pipeline.sources.github.threads import Identity

_LOCK_TIMEOUT_S = 3600


class GitHubMirror:
    """The mirror of one repository for one tenant."""

    def __init__(self, settings: Settings, repository: Repository) -> None:
        self.repository = repository
        self._settings = settings
        self.base_url = repository.github_base_url or settings.github.base_url
        self.host = (urlsplit(self.base_url).netloc or "github").removeprefix("api.")
        self._folder = settings.home / "mirrors" / "github" / _name(self.host) / _name(repository.tenant)
        self._alias = self._folder / f"{_name(repository.github.lower())}.json"

    @property
    def limits(self) -> GitHub:
        """What may be removed without confirmation, among others."""
        return self._settings.github

    @property
    def id(self) -> int | None:
        """GitHub's number of the repository; None as long as it was never seen."""
        try:
            return int(json.loads(self._alias.read_text(encoding="utf-8"))["id"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def exists(self) -> bool:
        """Whether anything of the repository was ever read."""
        found = self.id
        return found is not None and self._path(found).exists()

    def open(self) -> Store:
        """The mirror of a repository that was seen; a context manager."""
        found = self.id
        if found is None:
            raise SourceNotFound(f"{self.repository.github} was never read from GitHub: refresh it first")
        return self._store(found)

    def files(self) -> list[Path]:
        """All that is kept of the repository, but for the lock."""
        found = self.id
        return [self._alias, *self._folder.glob(f"{found}.sqlite*")] if found is not None else [self._alias]

    def _store(self, id_: int) -> Store:
        marks = read_marks(self._settings.home)
        if not marks:
            return Store(self._path(id_))
        forgotten, tenant = Forgotten(marks=marks), self.repository.tenant
        return Store(
            self._path(id_),
            refused=refusal(forgotten, tenant=tenant, source_id=lambda number: f"{self.host}/{id_}#{number}"),
        )

    def identity(self, store: Store) -> Identity:
        """As it was last seen."""
        return Identity(
            id=int(store.note("id") or 0), full_name=store.note("full_name") or self.repository.github,
            html_url=store.note("html_url") or f"https://{self.host}/{self.repository.github}",
        )  # fmt: skip

    def source_id(self, identity: Identity, number: int) -> str:
        """A thread's identity: the repository's numeric id, which no rename changes, and its number."""
        return f"{self.host}/{identity.id}#{number}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The right to write; readers need none.

        Raises:
            TransientError: another process held it for an hour.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            with locked(self._alias.with_suffix(".lock"), timeout_s=_LOCK_TIMEOUT_S):
                yield
        except Timeout as error:
            raise TransientError(
                f"another run has been reading {self.repository.github} for an hour: wait for it, or end it"
            ) from error

    def recognise(self, client: GitHubClient) -> Identity:
        """Ask GitHub which repository the name stands for, and remember; a known one is followed by its id.

        Raises:
            SourceNotFound: there is no such repository, or the token may not read it.
        """
        known = self.id
        page = self._repository_page(client, known)
        if known is not None and isinstance(page.data, dict) and page.data.get("id") != known:
            # The repository was renamed and another one has taken its name: it is the first one that is indexed.
            page = self._former(client, known)
        data = page.data if isinstance(page.data, dict) else {}
        if not isinstance(data.get("id"), int) or not isinstance(data.get("full_name"), str):
            raise TransientError(
                f"GitHub's answer about {self.repository.github} is not that of a repository: try again"
            )
        default = f"https://{self.host}/{data['full_name']}"
        html_url = data.get("html_url")
        identity = Identity(
            id=data["id"], full_name=data["full_name"],
            html_url=html_url.rstrip("/") if isinstance(html_url, str) and html_url else default,
        )  # fmt: skip
        self.remember(identity)
        return identity

    def remember(self, identity: Identity) -> None:
        """Note which repository the configured name stands for, and what it is called now."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if self.id != identity.id:
            temporary = self._alias.with_suffix(".tmp")
            with spoken_of(temporary):
                temporary.write_text(json.dumps({"id": identity.id, "name": self.repository.github}), encoding="utf-8")
                temporary.replace(self._alias)
        with self._store(identity.id) as store, store.transaction():
            store.set_note("id", str(identity.id))
            store.set_note("full_name", identity.full_name)
            store.set_note("html_url", identity.html_url)

    def _repository_page(self, client: GitHubClient, known: int | None) -> Page:
        try:
            return client.get(f"/repos/{self.repository.github}")
        except ResourceGone:
            if known is None:
                raise self._not_found() from None
            return self._by_id(client, known)

    def _by_id(self, client: GitHubClient, known: int) -> Page:
        try:
            return client.get(f"/repositories/{known}")
        except ResourceGone:
            raise self._not_found() from None

    def _former(self, client: GitHubClient, known: int) -> Page:
        try:
            return client.get(f"/repositories/{known}")
        except ResourceGone:
            raise SourceNotFound(
                f"{self.repository.github} is another repository now: the one that was indexed under this name "
                f"(number {known}) is gone from {self.base_url}; to index the new one instead, delete {self._alias}"
            ) from None

    def _not_found(self) -> SourceNotFound:
        return SourceNotFound(
            f"GitHub repository {self.repository.github} does not exist at {self.base_url}, or the token may not read "
            "it: check `github` in rag_pipeline.toml, and that the token (github.token_env) has access"
        )

    def _path(self, id_: int) -> Path:
        return self._folder / f"{id_}.sqlite"


def mirror_folders(home: Path) -> list[tuple[str, Path]]:
    """(tenant, folder) of all mirrors there are, of configured repositories and others."""
    folders = (home / "mirrors" / "github").glob("*/*")
    return sorted((unquote(folder.name), folder) for folder in folders if folder.is_dir())


def _name(text: str) -> str:
    quoted = quote(text, safe="")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
