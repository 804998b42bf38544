"""What `.gitattributes` says of paths at a commit: linguist-generated and linguist-vendored.

Git itself is asked, through an index of the commit made beside the mirror's own: `check-attr --source` would be simpler,
but only git 2.40 and newer have it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rag_pipeline.sources.mirror import Mirror, git_environment, nul_fields

_NAMES = ("linguist-generated", "linguist-vendored")


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


def read_attributes(mirror: Mirror, commit: str) -> Attributes:
    """The attributes of every path of a commit; cheap when it has no `.gitattributes` that names linguist."""
    files = list(nul_fields(mirror.run("ls-tree", "-r", "-z", "--name-only", commit)))
    sources = [path for path in files if path.rpartition("/")[2] == ".gitattributes"]
    if not any(b"linguist-" in mirror.run("cat-file", "blob", f"{commit}:{path}") for path in sources):
        return Attributes()
    with tempfile.TemporaryDirectory() as folder:
        env = git_environment() | {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        mirror.run("read-tree", commit, env=env)
        paths = "\0".join(files).encode("utf-8", "surrogateescape")
        output = mirror.run("check-attr", "--cached", "--stdin", "-z", *_NAMES, stdin=paths, env=env)
    return Attributes(values=_parse(list(nul_fields(output))))


def _parse(fields: list[str]) -> dict[str, dict[str, bool]]:
    values: dict[str, dict[str, bool]] = {}
    for path, name, value in zip(fields[0::3], fields[1::3], fields[2::3], strict=True):
        if value != "unspecified":
            values.setdefault(path, {})[name] = value in ("set", "true")
    return values
