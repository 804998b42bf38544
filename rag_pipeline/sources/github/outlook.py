"""What reading a repository on GitHub will take: for the first time, asked of GitHub with a small request a listing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_pipeline.settings import Repository, Settings
from rag_pipeline.sources.github.client import GitHubClient
from rag_pipeline.sources.github.listings import COMMENTS, ISSUES, PER_PAGE, PULLS, REVIEW_COMMENTS
from rag_pipeline.sources.github.mirror import GitHubMirror
from rag_pipeline.sources.github.stage import Access, client_of

_LISTINGS = (ISSUES, COMMENTS, REVIEW_COMMENTS, PULLS)
_OF_EACH_PULL = 2
"""Its reviews, and its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a refresh will find on GitHub, as far as that can be told without reading it."""

    repository: Repository
    requests: int
    """That the next reading will make, or a little more."""
    unread_threads: int = 0
    """Issues and pull requests of which nothing is known yet; 0 when the mirror has been filled."""


def outlook(settings: Settings, repository: Repository, access: Access) -> Outlook:
    """Asks nothing when the repository has been read before; else one entry of each listing, whose last page counts it.

    Raises:
        RagPipelineError: GitHub cannot be asked.
    """
    mirror, known = GitHubMirror(settings, repository), 0
    if mirror.exists():
        with mirror.open() as store:
            if store.note("loaded:pull") is not None:
                # Who it is, and a page of each listing.
                return Outlook(repository=repository, requests=1 + len(_LISTINGS))
            known = sum(1 for _ in store.threads())
    with client_of(settings, repository, access) as client:
        counts = {listing.kind: _count(client, repository, listing.path, listing.params) for listing in _LISTINGS}
    pages = sum(max(1, -(-count // PER_PAGE)) for count in counts.values())
    requests = 1 + pages + _OF_EACH_PULL * counts[PULLS.kind]
    unread = max(0, counts[ISSUES.kind] - known)  # issues and pull requests are both in that listing
    return Outlook(repository=repository, requests=requests, unread_threads=unread)


def _count(client: GitHubClient, repository: Repository, path: str, params: Mapping[str, str]) -> int:
    page = client.get(f"/repos/{repository.github}{path}", params={**params, "per_page": 1})
    entries = page.data if isinstance(page.data, list) else []
    return page.pages if entries else 0
