"""Taking what is forgotten out of mirrors that hold it already; `refusal` keeps it from coming back."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rag_pipeline.forgotten import Forgotten
from rag_pipeline.settings import Settings
from rag_pipeline.sources.github.mirror import GitHubMirror, mirror_folders
from rag_pipeline.sources.github.store import Store
from rag_pipeline.sources.github.threads import settle


@dataclass(slots=True, kw_only=True)
class MirrorFindings:
    """What a mirror holds, or held, of what is forgotten."""

    resources: int = 0
    """Issues, comments, reviews, …: made stubs."""
    threads: int = 0
    """Settled threads: gone, or settled again without what was cut from them."""

    @property
    def found(self) -> int:
        """All of it."""
        return self.resources + self.threads


def purge_mirror(mirror: GitHubMirror, *, now: datetime, remove: bool) -> MirrorFindings:
    """Make stubs of what the marks in RAG_HOME name, and settle again what that changed; nothing without `remove`.

    The file is written anew afterwards, so that no page of it holds what is gone.
    """
    found = MirrorFindings()
    if not mirror.exists():
        return found
    with mirror.locked(), mirror.open() as store:
        identity = mirror.identity(store)
        cut: set[int] = set()
        with store.transaction():
            for resource in store.resources():
                kept = store.refused(resource)
                if kept.body != resource.body:
                    found.resources += 1
                    cut.add(resource.number)
                    if remove:
                        store.rewrite(kept)
            cut |= _stubs(store)
            for thread in store.threads():
                if thread.deleted or thread.number not in cut:
                    continue
                head = store.body("issue" if thread.kind == "pull_request" else thread.kind, thread.number)
                found.threads += 1
                if not remove:
                    continue
                if head is None or head.get("forgotten"):
                    store.forget_thread(thread.kind, thread.number)
                else:
                    settle(store, thread.kind, thread.number, identity=identity, now=now)
    if remove and found.found:
        with mirror.locked(), mirror.open() as store:
            store.compact()
    return found


def holds_stubs(mirror: GitHubMirror) -> bool:
    """Whether a mirror lacks words that GitHub may still have."""
    if not mirror.exists():
        return False
    with mirror.open() as store:
        return any(resource.body.get("forgotten") for resource in store.resources())


def _stubs(store: Store) -> set[int]:
    """Threads whose head is a stub; what is settled of them was settled before a killed run could remove it."""
    return {
        resource.number
        for resource in store.resources()
        if resource.kind in ("issue", "discussion", "release") and resource.body.get("forgotten")
    }


def remove_mirrors(settings: Settings, forgotten: Forgotten, *, remove: bool) -> int:
    """Delete the files of forgotten repositories and tenants, configured or not; how many there are, or were."""
    files: list[Path] = []
    for repository in settings.repositories:
        if repository.github and forgotten.repository(repository.tenant, repository.name):
            files += GitHubMirror(settings, repository).files()
    for tenant, folder in mirror_folders(settings.home):
        aliases = {path: _named(path) for path in folder.glob("*.json")}
        for alias, (id_, name) in aliases.items():
            if forgotten.repository(tenant, name):
                files += [alias, *folder.glob(f"{id_}.sqlite*")]
    files += [path.with_suffix(".lock") for path in files if path.suffix == ".json"]
    found = sorted({path for path in files if path.exists()})
    if remove:
        for path in found:
            path.unlink(missing_ok=True)
        for _, folder in mirror_folders(settings.home):
            if not any(folder.glob("*.json")) and not any(folder.glob("*.sqlite")):
                with suppress(OSError):
                    shutil.rmtree(folder)
    return len(found)


def _named(alias: Path) -> tuple[object, str]:
    try:
        about = json.loads(alias.read_text(encoding="utf-8"))
        return about["id"], str(about["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, ""
