"""docs/extending.md, to the letter: its module, its registration, its configuration, and the life of what it adds."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CLI = "from rag_pipeline.cli import main; main()"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="hatchling, which builds the example, is not installed"
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder in which the page was followed, and the environment of a process that has what it installs."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("extending")
    (module,) = re.findall(r"Write it to `(runbooks\.py)`:\n\n```python\n(.*?)^```", page, re.M | re.S)
    (project, configuration) = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
    (command,) = re.findall(r"^```console\n(pip install .*?)\n```", page, re.M | re.S)
    (folder / module[0]).write_text(module[1], encoding="utf-8")
    (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    (folder / "rag_pipeline.toml").write_text(configuration, encoding="utf-8")
    site = folder / "site"
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", *command.split(), *options], cwd=folder, check=True)
    (folder / module[0]).unlink()  # what is installed is meant, not what lies in the folder
    path = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return folder, {**os.environ, "PYTHONPATH": path, "RAG_HOME": str(folder / "home")}


@pytest.mark.slow
def test_a_kind_of_source_made_by_the_page_lives_as_the_page_says(installed, database):
    folder, environ = installed
    command = [sys.executable, "-m", "rag_pipeline_tests.end_to_end.runbooks", str(folder), database]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_keys_are_checked_and_in_the_schema(installed):
    folder, environ = installed

    def said(*arguments: str) -> str:
        command = [sys.executable, "-c", CLI, "config", *arguments]
        return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False).stdout

    assert said("check") == ""
    text = (folder / "rag_pipeline.toml").read_text(encoding="utf-8")
    wrong = text.replace("folder =", "foldre =") + '[[sources.runbooks]]\nname = "on-call"\nfolder = "x"\n'
    (folder / "wrong.toml").write_text(wrong, encoding="utf-8")
    lines = said("check", "wrong.toml").splitlines()
    assert [line.partition("wrong.toml")[2] for line in lines] == [
        ":3: error: sources.runbooks.0.folder: Field required",
        ":5: error: sources.runbooks.0.foldre: unknown key: did you mean 'folder'?",
    ]
    schema = json.loads(said("schema"))
    assert schema["$defs"]["sources.runbooks"]["properties"]["folder"]["description"].startswith("Where the files are")
