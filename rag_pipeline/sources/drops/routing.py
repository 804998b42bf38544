"""Which configured repositories a GitHub delivery is about."""

from __future__ import annotations

from rag_pipeline.settings import Repository, Settings, repository_name
from rag_pipeline.sources.drops.parse import Delivery
from rag_pipeline.sources.github.deliveries import Touch
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.threads import Identity


def with_threads_of(settings: Settings, identity: Identity) -> list[Repository]:
    """Those whose threads are this repository's: by GitHub's number where that is known, else by name."""
    return [repository for repository in settings.github_repositories if _has_threads(settings, repository, identity)]


def with_files_of(settings: Settings, identity: Identity) -> list[Repository]:
    """Those whose files are this repository's: by the name in the clone URL or in the settings."""
    return [repository for repository in settings.git_repositories if _has_files(settings, repository, identity)]


def changes_files(repository: Repository, touch: Touch, delivery: Delivery) -> bool:
    """Whether a push moved the branch whose files are indexed."""
    about = delivery.payload.get("repository")
    default = about.get("default_branch") if isinstance(about, dict) else None
    return touch.kind == "push" and touch.branch == (repository.branch or default)


def _has_threads(settings: Settings, repository: Repository, identity: Identity) -> bool:
    known = GitHubMirror(settings, repository).id
    return identity.full_name.lower() == repository.github.lower() if known is None else known == identity.id


def _has_files(settings: Settings, repository: Repository, identity: Identity) -> bool:
    names = {repository_name(repository.source).lower(), repository.name.lower()}
    if identity.full_name.lower() in names:
        return True
    # Renamed on GitHub: the settings still have the name that its threads are known by.
    return repository.github.lower() in names and _has_threads(settings, repository, identity)
