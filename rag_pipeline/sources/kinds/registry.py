"""Which kinds there are, and which blocks of them the settings hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from pydantic import ValidationError

from rag_pipeline.errors import ConfigError
from rag_pipeline.forgotten import Forgotten, read_marks
from rag_pipeline.settings import Settings
from rag_pipeline.settings.complaints import Complaint, complaints_of, spoken
from rag_pipeline.sources.drops.stage import STAGE as DROPS_STAGE
from rag_pipeline.sources.git.stage import STAGES as GIT_STAGES
from rag_pipeline.sources.github.stage import STAGES as GITHUB_STAGES
from rag_pipeline.sources.kinds.protocol import SourceBlock, SourceKind

OWN: tuple[SourceKind[Any], ...] = ()
"""The kinds in this package: a kind that belongs to everyone is registered here."""

ENTRY_POINTS = "rag_pipeline.sources"
"""The kinds of installed packages: entry points of this group, each naming a kind."""

_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_RESERVED = {"git", "github", "drops", "repository", "embedding", *GIT_STAGES, *GITHUB_STAGES}
"""What progress, pools and source types of the other sources are called."""


@cache
def kinds() -> tuple[SourceKind[Any], ...]:
    """All kinds, in the order of their names.

    Raises:
        ConfigError: a package's kind cannot be loaded, or its name is taken or no name.
    """
    found: dict[str, SourceKind[Any]] = {}
    taken = {*GIT_STAGES.values(), *GITHUB_STAGES.values(), DROPS_STAGE}
    for where, kind in [("rag_pipeline.sources.kinds.registry", kind) for kind in OWN] + _installed():
        name = getattr(kind, "name", None)
        if not isinstance(name, str) or not _NAME.match(name):
            raise ConfigError(f"{where}: a kind's name is lower-case letters, digits and '_', not {name!r}")
        if name in found or name in _RESERVED or f"raw_{name}" in taken:
            raise ConfigError(f"{where}: there is a kind of source {name!r} already: give it another name")
        found[name] = kind
    return tuple(found[name] for name in sorted(found))


def stage_of(kind: SourceKind[Any]) -> str:
    """Its raw stage: the name of its asset and of its folder in the lake."""
    return f"raw_{kind.name}"


def raw_stages() -> tuple[str, ...]:
    """The raw stages of all sources: what documents are made from."""
    return (*GIT_STAGES.values(), *GITHUB_STAGES.values(), DROPS_STAGE, *(stage_of(kind) for kind in kinds()))


def blocks_of(kind: SourceKind[Any], settings: Settings) -> Sequence[SourceBlock]:
    """The blocks of a kind, without those that are forgotten: they are not read.

    Raises:
        ConfigError: one of them holds what the kind does not know.
    """
    blocks: list[SourceBlock] = []
    forgotten = Forgotten(marks=read_marks(settings.home))
    for number, written in enumerate(settings.sources.get(kind.name, ())):
        found = _checked(kind, number, written, settings)
        if isinstance(found, list):
            raise ConfigError(f"{settings.config_file or 'the settings'}: {spoken(found[0])}")
        if not forgotten.repository(found.tenant, found.name):
            blocks.append(found)
    return blocks


def blocks_that_hold(kind: SourceKind[Any], settings: Settings) -> list[tuple[int, SourceBlock]]:
    """The blocks of a kind that can be followed, with their numbers."""
    found = [(n, _checked(kind, n, written, settings)) for n, written in enumerate(settings.sources.get(kind.name, ()))]
    return [(number, block) for number, block in found if isinstance(block, SourceBlock)]


def complaints(settings: Settings) -> list[Complaint]:
    """Everything that is wrong under `[[sources.…]]`."""
    wrong = []
    known = {kind.name: kind for kind in kinds()}
    seen = {(r.tenant or settings.tenant, r.name): r.name for r in settings.repositories}
    for name, blocks in settings.sources.items():
        if name not in known:
            there_are = f"there are {', '.join(known)}" if known else "none is installed"
            message = f"unknown kind of source: {there_are}; docs/extending.md shows how to add one"
            wrong.append(Complaint(place=("sources", name), message=message))
            continue
        for number, written in enumerate(blocks):
            found = _checked(known[name], number, written, settings)
            if isinstance(found, list):
                wrong += found
            elif (found.tenant, found.name) in seen:
                place = ("sources", name, number, "name")
                message = f"another source of tenant {found.tenant!r} is named {found.name!r}: give it another `name`"
                wrong.append(Complaint(place=place, message=message))
            else:
                seen[found.tenant, found.name] = found.name
    return wrong


def require_valid(settings: Settings) -> None:
    """Stop before anything is built on blocks that cannot be followed.

    Raises:
        ConfigError: names the first thing that is wrong.
    """
    if wrong := complaints(settings):
        raise ConfigError(f"{settings.config_file or 'the settings'}: {spoken(wrong[0])}")


def _checked(
    kind: SourceKind[Any], number: int, written: dict[str, Any], settings: Settings
) -> SourceBlock | list[Complaint]:  # fmt: skip
    values = {**written, "tenant": written.get("tenant") or settings.tenant}
    try:
        block: SourceBlock = kind.block.model_validate(values)
    except ValidationError as error:
        return complaints_of(error, model=kind.block, above=("sources", kind.name, number))
    return block


def _installed() -> list[tuple[str, SourceKind[Any]]]:
    found: list[tuple[str, SourceKind[Any]]] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            found.append((point.value, point.load()))
        except Exception as error:
            raise ConfigError(
                f"the kind of source {point.name!r} cannot be loaded from {point.value}: {error}; "
                "repair or uninstall the package that registers it"
            ) from error
    return found
