"""What `pyproject.toml` and the lists beside it name, and what docs/dependencies.md says of each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "dependencies.md"
_LISTS = {
    "Other libraries, for benchmarks": ("rag_pipeline_tests/bench/peers/requirements.txt",),
    "A language model, for tests": tuple(
        f"rag_pipeline_tests/answering/real_model/{name}.txt" for name in ("build", "server", "weights")
    ),
    "The audit": ("rag_pipeline_tests/supply_chain/audit.txt",),
}
_LOCKED_ALONE = {"A PostgreSQL with pg_search, for tests": "requirements-pg-search.lock"}
_NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*==", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of a table of the page: a package, why it is here, and the measured columns."""

    package: str
    why: str
    measured: tuple[str, ...]


def normalised(name: str) -> str:
    """A package's name as registries compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> Mapping[str, Mapping[str, Requirement]]:
    """Packages that somebody chose, by the section of the page that they belong to."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = [line for lines in project["project"]["optional-dependencies"].values() for line in lines]
    installer = _NAME.findall((ROOT / "requirements-pip.lock").read_text(encoding="utf-8"))
    build = [*project["build-system"]["requires"], *_of_recipe(), *installer]
    found = {
        "What runs": _by_name(project["project"]["dependencies"]),
        "Extras": _by_name(extras),
        "Development": _by_name(project["dependency-groups"]["dev"]),
        "The build": _by_name(build),
    }
    for section, files in _LISTS.items():
        lines = [line for file in files for line in _lines(ROOT / file)]
        found[section] = _by_name(lines)
    for section, lock in _LOCKED_ALONE.items():
        found[section] = _by_name(_NAME.findall((ROOT / lock).read_text(encoding="utf-8")))
    return found


def described() -> Mapping[str, Mapping[str, Row]]:
    """The tables of the page, by section."""
    found: dict[str, dict[str, Row]] = {}
    for _, section, row in rows(PAGE.read_text(encoding="utf-8").splitlines()):
        table = found.setdefault(section, {})
        if row.package in table:
            raise ValueError(f"{PAGE.name} has two rows for {row.package} in {section!r}")
        table[row.package] = row
    return found


def rows(lines: Sequence[str]) -> Iterator[tuple[int, str, Row]]:
    """Line, section and content of every package's row on a page."""
    section = ""
    for number, line in enumerate(lines):
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.startswith("| `"):
            package, why, *measured = (cell.strip() for cell in line[1:-1].split("|"))
            yield number, section, Row(package=package.strip("`"), why=why, measured=tuple(measured))


def _by_name(lines: list[str]) -> dict[str, Requirement]:
    requirements = [Requirement(line) for line in lines]
    return {normalised(requirement.name): requirement for requirement in requirements}


def _lines(file: Path) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def _of_recipe() -> list[str]:
    """What the Makefile's recipe for locks adds: needed to install the project itself."""
    (recipe,) = re.findall(r"^LOCK = printf '(.+?)'", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return [line for line in recipe.split("\\n") if line]
