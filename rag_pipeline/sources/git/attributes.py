"""What `.gitattributes` says of paths at a commit: linguist-generated and linguist-vendored.

Git itself is asked, through an index made beside the mirror's own that holds the `.gitattributes` files alone:
`check-attr --source` would be simpler, but only git 2.40 and newer have it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rag_pipeline.sources.git.blobs import BlobReader
from rag_pipeline.sources.git.command import git_environment, nul_fields
from rag_pipeline.sources.git.file_kinds import kind_of
from rag_pipeline.sources.git.mirror import Mirror

NAME = ".gitattributes"
_NAMES = ("linguist-generated", "linguist-vendored")
_REGULAR = ("100644", "100755", "100664")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Attributes by path; paths about which nothing is said are absent."""

    values: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)

    def generated(self, path: str) -> bool | None:
        """Whether the path is marked as generated; None when nothing is said."""
        return self.of(path).get("linguist-generated")

    def vendored(self, path: str) -> bool | None:
        """Whether the path is marked as vendored; None when nothing is said."""
        return self.of(path).get("linguist-vendored")

    def of(self, path: str) -> Mapping[str, bool]:
        """All that is said of a path."""
        return self.values.get(path, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A path's mode and object in a commit."""

    mode: str
    blob: str


def read_attributes(mirror: Mirror, commit: str, *, blobs: BlobReader) -> Attributes:
    """The attributes of every indexable path of a commit; cheap when no `.gitattributes` names linguist."""
    tree = read_tree(mirror, commit)
    return _evaluate(mirror, _rules(tree, blobs), (path for path in tree if kind_of(path)))


def attribute_flips(mirror: Mirror, before: str, after: str, *, blobs: BlobReader) -> dict[str, Entry]:
    """Indexable paths of commit `after` of which the attributes at commit `before` say something else."""
    tree = read_tree(mirror, after)
    then = _rules(read_tree(mirror, before), blobs)
    now = _rules(tree, blobs)
    if then == now:
        return {}
    paths = [path for path in tree if kind_of(path)]
    old, new = _evaluate(mirror, then, paths), _evaluate(mirror, now, paths)
    return {path: tree[path] for path in paths if old.of(path) != new.of(path)}


def read_tree(mirror: Mirror, commit: str) -> dict[str, Entry]:
    """Every path of a commit."""
    tree = {}
    for entry in nul_fields(mirror.run("ls-tree", "-r", "-z", commit)):
        meta, _, path = entry.partition("\t")
        mode, _, blob = meta.split(" ")
        tree[path] = Entry(mode=mode, blob=blob)
    return tree


def _rules(tree: Mapping[str, Entry], blobs: BlobReader) -> dict[str, Entry]:
    """The `.gitattributes` files of a tree; none when none of them names linguist."""
    rules = {p: entry for p, entry in tree.items() if p.rpartition("/")[2] == NAME and entry.mode in _REGULAR}
    contents = list(blobs.contents([entry.blob for entry in rules.values()]))
    return rules if any(b"linguist-" in content for content in contents) else {}


def _evaluate(mirror: Mirror, rules: Mapping[str, Entry], paths: Iterable[str]) -> Attributes:
    if not rules:
        return Attributes()
    listed = "".join(f"{entry.mode} {entry.blob}\t{path}\0" for path, entry in rules.items())
    asked = "".join(f"{path}\0" for path in paths)
    with tempfile.TemporaryDirectory() as folder:
        env = git_environment() | {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        mirror.run("update-index", "-z", "--index-info", stdin=listed.encode("utf-8", "surrogateescape"), env=env)
        asked_bytes = asked.encode("utf-8", "surrogateescape")
        output = mirror.run("check-attr", "--cached", "--stdin", "-z", *_NAMES, stdin=asked_bytes, env=env)
    return Attributes(values=_parse(list(nul_fields(output))))


def _parse(fields: list[str]) -> dict[str, dict[str, bool]]:
    values: dict[str, dict[str, bool]] = {}
    for path, name, value in zip(fields[0::3], fields[1::3], fields[2::3], strict=True):
        if value != "unspecified":
            values.setdefault(path, {})[name] = value in ("set", "true")
    return values
