"""The command line as a user meets it: real processes, a real repository, and what is said when something is wrong."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.embedding.fake_service import MODEL, embeddings, fake_service
from rag_pipeline_tests.git_repository import GitRepository

README = """# Lighthouse

## Installing

Run `pip install lighthouse` in a fresh environment.

## Running the tests

Call `make test`; it starts a database of its own.
"""


class Shell:
    """Runs `rag-pipeline` in a folder with a RAG_HOME of its own."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.home = home
        self.environ = {**os.environ, "RAG_HOME": str(home), "COLUMNS": "160"}

    def __call__(self, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from rag_pipeline.cli import main; main()", *args]
        environment = {**self.environ, **environ}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    def fails(self, *args: str, **environ: str) -> str:
        """The one line that a command which fails says last."""
        done = self(*args, **environ)
        assert done.returncode != 0, done.stdout
        assert "Traceback" not in done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, done.stderr
        return lines[0]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> GitRepository:
    repository = GitRepository(tmp_path_factory.mktemp("cli") / "lighthouse")
    repository.commit(
        "2024-01-02T10:00",
        {"README.md": README, "src/beam.py": "def rotate(speed):\n    return speed\n", "logo.png": b"\x89PNG"},
    )
    return repository


@pytest.fixture(scope="module")
def used(project: GitRepository) -> Iterator[tuple[Shell, subprocess.CompletedProcess[str]]]:
    """A shell after `rag-pipeline up --once`."""
    with temporary_home() as home:
        (project.path.parent / "rag_pipeline.toml").write_text(
            'sample_question = "How do I run the tests?"\n[[repositories]]\nsource = "lighthouse"\n'
        )
        shell = Shell(project.path.parent, home)
        yield shell, shell("up", "--once")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell in an empty folder; nothing is started by what fails early."""
    with temporary_home() as home:
        yield Shell(tmp_path, home)


def test_up_indexes_and_answers_with_a_link(used, project):
    _, done = used
    assert done.returncode == 0, done.stderr
    for word in ("items", "documents", "chunks", "embedded", "reused", "rows written", "seconds", "raw", "embeddings"):
        assert word in done.stdout
    assert "make test" in done.stdout
    assert f"[Source 1] Lighthouse  {project.path}/README.md:" in done.stdout


@pytest.mark.slow
def test_up_again_embeds_nothing_and_writes_nothing(used):
    shell, _ = used
    again = json.loads(shell("materialize", "--json").stdout)
    assert (again["embedded"], again["rows_written"]) == (0, 0)
    done = shell("up", "--once")
    lines = {line.split("  ")[0].strip(): line.split()[-1] for line in done.stdout.splitlines() if "  " in line}
    assert lines["embedded"] == "0"
    assert lines["rows written"] == "0"


def test_search_prints_hits_for_people_and_for_scripts(used, project):
    shell, _ = used
    assert "README.md:" in shell("search", "how to install", "-k", "1").stdout
    (hit,) = json.loads(shell("search", "how to install", "-k", "1", "--json", "--source-type", "docs").stdout)
    assert hit["title"] == "Lighthouse"
    assert hit["url"].startswith(f"file://{project.path}/README.md#L")
    assert {"text", "score", "location", "repository"} <= set(hit)
    assert json.loads(shell("search", "rotation", "--json", "--tenant", "nobody").stdout) == []
    (hit,) = json.loads(shell("search", "rotation", "--json", "--source-type", "code").stdout)
    assert hit["source_id"] == "lighthouse:src/beam.py"


def test_ask_answers_with_citations_and_declines_what_nobody_wrote_down(used, project):
    shell, _ = used
    done = shell("ask", "How do I run the tests?")
    assert done.returncode == 0, done.stderr
    assert "make test" in done.stdout and "[Source 1]" in done.stdout
    assert f"{project.path}/README.md:" in done.stdout
    assert done.stderr.startswith("answered, confidence ")
    answer = json.loads(shell("ask", "How do I run the tests?", "-k", "1", "--no-model", "--json").stdout)
    assert (answer["status"], answer["model"], len(answer["sources"])) == ("answered", "", 1)
    assert answer["sources"][0]["hit"]["url"].startswith(f"file://{project.path}/README.md#L")
    unknown = shell("ask", "How tall is Mount Kilimanjaro?", "--json")
    assert unknown.returncode == 0
    assert (json.loads(unknown.stdout)["status"], json.loads(unknown.stdout)["sources"]) == ("unknown", [])
    assert json.loads(shell("ask", "rotation", "--json", "--tenant", "nobody").stdout)["status"] == "unknown"
    assert json.loads(shell("ask", "thank you!", "--json").stdout)["status"] == "small_talk"


def test_status_says_how_fresh_each_source_is_and_a_monitor_may_ask(used):
    shell, _ = used
    (row,) = json.loads(shell("status", "--json").stdout)["freshness"]
    assert (row["repository"], row["source"], row["state"], row["stale"]) == ("lighthouse", "git", "fresh", False)
    assert row["last_item_seen"].startswith("2024-01-02") and row["missing_days"] == []
    assert (row["failures_waiting"], row["cost_this_month_usd"]) == (0, 0.0)
    assert shell("status", "--check").returncode == 0
    (shell.folder / "strict.toml").write_text('[[repositories]]\nsource = "."\nname = "another"\n')
    found = shell("--config", "strict.toml", "status", "--check")
    assert found.returncode == 1
    assert "stale: another (git, tenant default): never wholly indexed" in found.stderr
    assert max(map(len, found.stdout.partition("last item")[2].splitlines()[1:3])) <= 100


def test_there_is_an_inbox_to_drop_files_into(used):
    shell, _ = used
    assert list((shell.home / "inbox").iterdir()) == []


def test_status_says_what_the_index_holds(used):
    shell, _ = used
    report = json.loads(shell("status", "--json").stdout)
    assert report["running"] is True
    assert {(line["source_type"], line["documents"]) for line in report["index"]} == {("docs", 1), ("code", 1)}
    assert "lighthouse" in shell("status").stdout


@pytest.mark.slow
def test_a_partition_a_range_and_single_assets_can_be_materialized(used):
    shell, _ = used
    first = json.loads(shell("status", "--json").stdout)["first_partition"]
    assert shell("materialize", "--partition", first, "--select", "raw_docs,raw_code").returncode == 0
    assert json.loads(shell("materialize", "--from", first, "--json").stdout)["rows_written"] == 0
    assert "no asset 'chunk'" in shell.fails("materialize", "--select", "chunk")


def test_wrong_days_are_refused(used):
    shell, _ = used
    assert "is not a day: write it as YYYY-MM-DD" in shell.fails("materialize", "--partition", "2024-13-01")
    assert "there is no partition 1999-01-01" in shell.fails("materialize", "--partition", "1999-01-01")
    assert "exclude each other" in shell.fails("materialize", "--partition", "2024-01-01", "--to", "2024-01-02")


def test_plan_shows_what_a_refresh_would_cost_and_changes_nothing(used):
    shell, _ = used
    before = json.loads(shell("status", "--json").stdout)
    first = before["first_partition"]
    found = json.loads(shell("plan", "--from", first, "--json").stdout)
    assert (found["tokens"], found["usd"], found["would_be_stopped"]) == (0, 0.0, False)
    assert [model["model"] for model in found["models"]] == ["all-MiniLM-L6-v2"]
    assert {"text-embedding-3-small", "text-embedding-3-large"} <= {other["model"] for other in found["others"]}
    shown = shell("plan").stdout
    for word in ("tokens to embed", "cost", "requests", "time", "it would not be stopped", "for comparison"):
        assert word in shown
    after = json.loads(shell("status", "--json").stdout)
    # It looked at the sources, and says when.
    assert before.pop("freshness") and after.pop("freshness")
    assert after == before
    assert "is not a day: write it as YYYY-MM-DD" in shell.fails("plan", "--from", "soon")
    assert "there is no partition 1999-01-01" in shell.fails("plan", "--from", "1999-01-01")


def test_env_prints_what_dagster_needs(used):
    shell, _ = used
    variables = dict(
        line.removeprefix("export ").split("=", 1) for line in shell("env").stdout.splitlines()
    )  # fmt: skip
    assert variables["DAGSTER_POSTGRES_URL"].strip("'").startswith("postgresql+psycopg2://")
    assert Path(variables["DAGSTER_HOME"].strip("'"), "dagster.yaml").is_file()


def test_a_busy_port_is_named(shell, project):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        message = shell.fails("up", "--repo", str(project.path), "--port", str(port))
    assert f"port {port} on 127.0.0.1 cannot be used" in message


def test_a_missing_repository_is_named(shell):
    message = shell.fails("up", "--once", "--repo", "./does-not-exist")
    assert "does-not-exist does not exist" in message


@pytest.mark.slow
def test_a_missing_repository_among_others_is_named_after_they_are_done(shell, project):
    (shell.folder / "rag_pipeline.toml").write_text(
        f'[[repositories]]\nsource = "{project.path}"\n[[repositories]]\nsource = "./gone"\n'
    )
    message = shell.fails("materialize")
    assert "gone does not exist" in message and "the other repositories are up to date" in message
    assert len(json.loads(shell("search", "installing", "--json").stdout)) > 0


def test_an_unknown_configuration_key_is_named(shell):
    (shell.folder / "rag_pipeline.toml").write_text("[chunking]\nmax_token = 100\n")
    message = shell.fails("status")
    assert "unknown key 'chunking.max_token': did you mean 'max_tokens'?" in message


def test_a_missing_configuration_file_is_named(shell):
    assert "nowhere.toml does not exist" in shell.fails("--config", "nowhere.toml", "status")


def test_no_repository_is_an_error_with_advice(shell):
    assert "no repository is configured" in shell.fails("up", "--once")


def test_an_unreachable_database_is_named_without_its_password(shell, project):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"postgresql://someone:hunter2@127.0.0.1:{port}/rag"
    for command in (
        ["search", "anything"],
        ["migrate"],
        ["materialize"],
        ["up", "--once", "--repo", str(project.path)],
    ):
        message = shell.fails(*command, DATABASE_URL=url)
        assert f"cannot connect to PostgreSQL at 127.0.0.1:{port}/rag" in message
        assert "hunter2" not in message


@pytest.mark.slow
def test_a_given_database_is_used_and_nothing_embedded_is_started(shell, project, server, empty_database):
    done = shell("up", "--once", "--repo", str(project.path), DATABASE_URL=empty_database)
    assert done.returncode == 0, done.stderr
    assert not (shell.home / "postgres").exists()
    with psycopg.connect(server.url("dagster")) as connection:
        assert connection.execute("SELECT count(*) > 0 FROM runs").fetchone() == (True,)


def test_debug_shows_the_traceback(shell):
    assert "Traceback" in shell("up", "--once", "--debug").stderr


def test_help_names_every_command(shell):
    text = shell("--help").stdout
    for command in ("up", "dev", "down", "status", "env", "migrate", "materialize", "search"):
        assert f"\n  {command} " in text


@pytest.mark.slow
def test_an_openai_compatible_service_is_a_few_lines_of_configuration(shell, project):
    with fake_service(embeddings) as service:
        _configure_service(shell, project, service.url)
        first = shell("materialize", "--json")
        assert first.returncode == 0, first.stderr
        assert json.loads(first.stdout)["embedded"] == len(service.texts) - 1  # one asks for the length of the vectors
        assert json.loads(first.stdout)["skipped"] == {"unsupported file type": 1}
        asked = len(service.requests)
        assert json.loads(shell("materialize", "--json").stdout)["embedded"] == 0
        assert len(service.requests) == asked
        assert len(json.loads(shell("search", "installing", "--json").stdout)) > 0
    assert all(request.headers["authorization"] == "Bearer secret" for request in service.requests)


@pytest.mark.slow
def test_a_model_that_returns_other_dimensions_is_named_and_nothing_is_lost(shell, project):
    with fake_service(embeddings) as service:
        _configure_service(shell, project, service.url)
        assert shell("materialize").returncode == 0
    with fake_service(lambda request: embeddings(request, dimensions=5)) as service:
        _configure_service(shell, project, service.url)
        project.commit("2024-01-03T10:00", {"new.md": "# New\n\nSomething that has no vector yet.\n"})
        message = shell.fails("materialize")
        project.commit("2024-01-04T10:00", {"new.md": None})
    assert "5 dimensions" in message and "8" in message
    with fake_service(embeddings) as service:
        _configure_service(shell, project, service.url)
        assert len(json.loads(shell("search", "installing", "--json").stdout)) > 0


@pytest.mark.slow
def test_a_key_in_the_environment_alone_sends_nothing_anywhere(shell, project):
    with fake_service(embeddings) as service:
        done = shell(
            "up", "--once", "--repo", str(project.path), OPENAI_API_KEY="secret", OPENAI_BASE_URL=service.url
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert service.requests == []


def _configure_service(shell: Shell, project: GitRepository, url: str) -> None:
    shell.environ["EXAMPLE_KEY"] = "secret"
    (shell.folder / "rag_pipeline.toml").write_text(
        f'[[repositories]]\nsource = "{project.path}"\n'
        f'[embedding]\nprovider = "openai"\nmodel = "{MODEL}"\nbase_url = "{url}"\napi_key_env = "EXAMPLE_KEY"\n'
        "[quality]\nin_refresh = false\n"
    )
