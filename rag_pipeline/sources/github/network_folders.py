"""Whether a folder lies on another machine, where SQLite's write-ahead log must not be used.

That log keeps an index in memory that all users of the file share, which those of several machines cannot
(https://www.sqlite.org/wal.html). A journal that is written and truncated works wherever locks do.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")
_TYPES: Final = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "smb3", "smbfs", "virtiofs",
})  # fmt: skip
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


def is_on_network(folder: Path, *, mounts: Path = _MOUNTS) -> bool:
    """Whether the file system that holds this folder may have users on other machines; False where nobody can say."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    found, kind = -1, ""
    place = folder.absolute()
    for line in lines:
        mount, _, rest = line.partition(" - ")
        point = Path(_ESCAPED.sub(lambda code: chr(int(code[1], 8)), mount.split(" ")[4]))
        # Of two mounts on the same point, the later one hides the earlier one.
        if place.is_relative_to(point) and len(point.parts) >= found:
            found, kind = len(point.parts), rest.split(" ")[0]
    return kind in _TYPES or kind.startswith("fuse.")
