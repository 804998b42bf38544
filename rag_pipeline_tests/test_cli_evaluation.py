"""`rag-pipeline eval` as a user meets it: datasets beside the index, labels against it, mined labels, and mistakes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline.evaluation.labels import read_labels
from rag_pipeline_tests.embedded.servers import temporary_home
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.test_cli import README, Shell

pytestmark = pytest.mark.slow

TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
PAGES = ["Unpack the archive and run the setup script.", "Containers are shipped to the cluster.", "Sound the foghorn."]
ASKED = ["how do I set it up?", "ship a container", "when there is fog"]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell after its first refresh: a README, an issue, and the pull request that closed it."""
    forge = Forge(now=datetime.now(UTC) - timedelta(hours=3))
    rocket = forge.add_repository("acme/rocket")
    forge.open_issue(rocket, title="Lantern goes out in strong wind (#1)", body="It happened twice.")
    pull = forge.open_pull_request(rocket, title="Shield the lantern", body="Fixes #1: the wind put it out.")
    forge.merge(pull)
    repository = GitRepository(tmp_path_factory.mktemp("eval") / "lighthouse")
    repository.commit("2024-01-02T10:00", {"README.md": README})
    with temporary_home() as home, GitHubServer(forge, tokens=[TOKEN]) as github:
        shell = Shell(repository.path.parent, home)
        configure(shell, github.url)
        done = shell("materialize", GITHUB_TOKEN=TOKEN)
        assert done.returncode == 0, done.stderr
        yield shell


def configure(shell: Shell, github: str, *, evaluation: str = "") -> None:
    (shell.folder / "rag_pipeline.toml").write_text(
        '[[repositories]]\nsource = "lighthouse"\n[[repositories]]\ngithub = "acme/rocket"\n'
        f'[github]\nbase_url = "{github}"\n[quality]\nin_refresh = false\n{evaluation}'
    )


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Three documents, each of which answers one question."""
    return written(tmp_path / "pages", PAGES)


def written(folder: Path, texts: list[str]) -> Path:
    folder.mkdir()
    rows = [json.dumps({"_id": f"p{n}", "title": "", "text": text}) for n, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("\n".join(rows))
    rows = [json.dumps({"_id": f"q{n}", "text": text}) for n, text in enumerate(ASKED)]
    (folder / "queries.jsonl").write_text("\n".join(rows))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\tp{n}\t1\n" for n in range(3)))
    return folder


def databases(shell: Shell) -> list[str]:
    with psycopg.connect(EmbeddedPostgres(shell.home).url("postgres")) as connection:
        return [row[0] for row in connection.execute("SELECT datname FROM pg_database ORDER BY 1").fetchall()]


def test_a_dataset_is_measured_beside_the_index(used, dataset):
    held, before = databases(used), json.loads(used("status", "--json").stdout)["index"]
    done = used("eval", "--dataset", str(dataset), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["dataset"], found["queries"], found["documents"], found["failures"]) == ("pages", 3, 3, [])
    assert set(found["metrics"]) == {"lexical", "vector", "fused"}
    assert found["metrics"]["vector"]["nDCG@10"] == pytest.approx(1.0)
    assert set(found["ablation"]) == {"lexical", "vector"}
    assert set(found["per_query"]["fused"]) == {"q0", "q1", "q2"}
    assert json.loads(used("status", "--json").stdout)["index"] == before
    assert databases(used) == held


def test_people_see_a_table_for_each_leg_and_may_ask_fewer_questions(used, dataset):
    done = used("eval", "--dataset", str(dataset), "--limit", "2")
    assert done.returncode == 0, done.stderr
    assert "pages: means of 2 questions" in done.stdout
    assert "difference to the fused leg" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[1:5]] == ["leg", "lexical", "vector", "fused"]
    assert "3 documents, 3 chunks, embedded with all-MiniLM-L6-v2" in done.stderr


def test_an_interrupt_leaves_nothing_behind(used, tmp_path):
    held = databases(used)
    folder = written(tmp_path / "long", [f"Page {n} tells about {n * 7} lighthouses. " * 40 for n in range(400)])
    running = subprocess.Popen(
        [sys.executable, "-c", "from rag_pipeline.cli import main; main()", "eval", "--dataset", str(folder)],
        cwd=used.folder, env=used.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell that starts this in the background has told it to ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while databases(used) == held and time.monotonic() < until:
            time.sleep(0.1)
        assert databases(used) != held
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130, said
    assert databases(used) == held


def test_what_is_wrong_with_a_folder_is_said_before_anything_is_started(used, tmp_path, dataset):
    assert "nowhere is not a folder: a labelled set is a folder with" in used.fails("eval", "--dataset", "nowhere")
    assert "corpus.jsonl: cannot be read" in used.fails("eval", "--dataset", str(tmp_path))
    (dataset / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tp0\n")
    assert "qrels.tsv:2: expected a query id, a document id and a grade" in used.fails(
        "eval", "--dataset", str(dataset)
    )


def test_options_that_do_not_go_together_are_refused(used, dataset):
    assert "leave out --tenant" in used.fails("eval", "--dataset", str(dataset), "--tenant", "acme")
    assert "--limit is for --dataset" in used.fails("eval", "--limit", "3")
    assert "--mine writes labels" in used.fails("eval", "--mine", "x.jsonl", "--dataset", str(dataset))
    assert "give one of them alone" in used.fails("eval", "--mine", "x.jsonl", "--mine-feedback", "y.jsonl")
    assert "nobody called a hit helpful" in used.fails("eval", "--mine-feedback", "y.jsonl")


def test_labels_are_mined_written_put_right_and_asked(used, tmp_path):
    file = tmp_path / "mined.jsonl"
    done = used("eval", "--mine", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"1 questions written to {file}: read them through")
    assert "[evaluation] in rag_pipeline.toml" in done.stdout
    (question,) = read_labels(file, name="mined").questions
    assert (question.text, question.id) == ("Lantern goes out in strong wind", "acme/rocket#1")
    assert "mined.jsonl exists already" in used.fails("eval", "--mine", str(file))
    assert "cannot be written" in used.fails("eval", "--mine", str(tmp_path / "missing" / "mined.jsonl"))
    # Without configured labels the mined ones are asked at once.
    (found,) = json.loads(used("eval", "--json").stdout)
    assert (found["dataset"], found["queries"]) == ("mined from closed issues", 1)
    assert found["metrics"]["vector"]["RR@10"] == 1.0


def test_configured_labels_are_asked_of_the_index_and_compared_with_the_last_time(used, tmp_path):
    file = tmp_path / "ours.jsonl"
    label = {"source_type": "docs", "source_id": "lighthouse:README.md", "lines": [7, 9]}
    gone = {"source_id": "lighthouse:GONE.md"}
    file.write_text(json.dumps({"id": "tests", "question": "How do I run the tests?", "relevant": [label, gone]}))
    config = used.folder / "rag_pipeline.toml"
    former = config.read_text()
    config.write_text(f'{former}[evaluation]\nlabels = ["{file}"]\nlegs = ["vector"]\n')
    try:
        (first,) = json.loads(used("eval", "--json").stdout)
        assert (first["compared_with"], first["falls"], first["worse"]) == (None, [], [])
        assert first["missing"] == [[None, "lighthouse:GONE.md"]]
        (again,) = json.loads(used("eval", "--json").stdout)
        assert again["compared_with"] is not None
        assert again["metrics"] == first["metrics"]
        done = used("eval")
        assert "means of 1 questions" in done.stdout
        assert "1 labelled documents are not in the index, such as lighthouse:GONE.md" in done.stderr
        file.write_text("{")
        assert "ours.jsonl:1: not JSON" in used.fails("eval")
        config.write_text(f'{former}[evaluation]\nlabels = ["nothing/*.jsonl"]\n')
        assert "'nothing/*.jsonl' matches no file in" in used.fails("eval")
    finally:
        config.write_text(former)


def test_a_tenant_without_labels_is_told_what_to_do(used):
    message = used.fails("eval", "--tenant", "nobody")
    assert "there are no labels to evaluate tenant 'nobody' with" in message


def test_an_empty_installation_is_told_what_to_do(tmp_path):
    with temporary_home() as home:
        assert "nothing is indexed yet: run `rag-pipeline up`" in Shell(tmp_path, home).fails("eval")


def test_the_help_says_what_is_measured_and_what_is_left_alone(used):
    text = " ".join(used("eval", "--help").stdout.split())
    for said in ("precision, recall, MRR and nDCG", "--dataset", "--mine", "--limit", "the index is left alone"):
        assert said in text
