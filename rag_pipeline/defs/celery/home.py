"""Whether a worker has the RAG_HOME of the others.

Mirrors remember what their sources once showed: without that memory, what a force-push took away or a listing no longer
names would never leave the index. So all workers share one RAG_HOME, and one that came with its own is refused.
"""

import os
from pathlib import Path
from typing import Final
from uuid import uuid4

import dagster as dg

from rag_pipeline.errors import ConfigError

_KEY: Final = "rag_pipeline/home"
_FILE: Final = "home_id"


def require_shared_home(instance: dg.DagsterInstance, home: Path, *, adopt: bool = False) -> None:
    """Compare this RAG_HOME with the one that Dagster's storage knows; the first to come is remembered.

    Args:
        adopt: make this one the one that is shared, after it was moved or made anew.

    Raises:
        ConfigError: it is another one.
    """
    own = _identity(home)
    known = instance.run_storage.get_cursor_values({_KEY}).get(_KEY)
    if known is None or (adopt and known != own):
        instance.run_storage.set_cursor_values({_KEY: own})
        # Two that start at once with different folders: the later one has it, and the other one is told.
        known = instance.run_storage.get_cursor_values({_KEY}).get(_KEY)
    if known != own:
        raise ConfigError(
            f"RAG_HOME {home} is not the folder that the other workers have: mount the same volume there (see "
            "docs/deployment.md), or make this one the shared one with `rag-pipeline worker --adopt-home`"
        )


def _identity(home: Path) -> str:
    """Of the folder, whatever machine looks at it; made when it is first asked for."""
    home.mkdir(parents=True, exist_ok=True)
    file = home / _FILE
    if not file.exists():
        own = home / f"{_FILE}.{uuid4().hex}"
        own.write_text(uuid4().hex + "\n", encoding="ascii")
        try:
            # A link is made whole or not at all, over a network as well, and never replaces another's.
            os.link(own, file)
        except FileExistsError:
            pass
        finally:
            own.unlink()
    return file.read_text(encoding="ascii").strip()
