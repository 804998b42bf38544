"""Which configured repositories a GitHub delivery is about."""

from __future__ import annotations

from rag_pipeline.settings import Repository, Settings, repository_name
from rag_pipeline.sources.drops.parse import Delivery
from rag_pipeline.sources.github.deliveries import Touch
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.threads import Identity


def repositories_of(settings: Settings, identity: Identity) -> list[Repository]:
    """The configured repositories that are this one: by GitHub's number where that is known, else by name."""
    return [repository for repository in settings.repositories if _is_same(settings, repository, identity)]


def changes_files(repository: Repository, touch: Touch, delivery: Delivery) -> bool:
    """Whether a push moved the branch whose files are indexed."""
    if touch.kind != "push" or not repository.source:
        return False
    about = delivery.payload.get("repository")
    default = about.get("default_branch") if isinstance(about, dict) else None
    return touch.branch == (repository.branch or default)


def _is_same(settings: Settings, repository: Repository, identity: Identity) -> bool:
    if repository.github and (known := GitHubMirror(settings, repository).id) is not None:
        return known == identity.id
    names = {repository.github, repository_name(repository.source) if repository.source else ""}
    return identity.full_name.lower() in {name.lower() for name in names}
