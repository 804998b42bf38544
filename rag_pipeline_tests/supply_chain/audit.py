"""`make audit`: asks a vulnerability service about every release that a lock file pins. Needs only pip-audit.

pip-audit (2.10) ends with 0 and says "No known vulnerabilities found" where the service answers for none of the
releases. So it is first asked for a release with known vulnerabilities, and a release without an answer is a failure.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PIN: Final = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
_VULNERABLE: Final = ("jinja2", "2.10")
"""CVE-2019-10906 and others, since 2019."""
VULNERABLE: Final = 1
NOT_AUDITED: Final = 2

Pin = tuple[str, str]
"""Name and version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the service said."""

    known: Mapping[Pin, Sequence[str]]
    """Releases with vulnerabilities: what they are, and which versions are mended."""
    unanswered: Mapping[Pin, str]
    """Releases that it said nothing about, and why."""


class NoAnswer(Exception):
    """The vulnerability service could not be asked."""


Ask = Callable[[Sequence[Pin]], Answer]


def pins(lock: str) -> set[Pin]:
    """Every release that a lock file names, for whatever platform."""
    return {(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in _PIN.findall(lock)}


def audit(locks: Mapping[str, str], ask: Ask) -> tuple[int, list[str]]:
    """Exit status and what to print, for lock files by name."""
    held = {name: pins(text) for name, text in locks.items()}
    if empty := [name for name, found in held.items() if not found]:
        return NOT_AUDITED, [f"{empty[0]} pins no release: is it a lock file?"]
    releases = sorted(set().union(*held.values()))
    try:
        tried = ask([_VULNERABLE])
        if _VULNERABLE not in tried.known:
            why = next(iter(tried.unanswered.values()), "it knows nothing against it")
            return NOT_AUDITED, _useless(f"it was asked for {'=='.join(_VULNERABLE)}, which is vulnerable: {why}")
        answer = ask(releases)
    except NoAnswer as error:
        return NOT_AUDITED, _useless(str(error))
    lines = []
    for pin, said in sorted(answer.known.items()):
        where = ", ".join(name for name, found in held.items() if pin in found)
        lines += [f"{'=='.join(pin)} ({where}): {problem}" for problem in said]
    if answer.unanswered:
        first, why = min(answer.unanswered.items())
        lines.append(
            f"{len(answer.unanswered)} of {len(releases)} releases were not audited, such as {'=='.join(first)}: {why}"
        )
        return NOT_AUDITED, lines
    if answer.known:
        lines.append(f"{len(answer.known)} of {len(releases)} releases have known vulnerabilities: upgrade them")
        return VULNERABLE, lines
    return 0, [f"{len(releases)} releases of {len(held)} lock files: no known vulnerabilities"]


def asking(service: str) -> Ask:
    """Asks with pip-audit, which this Python has."""

    def ask(releases: Sequence[Pin]) -> Answer:
        known: dict[Pin, Sequence[str]] = {}
        unanswered: dict[Pin, str] = {}
        for once in _each_name_once(releases):
            for found in _said(once, service):
                pin = (re.sub(r"[-_.]+", "-", found["name"]).lower(), found.get("version", ""))
                if reason := found.get("skip_reason"):
                    unanswered[next(p for p in once if p[0] == pin[0])] = reason
                elif problems := found["vulns"]:
                    known[pin] = [
                        f"{v['id']}, mended in {', '.join(v['fix_versions']) or 'no release'}" for v in problems
                    ]
        return Answer(known=known, unanswered=unanswered)

    return ask


def _said(releases: Sequence[Pin], service: str) -> list[dict]:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(f"{'=='.join(pin)}\n" for pin in releases)
        file.flush()
        done = subprocess.run(
            [sys.executable, "-m", "pip_audit", "--vulnerability-service", service, "--disable-pip", "--no-deps",
             "--progress-spinner", "off", "--format", "json", "--requirement", file.name],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    try:
        found: list[dict] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError) as error:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise NoAnswer(last) from error
    if len(found) != len(releases):
        raise NoAnswer(f"pip-audit was asked for {len(releases)} releases and answered for {len(found)}")
    return found


def _each_name_once(releases: Sequence[Pin]) -> list[list[Pin]]:
    """pip-audit refuses a list with two versions of one package, as lock files for several Pythons have."""
    lists: list[list[Pin]] = []
    for pin in releases:
        fitting = next((found for found in lists if pin[0] not in {name for name, _ in found}), None)
        if fitting is None:
            lists.append(fitting := [])
        fitting.append(pin)
    return lists


def _useless(why: str) -> list[str]:
    return [
        "NOTHING WAS AUDITED: the vulnerability service gives no answers here.",
        why,
        'Run `make audit` where it can be reached, or ask another: make audit ARGS="--service osv"',
    ]


def main() -> int:
    """Audit the lock files that are named."""
    parser = argparse.ArgumentParser(prog="make audit", description=__doc__)
    parser.add_argument("locks", type=Path, nargs="+")
    parser.add_argument("--service", default="pypi", choices=("pypi", "osv", "esms"))
    options = parser.parse_args()
    status, lines = audit(
        {lock.name: lock.read_text(encoding="utf-8") for lock in options.locks}, asking(options.service)
    )
    print("\n".join(lines), file=sys.stderr if status else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())
