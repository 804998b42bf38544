"""The rules of the house, as far as a machine can hold them: imports, names, sizes, and what the wheel carries."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import psycopg
import pytest

from rag_pipeline.index.sql_files import queries, sql_folder

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "rag_pipeline"
MODULES = sorted(PACKAGE.rglob("*.py"))
OURS = [*MODULES, *sorted((ROOT / "rag_pipeline_tests").rglob("*.py"))]
MOST_LINES = 400
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"
VAGUE = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py", "managers", "utils", "helpers"}


def test_modules_import_only_what_the_contracts_allow():
    checked = subprocess.run(
        [sys.executable, "-c", LINT_IMPORTS, "--no-cache"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", checked.stdout)


def test_only_the_outer_ring_names_dagster():
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        if re.search(r"^\s*(?:import|from) dagster\b", text, re.MULTILINE):
            inside = path.relative_to(PACKAGE).parts[0]
            assert inside in {"defs", "definitions.py", "cli"}, path


@pytest.mark.parametrize("file", sorted(path.stem for path in (sql_folder() / "queries").glob("*.sql")))
def test_every_query_is_named_once_complete_and_used(file):
    text = (sql_folder() / "queries" / f"{file}.sql").read_text(encoding="utf-8")
    names = re.findall(r"^-- name: (\w+)$", text, re.MULTILINE)
    assert len(names) == len(set(names)) == len(queries(file)) > 0
    assert text.startswith("-- name: "), "what stands before the first name belongs to no query"
    assert text.count("-- name:") == len(names), "a name that the loader does not see"
    speakers = [*(PACKAGE / "index").glob("*.py"), *(PACKAGE / "retrieval").glob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in speakers)
    for name, statement in queries(file).items():
        # A fragment is put into the statements that name it.
        assert statement.endswith(";") or f"{{{name}}}" in text, name
        assert f'"{name}"' in code, f"{file}.{name} is used by nothing"


@pytest.mark.parametrize("file", sorted(path.stem for path in (sql_folder() / "queries").glob("*.sql")))
def test_values_are_bound_and_only_tables_of_ours_are_put_into_a_statement(file):
    for statement in queries(file).values():
        without_comments = re.sub(r"--.*", "", statement)
        # Everything that is not `%(name)s` (or `b`: in binary) would be a stray formatting mark.
        assert "%" not in re.sub(r"%\(\w+\)[sb]", "", without_comments)
        # `code` is a function of a space's own, `bits` the length of what it makes.
        known = {"vectors", "index", "name", "matching", "code", "bits"}
        assert set(re.findall(r"\{(\w*)\}", without_comments)) <= known
        psycopg.sql.SQL(statement).format(**{name: psycopg.sql.Identifier("t") for name in known})


def test_no_folder_or_file_has_a_name_that_says_nothing():
    assert [path for path in PACKAGE.rglob("*") if path.name in VAGUE] == []


def test_no_file_is_longer_than_one_can_read_at_once():
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in OURS}
    assert {path: length for path, length in lines.items() if length > MOST_LINES} == {}


def test_every_module_and_every_public_name_says_what_it_is():
    silent = []
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        if not ast.get_docstring(tree):
            silent.append(str(path))
        silent += [
            f"{path}:{node.lineno} {node.name}"
            for node in nodes
            if not node.name.startswith("_") and not ast.get_docstring(node)
        ]
    assert silent == []


@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed")
def test_the_wheel_carries_sql_deployment_and_data(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        carried = set(archive.namelist())
        applied = archive.read("rag_pipeline/_sql/migrations/0001_knowledge_index.sql")
    sql = {f"rag_pipeline/_sql/{path.relative_to(ROOT / 'sql').as_posix()}" for path in (ROOT / "sql").rglob("*.sql")}
    assert sql <= carried
    assert applied == (ROOT / "sql" / "migrations" / "0001_knowledge_index.sql").read_bytes()
    assert {"rag_pipeline/_deploy/dagster.yaml", "rag_pipeline/_deploy/workspace.yaml"} <= carried
    assert {path.relative_to(ROOT).as_posix() for path in MODULES} <= carried
    page = [path for path in (PACKAGE / "serving" / "page").iterdir() if path.suffix in {".html", ".css", ".js"}]
    assert len(page) > 3
    assert {path.relative_to(ROOT).as_posix() for path in page} <= carried
    assert {"rag_pipeline/py.typed", "rag_pipeline/embedding/data/LICENSE"} <= carried
    assert not [name for name in carried if "_tests" in name or "__pycache__" in name]
