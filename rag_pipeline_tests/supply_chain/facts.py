"""`python -m rag_pipeline_tests.supply_chain.facts`: writes the measured columns of docs/dependencies.md again.

Sizes and what a package brings are those of the environment that runs this, without compiled bytecode; releases and who
publishes them are the package index's words of today. Packages that are not installed here keep what the page says.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import urllib.request
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from urllib.error import URLError

from packaging.requirements import Requirement
from pip._internal.models.index import PyPI

from rag_pipeline_tests.supply_chain.declared import PAGE, Row, declared, normalised, rows

_LICENCES = re.compile(r"License :: OSI Approved :: (.+)")


def main() -> None:
    """Measure, ask, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--section", help="only this table, as where an environment of its own has its packages")
    parser.add_argument("--sizes-only", action="store_true", help="ask nobody: releases and publishers stay")
    options = parser.parse_args()
    wanted = declared()
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for number, section, row in rows(lines):
        if options.section not in (None, section):
            continue
        requirement = wanted.get(section, {}).get(row.package)
        if requirement is None:
            print(f"{row.package} is not declared in {section!r}", file=sys.stderr)
            continue
        found = _measured(row, requirement, is_asking=not options.sizes_only)
        lines[number] = f"| `{found.package}` | {' | '.join((found.why, *found.measured))} |"
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    page = re.sub(r"(?<=^Measured and asked on )\d{4}-\d\d-\d\d", today, "\n".join(lines), flags=re.MULTILINE)
    PAGE.write_text(page + "\n", encoding="utf-8")


def _measured(row: Row, requirement: Requirement, *, is_asking: bool) -> Row:
    size, brings, licence, newest, publishers = row.measured
    try:
        installed = distribution(requirement.name)
    except PackageNotFoundError:
        print(f"{requirement.name} is not installed here: its size stays", file=sys.stderr)
    else:
        others = {name for name, _ in _closure([(requirement.name, frozenset(requirement.extras))])}
        others -= {normalised(requirement.name)}
        megabytes = sum(_bytes(distribution(name)) for name in others) / 1e6
        size = f"{_bytes(installed) / 1e6:.1f}"
        brings = f"{len(others)}: {megabytes:.0f}" if others else "none"
        licence = _licence(installed) or licence
    if is_asking:
        try:
            newest, publishers, said = _asked(requirement.name)
        except (URLError, TimeoutError, ValueError) as error:
            sys.exit(f"the package index does not answer for {requirement.name}: {error}")
        licence = licence or said
    measured = tuple(cell or "?" for cell in (size, brings, licence, newest, publishers))
    return Row(package=row.package, why=row.why, measured=measured)


def _closure(roots: Iterable[tuple[str, frozenset[str]]]) -> set[tuple[str, frozenset[str]]]:
    """What these need here, themselves included."""
    found: set[tuple[str, frozenset[str]]] = set()
    todo = [(normalised(name), extras) for name, extras in roots]
    while todo:
        name, extras = todo.pop()
        if (name, extras) in found:
            continue
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:  # a marker that holds on no machine like this
            continue
        found.add((name, extras))
        todo += [
            (normalised(need.name), frozenset(need.extras))
            for need in map(Requirement, needs)
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras or {""})
        ]
    return found


def _bytes(installed: Distribution) -> int:
    files = [installed.locate_file(file) for file in installed.files or [] if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in files if path.is_file())  # type: ignore[attr-defined]


def _licence(installed: Distribution) -> str:
    found = installed.metadata
    if expression := found.get("License-Expression"):
        return str(expression)
    classified = [m[1] for c in found.get_all("Classifier") or [] if (m := _LICENCES.match(c))]
    stated = str(found.get("License") or "").strip()
    return ", ".join(classified) or (stated if len(stated) < 40 else "")


def _asked(name: str) -> tuple[str, str, str]:
    """Newest release with its day, who may publish one, and the licence, as the index has them."""
    # The index that pip asks when nobody names one.
    with urllib.request.urlopen(f"{PyPI.pypi_url}/{normalised(name)}/json", timeout=60) as answer:
        said = json.load(answer)
    info = said["info"]
    days = [file["upload_time_iso_8601"][:10] for file in said["urls"]]
    owners = (said.get("ownership") or {}).get("roles") or []
    organisation = (said.get("ownership") or {}).get("organization")
    people = f"{len({role['user'] for role in owners})}" if owners else "?"
    classified = [m[1] for c in info["classifiers"] if (m := _LICENCES.match(c))]
    licence = info.get("license_expression") or ", ".join(classified) or (info.get("license") or "").split("\n")[0][:40]
    known = len(said.get("vulnerabilities") or [])
    flagged = f", {known} known vulnerabilities" if known else ""
    publishers = f"{organisation} ({people})" if organisation else people
    return f"{info['version']}, {max(days, default='?')}{flagged}", publishers, licence


if __name__ == "__main__":
    main()
