"""What `.gitattributes` says of paths at a commit: linguist-generated, linguist-vendored and working-tree-encoding.

Git itself is asked, through an index made beside the mirror's own that holds the `.gitattributes` files alone:
`check-attr --source` would be simpler, but only git 2.40 and newer have it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag_pipeline.settings import FileType
from rag_pipeline.sources.git.blobs import BlobReader
from rag_pipeline.sources.git.command import git_environment, nul_fields
from rag_pipeline.sources.git.file_kinds import kind_of
from rag_pipeline.sources.git.mirror import Mirror

NAME = ".gitattributes"
_ENCODING = "working-tree-encoding"
_NAMES = ("linguist-generated", "linguist-vendored", _ENCODING)
_IN_RULES = (b"linguist-", _ENCODING.encode())
_REGULAR = ("100644", "100755", "100664")
_ASKED = 256
"""Names on one command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Attributes by path; paths about which nothing is said are absent."""

    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def generated(self, path: str) -> bool | None:
        """Whether the path is marked as generated; None when nothing is said."""
        return self._flag(path, "linguist-generated")

    def vendored(self, path: str) -> bool | None:
        """Whether the path is marked as vendored; None when nothing is said."""
        return self._flag(path, "linguist-vendored")

    def encoding(self, path: str) -> str | None:
        """The encoding that a checkout writes the file in; None when nothing is said.

        Git holds such a file in UTF-8, unless it was committed before the attribute.
        """
        value = self.of(path).get(_ENCODING)
        return None if value in (None, "set", "unset") else value

    def of(self, path: str) -> Mapping[str, str]:
        """All that is said of a path."""
        return self.values.get(path, {})

    def _flag(self, path: str, name: str) -> bool | None:
        value = self.of(path).get(name)
        return None if value is None else value in ("set", "true")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A path's mode and object in a commit."""

    mode: str
    blob: str


class AttributesAt:
    """The attributes at one commit, asked for some paths at a time: neither cost nor memory grow with the tree."""

    def __init__(self, mirror: Mirror, commit: str, *, blobs: BlobReader) -> None:
        self._mirror = mirror
        self._commit = commit
        self._blobs = blobs
        self._looked_in: set[str] = set()
        self._files: dict[str, Entry] = {}
        self._matter = False

    def of(self, paths: Sequence[str]) -> Attributes:
        """What is said of these paths; cheap as long as no `.gitattributes` above them names these attributes."""
        self._look({f"{folder}{NAME}" for path in paths for folder in _folders(path)} - self._looked_in)
        return _evaluate(self._mirror, self._files if self._matter else {}, paths)

    def _look(self, names: set[str]) -> None:
        """Find these files; a path that is not there is said nothing of."""
        asked = sorted(names)
        for start in range(0, len(asked), _ASKED):
            some = asked[start : start + _ASKED]
            found = _entries(self._mirror.run("ls-tree", "-z", self._commit, "--", *some))
            files = {path: entry for path, entry in found if entry.mode in _REGULAR}
            self._files |= files
            self._matter = self._matter or _name_ours(files.values(), self._blobs)
        self._looked_in |= names


def attribute_flips(
    mirror: Mirror, before: str, after: str, *, blobs: BlobReader, types: Mapping[str, FileType]
) -> dict[str, Entry]:
    """Indexable paths of commit `after` of which the attributes at commit `before` say something else."""
    tree = read_tree(mirror, after)
    then = _rules(read_tree(mirror, before), blobs)
    now = _rules(tree, blobs)
    if then == now:
        return {}
    paths = [path for path in tree if kind_of(path, types)]
    old, new = _evaluate(mirror, then, paths), _evaluate(mirror, now, paths)
    return {path: tree[path] for path in paths if old.of(path) != new.of(path)}


def read_tree(mirror: Mirror, commit: str) -> dict[str, Entry]:
    """Every path of a commit."""
    return dict(_entries(mirror.run("ls-tree", "-r", "-z", commit)))


def _entries(listed: bytes) -> Iterator[tuple[str, Entry]]:
    for entry in nul_fields(listed):
        meta, _, path = entry.partition("\t")
        mode, _, blob = meta.split(" ")
        yield path, Entry(mode=mode, blob=blob)


def _folders(path: str) -> Iterator[str]:
    """Every folder above a path, the top one included, each with its slash."""
    yield ""
    at = path.find("/")
    while at >= 0:
        yield path[: at + 1]
        at = path.find("/", at + 1)


def _rules(tree: Mapping[str, Entry], blobs: BlobReader) -> dict[str, Entry]:
    """The `.gitattributes` files of a tree; none when none of them names these attributes."""
    rules = {p: entry for p, entry in tree.items() if p.rpartition("/")[2] == NAME and entry.mode in _REGULAR}
    return rules if _name_ours(rules.values(), blobs) else {}


def _name_ours(files: Iterable[Entry], blobs: BlobReader) -> bool:
    contents = list(blobs.contents([entry.blob for entry in files]))
    return any(map(names_ours, contents))


def names_ours(rules: bytes) -> bool:
    """Whether a `.gitattributes` file may name one of the attributes that count here."""
    return any(name in rules for name in _IN_RULES)


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


def _parse(fields: list[str]) -> dict[str, dict[str, str]]:
    values: dict[str, dict[str, str]] = {}
    for path, name, value in zip(fields[0::3], fields[1::3], fields[2::3], strict=True):
        if value != "unspecified":
            values.setdefault(path, {})[name] = value
    return values
