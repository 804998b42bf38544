"""Who runs the local PostgreSQL, and which folders that user can reach. Nothing here knows the server.

PostgreSQL refuses to run as root, as one is in most containers. Root therefore hands the work to an unprivileged user;
anybody else does it as themselves.
"""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rag_pipeline.errors import DatabaseUnavailable

_SHARED = (Path("/var/lib/rag-pipeline"), Path("/var/tmp/rag-pipeline"))
"""Where root keeps what the unprivileged user must reach, when the folder that was asked for is closed to that user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The operating-system user that owns the data and runs the server."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        """Login name, or the number of a user that has none."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"uid {self.uid}"

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a command as this user, out of reach of the terminal's Ctrl-C; its output is captured.

        Raises:
            DatabaseUnavailable: this process may not become that user, or the program cannot be executed.
        """
        # PGPORT, PGDATA and their like in the caller's environment must not steer our server.
        environ = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        root = os.geteuid() == 0
        try:
            return subprocess.run(
                [str(part) for part in command],
                capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                cwd="/", env=environ, umask=0o077, start_new_session=True,
                user=self.uid if root else None, group=self.gid if root else None, extra_groups=[] if root else None,
            )  # fmt: skip
        except OSError as error:
            raise DatabaseUnavailable(
                f"cannot run {command[0]} as user {self.name}: {error.strerror}: "
                "run as an ordinary user, or set DATABASE_URL to a PostgreSQL server of your own"
            ) from error

    def can_run(self, program: Path) -> bool:
        """Whether this user can reach a program and the libraries that it loads."""
        try:
            return self.run([program, "--version"]).returncode == 0
        except DatabaseUnavailable:
            return False

    def can_write(self, folder: Path) -> bool:
        """Whether this user can enter a folder and make files in it; asked of the kernel, which knows every rule."""
        return self.run(["/bin/sh", "-c", 'cd "$0" && : > .probe && rm .probe', folder]).returncode == 0


def account_for(folder: Path) -> Account:
    """The owner of `folder`, if it exists already; else this process's user, or for root an unprivileged one.

    Raises:
        DatabaseUnavailable: root finds neither a user `postgres` nor `nobody`.
    """
    if os.geteuid() != 0:
        return Account(uid=os.geteuid(), gid=os.getegid())
    if folder.exists() and (found := folder.stat()).st_uid != 0:
        return Account(uid=found.st_uid, gid=found.st_gid)
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=user.pw_uid, gid=user.pw_gid)
    raise DatabaseUnavailable(
        "PostgreSQL does not run as root, and there is neither a user 'postgres' nor 'nobody': "
        "create one, run as an ordinary user, or set DATABASE_URL"
    )


def claim(folder: Path, account: Account) -> None:
    """Make `folder` a private one (0700) of `account`, or check that it is.

    Raises:
        DatabaseUnavailable: something of that name belongs to somebody else, or is no folder.
        OSError: it cannot be created.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    # In a world-writable parent, anybody could have put a folder or a link of this name there before us.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {account.uid, os.geteuid()}:
        raise DatabaseUnavailable(f"{folder} is not a folder of user {account.name}: move it away, then start again")
    if found.st_uid != account.uid:
        os.chown(folder, account.uid, account.gid)
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)


def try_claim(folder: Path, account: Account) -> bool:
    """`claim`, and whether the user can then really work there; leaves nothing behind where they cannot."""
    existed = folder.exists()
    try:
        claim(folder, account)
    except OSError:
        return False
    if account.can_write(folder):
        return True
    if not existed:
        folder.rmdir()
    return False


def shared_folder(account: Account) -> Path:
    """A folder of root that every user can enter, for what `account` cannot reach elsewhere.

    Raises:
        DatabaseUnavailable: there is no place for one.
    """
    for folder in _SHARED:
        try:
            folder.mkdir(mode=0o755, exist_ok=True)
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            folder.chmod(0o755)  # whatever the umask was
        except OSError:
            continue
        if account.run(["/bin/sh", "-c", 'cd "$0"', folder]).returncode == 0:
            return folder
    places = " or ".join(map(str, _SHARED))
    raise DatabaseUnavailable(
        f"user {account.name}, who runs PostgreSQL for root, can reach neither RAG_HOME nor {places}: "
        f"set RAG_HOME to a folder that {account.name} can enter, or set DATABASE_URL"
    )
