"""`rag-pipeline spaces` as a user meets it: real processes, an embedding service on a loopback socket, errors."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.embedding.fake_service import FakeService, Reply, Request, embeddings, fake_service
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.test_cli import README, Shell

pytestmark = pytest.mark.slow

OLD, NEW = "text-embedding-3-small", "text-embedding-3-large"
GUIDE = "\n\n".join(f"## Part {n}\n\n" + f"Lamp {n} turns while fog hides the rocks. " * 12 for n in range(30))
Used = tuple[Shell, FakeService]


def slowly(request: Request) -> Reply:
    """The new model takes its time."""
    return replace(embeddings(request), delay_s=0.3 if request.body["model"] == NEW else 0.0)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Used]:
    """A shell whose index was filled with one model of a service."""
    folder = tmp_path_factory.mktemp("spaces")
    repository = GitRepository(folder / "lighthouse")
    files = {"README.md": README, "guide.md": GUIDE, "beam.py": "def rotate(speed):\n    return speed\n"}
    repository.commit("2024-01-02T10:00", files)
    with temporary_home() as home, fake_service(slowly) as service:
        (folder / "rag_pipeline.toml").write_text(
            f'[[repositories]]\nsource = "lighthouse"\n[embedding]\nprovider = "openai"\nmodel = "{OLD}"\n'
            f'base_url = "{service.url}"\napi_key_env = "EXAMPLE_KEY"\npassage_prefix = "passage: "\n'
            "batch_texts = 2\nconcurrency = 1\n[quality]\nin_refresh = false\n"
        )
        shell = Shell(folder, home)
        shell.environ["EXAMPLE_KEY"] = "very-secret"
        done = shell("materialize")
        assert done.returncode == 0, done.stderr
        yield shell, service


@pytest.mark.slow
def test_another_model_is_built_promoted_rolled_back_and_dropped(used: Used) -> None:
    shell, service = used
    created = shell("spaces", "create", "--model", NEW)
    assert created.returncode == 0, created.stderr
    assert "embedding space 2: openai text-embedding-3-large, 8 dimensions, building" in created.stdout
    assert "rag-pipeline spaces build 2" in created.stdout
    assert "run `rag-pipeline spaces build 2`" in shell.fails("spaces", "promote", "2")

    asked = len(service.requests)
    stored = _kill_a_build(shell, service)
    report = json.loads(shell("spaces", "build", "2", "--json").stdout)
    assert (report["missing"], report["embedded"], report["graph_built"]) == (0, report["texts"] - stored, True)
    sent = [request for request in service.requests[asked:] if request.body["model"] == NEW]
    # The prefix belongs to the model that it was configured for.
    assert sent and not any(text.startswith("passage: ") for request in sent for text in request.texts)

    first, second = json.loads(shell("spaces", "list", "--json").stdout)
    assert (first["status"], second["status"], second["missing"]) == ("active", "building", 0)
    assert "text-embedding-3-large" in shell("spaces", "list").stdout
    assert "or promote it with --force" in shell.fails("spaces", "promote", "2")

    promoted = shell("spaces", "promote", "2", "--force")
    assert "embedding space 2 (openai text-embedding-3-large) answers questions now" in promoted.stdout
    assert "rag_pipeline.toml names another model" in promoted.stderr
    assert len(json.loads(shell("search", "installing", "--json").stdout)) > 0
    assert service.requests[-1].body["model"] == NEW
    assert json.loads(shell("materialize", "--json").stdout)["embedded"] == 0

    assert json.loads(shell("spaces", "rollback", "--json").stdout) == {"active": 1}
    assert "is the active one" in shell.fails("spaces", "drop", "1")
    refused = shell("spaces", "drop", "2")
    assert refused.returncode != 0 and "Remove embedding space 2" in refused.stderr
    assert shell("spaces", "drop", "2", "--yes").returncode == 0
    assert [row["space_id"] for row in json.loads(shell("spaces", "list", "--json").stdout)] == [1]
    # What a space remembers names the variable, never the key.
    status = shell("status", "--json").stdout
    assert "EXAMPLE_KEY" in status and "very-secret" not in status


def test_a_space_is_laid_out_in_several_tables_and_answers_as_before(used: Used) -> None:
    shell, service = used
    before, asked = json.loads(shell("search", "installing", "--json").stdout), len(service.requests)
    done = shell("spaces", "partition", "1", "--partitions", "3", "--json")
    (kind,) = {row["graph_over"] for row in json.loads(shell("spaces", "list", "--json").stdout)}
    assert json.loads(done.stdout) == {"space_id": 1, "partitions": 3, "graph_over": kind}
    assert len(service.requests) == asked
    (row,) = [row for row in json.loads(shell("spaces", "list", "--json").stdout) if row["space_id"] == 1]
    assert (row["partitions"], row["missing"], row["graph"]) == (3, 0, True)
    assert json.loads(shell("search", "installing", "--json").stdout) == before
    assert json.loads(shell("materialize", "--json").stdout)["embedded"] == 0
    assert "lie in one table now" in shell("spaces", "partition", "1", "--partitions", "1").stdout
    assert "there is no embedding space 9" in shell.fails("spaces", "partition", "9", "--partitions", "2")


def test_a_space_gets_another_kind_of_graph_and_answers_as_before(used: Used) -> None:
    shell, service = used
    before, asked = json.loads(shell("search", "installing", "--json").stdout), len(service.requests)
    for kind in ("codes", "vectors"):
        done = shell("spaces", "partition", "1", "--graph", kind)
        assert f"lie in one table now, its graph is over {kind}" in done.stdout
        assert json.loads(shell("search", "installing", "--json").stdout) == before
        assert json.loads(shell("materialize", "--json").stdout)["embedded"] == 0
    assert [request for request in service.requests[asked:] if len(request.texts) > 1] == []
    assert "graph over" in shell("spaces", "list").stdout
    assert "name --partitions, --graph or both" in shell.fails("spaces", "partition", "1")
    wrong = shell("spaces", "partition", "1", "--graph", "trees")
    assert wrong.returncode == 2 and "'trees' is not one of 'vectors', 'codes'" in wrong.stderr


def test_wrong_input_is_one_clear_line(used: Used) -> None:
    shell, _ = used
    assert "there is no embedding space 9: choose from 1 (openai" in shell.fails("spaces", "build", "9")
    assert "there is no embedding space 9" in shell.fails("spaces", "evaluate", "9")
    assert "there is nothing to go back to" in shell.fails("spaces", "rollback")
    assert "is the active one already" in shell.fails("spaces", "promote", "1")
    message = shell.fails("spaces", "create", "--model", "m", "--api-key-env", "sk-123")
    assert "--api-key-env: must be the name of an environment variable" in message and "sk-123" not in message
    message = shell.fails("spaces", "create", "--model", "m", "--base-url", "https://me:sk-123@host/v1")
    assert "--base-url: must be an http(s) address without credentials" in message and "sk-123" not in message
    assert "--provider" in shell.fails("spaces", "create", "--model", "m", "--provider", "nobody")


def test_help_says_the_way_to_another_model(used: Used) -> None:
    shell, _ = used
    text = shell("spaces", "--help").stdout
    for command in ("list", "create", "build", "evaluate", "promote", "rollback", "partition", "drop"):
        assert f"\n  {command} " in text
    assert "create, build, evaluate, promote" in text


def _kill_a_build(shell: Shell, service: FakeService) -> int:
    """Start filling space 2 and kill the process in the middle; how many vectors it has left behind."""
    asked = len(service.requests)
    command = [sys.executable, "-c", "from rag_pipeline.cli import main; main()", "spaces", "build", "2"]
    with subprocess.Popen(
        command, cwd=shell.folder, env=shell.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 90
        while len(service.requests) < asked + 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    (row,) = [row for row in json.loads(shell("spaces", "list", "--json").stdout) if row["space_id"] == 2]
    assert 0 < row["vectors"] < row["vectors"] + row["missing"]
    return int(row["vectors"])
