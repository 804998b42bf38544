"""How many repositories are read at once, and the end of reading them."""

from __future__ import annotations

from rag_pipeline.progress import Progress
from rag_pipeline.remote.at_once import Places, go_on
from rag_pipeline.settings import Settings


def git_places(settings: Settings) -> Places:
    """Room for the git repositories that are read at once, in all processes of this RAG_HOME."""
    return Places(folder=settings.home / "places" / "git", count=settings.pools.git)


def github_places(settings: Settings) -> Places:
    """As `git_places`, for repositories of which GitHub's API is asked."""
    return Places(folder=settings.home / "places" / "github", count=settings.pools.github)


def stoppable(progress: Progress) -> Progress:
    """The same progress; whoever tells it something while the work of its thread is to end, ends: raises as `go_on`."""

    def tell(stage: str, *, done: int, total: int | None, unit: str) -> None:
        go_on()
        progress(stage, done=done, total=total, unit=unit)

    return tell
