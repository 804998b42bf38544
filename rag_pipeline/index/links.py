"""What a document says of others, as rows of `rag.links`: a pure function of its metadata.

A target is the name that the other thing is known by (`owner/name#1`, `repository:path`, `owner/name@commit`), so that
either side may be indexed first. Under `is` a thread says its own name: found by equality of texts, the only comparison
of the two that row-level security lets an index answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from rag_pipeline.model import Document, Json

Kind = Literal["is", "closes", "mentions", "changes", "merged_as"]

Link: TypeAlias = tuple[Kind, str]
"""Kind and target."""

_MAX_TARGET_BYTES: Final = 1_500  # with the tenant's name it must fit into an index entry of 2,700 bytes
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


def links_of(document: Document) -> frozenset[Link]:
    """A document's links; a tombstone has none. What could not be stored or looked up is left out."""
    return frozenset() if document.deleted else frozenset(link for link in _links(document) if _fits(link[1]))


def _links(document: Document) -> Iterator[Link]:
    about = document.metadata
    reference = about.get("reference")
    if isinstance(reference, str):
        yield "is", reference
        commit = about.get("merge_commit")
        # An open pull request has one, too: of GitHub's own attempt at merging it.
        if isinstance(commit, str) and about.get("state") == "merged":
            yield "merged_as", f"{reference.partition('#')[0]}@{commit}"
    yield from (("closes", target) for target in _strings(about.get("closes")))
    yield from (("mentions", target) for target in _strings(about.get("links")))
    yield from (("changes", f"{document.repository}:{path}") for path in _strings(about.get("files")))


def _strings(values: Json) -> Iterator[str]:
    if isinstance(values, list | tuple):
        yield from (value for value in values if isinstance(value, str))


def _fits(target: str) -> bool:
    return bool(target) and not _UNSTORABLE.search(target) and len(target.encode()) <= _MAX_TARGET_BYTES
