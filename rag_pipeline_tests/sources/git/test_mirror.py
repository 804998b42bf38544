"""Fetching: what sources there are, what is kept of them, and what is said when something is wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from rag_pipeline.errors import ConfigError, PermanentError, SourceNotFound, StorageUnavailable, TransientError
from rag_pipeline.settings import Repository
from rag_pipeline.sources.git import remote
from rag_pipeline.sources.git.command import git_failed
from rag_pipeline.sources.git.mirror import Mirror, mirror_of
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.sources.git.reading import NOW, Index, Source, day


def test_new_commits_are_fetched_and_nothing_new_moves_nothing(repository: GitRepository, source: Source) -> None:
    first = repository.commit("2024-01-02", {"a.md": "a"})
    assert source.fetch() == first == source.mirror.head()
    second = repository.commit("2024-01-03", {"b.md": "b"})
    assert source.fetch() == source.fetch() == second
    assert [(move.old, move.new, move.at) for move in source.mirror.moves()] == [
        (None, first, NOW), (first, second, NOW),
    ]  # fmt: skip


def test_a_head_that_git_packed_is_found(repository: GitRepository, source: Source) -> None:
    head = repository.commit("2024-01-02", {"a.md": "a"})
    source.fetch()
    source.mirror.run("pack-refs", "--all")
    assert not (source.mirror.path / "refs/rag/head").exists()
    assert source.mirror.head() == source.fetch() == head


def test_the_branch_that_head_names_or_the_one_configured_is_followed(
    repository: GitRepository, source: Source
) -> None:
    repository.git("branch", "-m", "trunk")
    trunk = repository.commit("2024-01-02", {"a.md": "a"})
    repository.git("switch", "--quiet", "-c", "side/branch")
    side = repository.commit("2024-01-03", {"b.md": "b"})
    repository.git("switch", "--quiet", "trunk")
    assert source.fetch() == trunk
    source.options = {"branch": "side/branch"}
    assert source.fetch() == side
    source.options = {}
    repository.git("switch", "--quiet", "--detach", "side/branch")
    assert source.fetch() == side


@pytest.mark.parametrize("spell", [lambda path: f"file://{path}", lambda path: f"{path}.git"], ids=["url", "bare"])
def test_urls_and_bare_repositories(repository: GitRepository, source: Source, spell: Callable[[Path], str]) -> None:
    repository.commit("2024-01-02", {"a.md": "a"})
    repository.git("clone", "--quiet", "--bare", ".", f"{repository.path}.git")
    source.options = {"source": spell(repository.path)}
    assert source.fetch_and_read().keys() == {"a.md"}
    source.fetch()


def test_an_empty_repository_has_nothing_yet(repository: GitRepository, source: Source) -> None:
    assert source.fetch() is None and source.fetch() is None
    assert source.timeline().steps == ()
    repository.commit("2024-01-02", {"a.md": "a"})
    assert source.fetch_and_read().keys() == {"a.md"}


def test_objects_counted_by_sha256(tmp_path: Path, source: Source) -> None:
    shutil.rmtree(source.path)
    source.path.mkdir()
    git = ["git", "-C", str(source.path), "-c", "user.name=Ada", "-c", "user.email=ada@x"]
    subprocess.run([*git, "init", "--quiet", "--object-format=sha256"], check=True)
    for number in range(2):
        (source.path / "a.md").write_text(f"{number}")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", "x"], check=True, env=os.environ | {
            "GIT_COMMITTER_DATE": f"2024-01-0{number + 2}T00:00:00Z"})  # fmt: skip
        items = source.fetch_and_read()
        assert items["a.md"].content == str(number).encode()
        assert len(str(items["a.md"].metadata["commit"])) == 64


def test_a_shallow_source_is_read_as_far_as_it_goes_and_completed_later(
    repository: GitRepository, source: Source, tmp_path: Path
) -> None:
    for number in range(2, 8):
        repository.commit(f"2024-01-0{number}", {f"{number}.md": "x", "a.md": str(number)})
    shallow = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth=2", f"file://{repository.path}", str(shallow))
    source.path = shallow
    source.fetch()
    index = Index(source=source)
    index.refresh()
    assert len(index.live()) == 7
    assert {item.day for item in index.held.values()} == {day("01-06"), day("01-07")}
    subprocess.run(["git", "-C", str(shallow), "fetch", "--quiet", "--unshallow"], check=True)
    source.fetch()
    assert len(source.timeline().steps) == 6
    for number in range(7, 0, -1):
        index.run(day(f"01-0{number}"), day(f"01-0{number}"))
    assert len(index.live()) == 7 and index.live()["a.md"] == b"7"
    assert by_day(source) == {f"{n}.md": day(f"01-0{n}") for n in range(2, 8)} | {"a.md": day("01-07")}


def by_day(source: Source) -> dict[str | None, object]:
    return {item.path: item.day for item in source.read()}


def test_two_processes_may_fetch_one_mirror(repository: GitRepository, source: Source) -> None:
    head = repository.commit("2024-01-02", {f"{n}.md": "x" * n for n in range(50)})
    code = (
        "import sys; from datetime import datetime, UTC; from pathlib import Path\n"
        "from rag_pipeline.settings import Repository; from rag_pipeline.sources.git.mirror import mirror_of\n"
        "mirror = mirror_of(Repository(source=sys.argv[1]), home=Path(sys.argv[2]))\n"
        "print(mirror.fetch(now=datetime.now(UTC)))"
    )
    command = [sys.executable, "-c", code, str(source.path), str(source.home)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert {process.communicate()[0].strip() for process in processes} == {head}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"source": "/nowhere/at/all"}, "repository /nowhere/at/all does not exist: give an existing path"),
        ({"source": "file:///nowhere/at/all"}, "file:///nowhere/at/all does not exist"),
        ({"branch": "nope"}, "has no branch 'nope': set `branch` to one that exists (one of main, other)"),
        ({"branch": "a:b"}, "has no branch 'a:b'"),
        ({"token_env": "NO_SUCH_TOKEN"}, "token_env names NO_SUCH_TOKEN, which is not set"),
        ({"source": "https://localhost:1/x.git"}, "cannot reach repository https://localhost:1/x.git"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    repository: GitRepository, source: Source, options: dict[str, str], says: str
) -> None:
    repository.commit("2024-01-02", {"a.md": "a"})
    repository.git("branch", "other")
    source.options = options
    with pytest.raises((SourceNotFound, ConfigError, TransientError)) as error:
        source.fetch()
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert not source.mirror.exists()


def test_a_folder_that_is_no_repository(repository: GitRepository, source: Source, tmp_path: Path) -> None:
    repository.commit("2024-01-02", {"sub/a.md": "a"})
    source.path = repository.path / "sub"
    with pytest.raises(SourceNotFound, match=r"sub is not a git repository: give the folder that holds its \.git"):
        source.fetch()


def test_a_default_branch_that_does_not_exist(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": "a"})
    repository.git("branch", "develop")
    repository.git("symbolic-ref", "HEAD", "refs/heads/gone")
    with pytest.raises(SourceNotFound, match=r"names a default branch that does not exist.*develop, main"):
        source.fetch()


def test_a_repository_of_another_user(
    repository: GitRepository, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("2024-01-02", {"a.md": "a"})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    with pytest.raises(SourceNotFound, match=r"belongs to another user.*git config --global --add safe.directory /"):
        source.fetch()


def test_no_git(repository: GitRepository, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="git is not found on the PATH"):
        source.fetch()


def _truncate(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"")


def _damage(name: str, mirror: Path) -> None:
    if name == "no HEAD":
        (mirror / "HEAD").unlink()
    elif name == "no objects":
        shutil.rmtree(mirror / "objects")
    elif name == "half a folder":
        shutil.rmtree(mirror)
        mirror.mkdir()
        (mirror / "HEAD").write_text("ref: refs/heads/main\n")
    elif name == "broken config":
        (mirror / "config").write_text("[core\n")
    elif name == "empty ref":
        _truncate(mirror / "refs/rag/head")
    elif name == "empty objects":
        for path in (mirror / "objects").rglob("*"):
            if path.is_file():
                _truncate(path)


@pytest.mark.parametrize(
    "name", ["no HEAD", "no objects", "half a folder", "broken config", "empty ref", "empty objects"]
)
def test_a_damaged_mirror_is_fetched_anew(repository: GitRepository, source: Source, name: str) -> None:
    repository.commit("2024-01-02", {"a.md": "a"})
    source.fetch()
    _damage(name, source.mirror.path)
    repository.commit("2024-01-03", {"b.md": "b"})
    assert source.fetch_and_read().keys() == {"a.md", "b.md"}


def test_a_damaged_source_does_not_cost_the_mirror(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": "a"})
    source.fetch()
    repository.commit("2024-01-03", {"b.md": "b"})
    _damage("empty objects", repository.path / ".git")
    with pytest.raises(SourceNotFound, match="cannot be read"):
        source.fetch()
    assert [item.path for item in source.read()] == ["a.md"]


def test_a_missing_object_is_an_error_not_a_deletion(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": "a"})
    source.fetch()
    blob = repository.git("rev-parse", "HEAD:a.md").strip()
    (source.mirror.path / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(PermanentError, match=r"damaged, delete that folder: it is fetched again"):
        source.read()


@pytest.mark.parametrize("name", ["refs/rag/head.lock", "shallow.lock"])
def test_a_lock_that_a_killed_git_left_is_cleared(
    repository: GitRepository, source: Source, name: str, tmp_path: Path
) -> None:
    for number in (2, 3, 4):
        repository.commit(f"2024-01-0{number}", {"a.md": str(number)})
    shallow = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth=2", f"file://{repository.path}", str(shallow))
    source.path = shallow if name == "shallow.lock" else repository.path
    source.fetch()
    head = repository.commit("2024-01-05", {"b.md": "b"})
    subprocess.run(["git", "-C", str(shallow), "pull", "--quiet", "--unshallow"], check=True)
    lock = source.mirror.path / name
    lock.touch()
    with pytest.raises(TransientError, match="another git is at work"):
        source.fetch()
    os.utime(lock, (time.time() - 3600,) * 2)
    assert source.fetch() == head


def test_a_token_goes_to_its_host_only_and_into_no_file(source: Source) -> None:
    repository = Repository(source="https://git.example.org/acme/x.git", token_env="TOKEN", name="x")
    environment = remote.credentials(repository, {"TOKEN": "hunter2"})
    assert environment["GIT_CONFIG_KEY_0"] == "http.https://git.example.org/.extraHeader"
    assert environment["GIT_CONFIG_VALUE_0"].startswith("Authorization: Basic ")
    assert remote.credentials(repository.model_copy(update={"source": "/srv/x"}), {"TOKEN": "hunter2"}) == {}


@pytest.mark.parametrize(
    ("complaint", "transient"),
    [
        ("fatal: unable to access: Could not resolve host: github.com", True),
        ("fatal: unable to access: The requested URL returned error: 503", True),
        ("error: RPC failed; curl 92 HTTP/2 stream 0 was not closed cleanly", True),
        ("fatal: repository 'https://github.com/rustls/early EOF/' not found", False),
        ("fatal: Authentication failed for 'https://github.com/a/b'", False),
    ],
)
def test_only_what_may_pass_is_tried_again(complaint: str, transient: bool) -> None:
    repository = Repository(source="https://github.com/rustls/early EOF", name="x")
    with pytest.raises(TransientError if transient else SourceNotFound):
        remote.explain(complaint, repository, environ={})


@pytest.mark.parametrize(
    ("complaint", "meant"),
    [
        ("fatal: write error: No space left on device\nfatal: index-pack failed", StorageUnavailable),
        ("fatal: unable to write loose object file: Disk quota exceeded", StorageUnavailable),
        ("remote: fatal: No space left on device\nfatal: early EOF", PermanentError),
        ("fatal: bad object", PermanentError),
    ],
)
def test_a_full_disk_is_not_taken_for_a_damaged_mirror(
    complaint: str, meant: type[Exception], tmp_path: Path
) -> None:  # fmt: skip
    said = git_failed("fetch", tmp_path, complaint.encode())
    assert type(said) is meant
    assert ("make room there" in str(said)) == (meant is StorageUnavailable)
    assert ("delete that folder" in str(said)) == (meant is PermanentError)


def test_mirrors_have_names_of_their_own(tmp_path: Path) -> None:
    def name(source: str, branch: str = "") -> str:
        return mirror_of(Repository(source=source, branch=branch), home=tmp_path).path.name

    long = "/".join(["a-rather-long-folder"] * 12)
    names = [name(f"/{x}/{long}") for x in "ab"] + [
        name("/a"),
        name("/a", "b"),
        name("https://x/a+b"),
        name("https://x/a/b"),
    ]
    assert len(set(names)) == len(names) and all(len(found) < 200 for found in names)


def test_a_persons_own_git_settings_change_nothing(
    repository: GitRepository, source: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "attributes").write_text("*.md linguist-generated\n")
    (tmp_path / "gitconfig").write_text(
        "[diff]\nrenames = copies\nnoprefix = true\norderFile = /nowhere\n[color]\nui = always\n"
        "[core]\nquotePath = true\nabbrev = 5\n[log]\nshowSignature = true\nshowRoot = false\n[fetch]\nprune = true\n"
        "[init]\ndefaultBranch = x\ntemplateDir = /nowhere\n[i18n]\nlogOutputEncoding = latin1\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE"):
        monkeypatch.setenv(name, "/nowhere")
    text = "".join(f"line {n}\n" for n in range(30))
    repository.commit("2024-01-02", {"ä.md": text, "keep.md": text})
    repository.move("ä.md", "ö.md")
    repository.commit("2024-01-03")
    items = source.fetch_and_read()
    assert {path: item.deleted for path, item in items.items()} == {"ä.md": True, "ö.md": False, "keep.md": False}
    assert items["ö.md"].metadata["previous_path"] == "ä.md"


def test_fetching_again_what_is_known_is_one_process(
    repository: GitRepository, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("2024-01-02", {"a.md": "a"})
    source.fetch()
    monkeypatch.setattr(Mirror, "_fetch", lambda *_, **__: pytest.fail("fetched"))
    source.now += timedelta(days=1)
    source.fetch()
