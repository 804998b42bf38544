"""What the file cannot tell: settings that are valid and would still disappoint when they are used."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path

import pathspec

from rag_pipeline.cli.answering_warnings import answering_warnings
from rag_pipeline.errors import RagPipelineError
from rag_pipeline.extras import how_to_add
from rag_pipeline.settings import Repository, Settings
from rag_pipeline.settings.complaints import Complaint, Place
from rag_pipeline.sources.git.command import git_environment, run_git
from rag_pipeline.sources.git.remote import credentials, explain, local_head, local_path, wanted_ref
from rag_pipeline.sources.kinds import Outside, kinds
from rag_pipeline.sources.kinds.registry import blocks_that_hold

_PAID = ("openai", "azure-openai")


def warnings_of(settings: Settings, *, environ: Mapping[str, str], online: bool) -> list[Complaint]:
    """Everything that would only show at use; `online` also asks whoever is named."""
    found = [
        *_variables(settings, environ),
        *_names(settings),
        *_models(settings),
        *_redaction(),
        *_files(settings),
        *_budgets(settings),
        *answering_warnings(settings, environ, online=online),
    ]
    for number, repository in enumerate(settings.repositories):
        found += _repository(repository, number, environ=environ, online=online)
    found += _texts_without_vector(settings, online=online)
    return found + (list(_online(settings, environ)) if online else [])


def _variables(settings: Settings, environ: Mapping[str, str]) -> Iterator[Complaint]:
    """Variables that the settings make necessary, and that are not set."""
    github, rerank = settings.github, settings.rerank
    wanted: list[tuple[Place, str, str]] = []
    if settings.embedding.provider in _PAID:
        wanted.append((("embedding", "api_key_env"), settings.embedding.api_key_env, "no text can be embedded"))
    if rerank.provider in ("hosted", "openai"):
        name = rerank.api_key_env or ("OPENAI_API_KEY" if rerank.provider == "openai" else "RERANK_API_KEY")
        wanted.append((("rerank", "api_key_env"), name, "hits keep the order that they had"))
    if github.app_id:
        wanted.append((("github", "app_private_key_env"), github.app_private_key_env, "GitHub cannot be asked"))
    elif any(repository.github and not repository.token_env for repository in settings.repositories):
        wanted.append((("github", "token_env"), github.token_env, "GitHub answers 60 times an hour, public data only"))
    wanted += [
        (("repositories", number, "token_env"), repository.token_env, "it cannot be read")
        for number, repository in enumerate(settings.repositories)
        if repository.token_env
    ]
    for place, name, without in wanted:
        if not environ.get(name):
            yield _doubt(place, f"the environment variable {name or '(none named)'} is not set: {without}")


def _names(settings: Settings) -> Iterator[Complaint]:
    """Names that are one only to people."""
    tenants = {settings.tenant: ("tenant",)} | {
        repository.tenant: ("repositories", number, "tenant")
        for number, repository in reversed(list(enumerate(settings.repositories)))
        if repository.tenant and repository.tenant != settings.tenant
    }
    names = {
        (repository.tenant, repository.name): ("repositories", number, "name")
        for number, repository in enumerate(settings.repositories)
    }
    yield from _differ_by_case("tenant", tenants)
    for tenant in tenants:
        own = {name: place for (owner, name), place in names.items() if owner == tenant}
        yield from _differ_by_case("name", own)


def _differ_by_case(what: str, places: Mapping[str, Place]) -> Iterator[Complaint]:
    seen: dict[str, str] = {}
    for name, place in places.items():
        if (other := seen.setdefault(name.casefold(), name)) != name:
            yield _doubt(place, f"{name!r} and {other!r} differ by case only, and are two {what}s: write them alike")


def _models(settings: Settings) -> Iterator[Complaint]:
    """Libraries that a model needs, and models that are not there."""
    provider = settings.embedding.provider
    extras = {"sentence-transformers": "sentence_transformers", "fastembed": "fastembed"}
    if provider in extras and not importlib.util.find_spec(extras[provider]):
        yield _doubt(("embedding", "provider"), f"{provider} is not installed: {how_to_add(provider)}")
    if settings.rerank.provider == "cross-encoder" and not any(map(importlib.util.find_spec, extras.values())):
        yield _doubt(
            ("rerank", "provider"),
            f"neither sentence-transformers nor fastembed is installed: {how_to_add('sentence-transformers')}",
        )
    if provider == "local":
        from rag_pipeline.embedding import refusal

        yield from _embedder(settings, {})
        if reason := refusal(settings.embedding):
            yield _doubt(("embedding", "model"), reason)
    if "reranked" in settings.evaluation.legs and settings.rerank.provider == "none":
        yield _doubt(("evaluation", "legs"), "`reranked` needs a reranker: set rerank.provider, or leave it out")


def _redaction() -> Iterator[Complaint]:
    """The engine that finds secrets, without which no document can be cleaned."""
    from rag_pipeline.documents.redaction import check_engine

    try:
        check_engine()
    except RagPipelineError as error:
        yield _doubt(("redaction",), str(error))


def _embedder(settings: Settings, environ: Mapping[str, str], *, ask: bool = False) -> Iterator[Complaint]:
    from rag_pipeline.embedding import make_embedder

    try:
        embedder = make_embedder(settings.embedding, environ=environ)
        try:
            if ask:
                embedder.embed_query("Is anybody there?")
        finally:
            embedder.close()
    except RagPipelineError as error:
        yield _doubt(("embedding", "model"), f"the model cannot be used: {error}")


def _texts_without_vector(settings: Settings, *, online: bool) -> Iterator[Complaint]:
    """Texts that the active model cannot read, of an index that runs here, or that we may ask."""
    from rag_pipeline.embedded import EmbeddedPostgres
    from rag_pipeline.index.database import connected
    from rag_pipeline.index.migrations import pending
    from rag_pipeline.index.spaces import active_space, unreadable_texts
    from rag_pipeline.refresh.spaces import unreadable_note

    embedded = EmbeddedPostgres(settings.home)
    if not (online if settings.database_url else embedded.is_running()):
        return
    url = settings.database_url or embedded.url()
    with suppress(RagPipelineError):  # who asks online is told of a database that does not answer
        if not pending(url):
            with connected(url) as connection:
                space = active_space(connection)
                if space and (note := unreadable_note(unreadable_texts(connection, space), space)):
                    yield _doubt(("embedding", "model"), note)


def _files(settings: Settings) -> Iterator[Complaint]:
    """Globs that match nothing, and folders that are not there."""
    for number, glob in enumerate(settings.evaluation.labels):
        path = settings.base / glob
        if not any(Path(path.anchor).glob(str(path.relative_to(path.anchor)))):
            yield _doubt(("evaluation", "labels", number), f"{glob!r} matches no file: nothing is asked from it")
    for number, folder in enumerate(settings.evaluation.datasets):
        if not (settings.base / folder).is_dir():
            yield _doubt(("evaluation", "datasets", number), f"there is no folder {folder!r}: correct or remove it")


def _budgets(settings: Settings) -> Iterator[Complaint]:
    embedding = settings.embedding
    if embedding.provider in _PAID and not embedding.base_url and not embedding.price_per_million_tokens:
        yield _doubt(
            ("embedding", "price_per_million_tokens"),
            f"{embedding.provider} costs money and no price is set: costs show as 0, and no budget can hold them",
        )


def _repository(
    repository: Repository, number: int, *, environ: Mapping[str, str], online: bool
) -> Iterator[Complaint]:  # fmt: skip
    place: Place = ("repositories", number)
    today = datetime.now(UTC).date()
    if repository.start_date and repository.start_date > today:
        yield _doubt((*place, "start_date"), f"{repository.start_date} is in the future: nothing is indexed before it")
    yield from _patterns(repository, place)
    if not repository.source:
        return
    folder = local_path(repository.source)
    if folder is not None:
        if not folder.exists():
            yield _doubt((*place, "source"), f"{repository.source} does not exist: name a folder, or a clone URL")
        elif local_head(repository) is None:
            what = f"has no branch {repository.branch!r}" if repository.branch else "is no git repository with a commit"
            yield _doubt((*place, "source"), f"{repository.source} {what}: nothing can be read from it")
    elif online:
        yield from _remote(repository, place, environ)


def _patterns(repository: Repository, place: Place) -> Iterator[Complaint]:
    """Patterns that git would not understand, and of a local repository those that match no file."""
    files = _files_of(repository)
    for key, patterns in (("include", repository.include), ("exclude", repository.exclude)):
        for number, pattern in enumerate(patterns):
            try:
                spec = pathspec.GitIgnoreSpec.from_lines([pattern.removeprefix("!")])
            except ValueError as error:
                yield _doubt((*place, key, number), f"{pattern!r} is no pattern as in .gitignore: {error}")
                continue
            if files and not any(spec.match_file(file) for file in files):
                yield _doubt((*place, key, number), f"{pattern!r} matches no file of {repository.name}: correct it")


def _files_of(repository: Repository) -> list[str]:
    folder = local_path(repository.source) if repository.source else None
    if folder is None or not (repository.include or repository.exclude) or not folder.is_dir():
        return []
    head = local_head(repository)
    listed = run_git("-C", str(folder), "ls-tree", "-r", "-z", "--name-only", head or "HEAD").stdout
    return listed.decode(errors="replace").split("\0")[:-1]


def _remote(repository: Repository, place: Place, environ: Mapping[str, str]) -> Iterator[Complaint]:
    try:
        env = git_environment() | credentials(repository, environ)
        asked = run_git("ls-remote", "--exit-code", "--", repository.source, wanted_ref(repository), env=env)
        if asked.returncode == 2:
            yield _doubt((*place, "branch"), f"{repository.source} has no {wanted_ref(repository)}: set `branch`")
        elif asked.returncode:
            explain(asked.stderr.decode(errors="replace"), repository, environ=environ)
    except RagPipelineError as error:
        yield _doubt((*place, "source"), str(error))


def _online(settings: Settings, environ: Mapping[str, str]) -> Iterable[Complaint]:
    """The database that is named, and a model that is not on this machine."""
    from rag_pipeline.index.database import connected
    from rag_pipeline.index.migrations import lacks_trigrams

    for name, url in (("DATABASE_URL", settings.database_url), ("RAG_REPLICA_URL", settings.replica_url)):
        try:
            with connected(url) if url else nullcontext():
                pass
            if url and (lacks := lacks_trigrams(url)):
                yield _doubt((name,), lacks)
        except RagPipelineError as error:
            yield _doubt((name,), str(error))
    if settings.embedding.provider != "local":
        yield from _embedder(settings, environ, ask=True)
    outside = Outside(base=settings.base, environ=environ)
    for kind in kinds():
        for number, block in blocks_that_hold(kind, settings):
            try:
                next(iter(kind.list(block, outside)), None)
            except Exception as error:
                yield _doubt(("sources", kind.name, number), f"{block.name} cannot be listed: {error}")


def _doubt(place: Place, message: str) -> Complaint:
    return Complaint(place=place, message=message)
