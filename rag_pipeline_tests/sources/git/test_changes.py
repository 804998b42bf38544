"""Each path that changed in a window: once, on the day of its last change, as it is at the window's end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rag_pipeline.model import SourceItem
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.sources.git.reading import NOW, Source, day

TEXT = "".join(f"A line of some length, number {n}.\n" for n in range(20))


def kinds(items: dict[str, SourceItem]) -> dict[str, str]:
    """Path to `live`, or why it is a tombstone."""
    return {p: str(i.metadata["tombstone_reason"]) if i.deleted else "live" for p, i in items.items()}


def test_a_path_appears_on_the_day_of_its_last_change_in_the_window(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02T10:00", {"a.md": "one", "b.md": "b"})
    last = repository.commit("2024-01-04T23:59:59", {"a.md": "two"})
    items = source.fetch_and_read()
    assert (items["a.md"].day, items["a.md"].content) == (day("01-04"), b"two")
    assert items["a.md"].source_updated_at == datetime(2024, 1, 4, 23, 59, 59, tzinfo=UTC)
    assert items["a.md"].metadata == {"commit": last, "author": "Ada"}
    assert items["b.md"].day == day("01-02")
    early = source.fetch_and_read(last=day("01-03"))
    assert (early["a.md"].day, early["a.md"].content) == (day("01-02"), b"one")
    assert list(source.fetch_and_read(day("01-03"))) == ["a.md"]
    assert source.read(day("01-05")) == [] and source.read(day("01-03"), day("01-03")) == []


def test_what_is_older_than_the_first_partition_is_in_it(repository: GitRepository, source: Source) -> None:
    repository.commit("1999-05-05", {"old.md": "old", "gone.md": "x"})
    repository.commit("2020-05-05", {"new.md": "new", "gone.md": None})
    items = source.fetch_and_read(last=day("01-01"))
    assert {item.day for item in items.values()} == {day("01-01")}
    assert items["old.md"].source_updated_at.year == 1999
    assert kinds(items) == {"old.md": "live", "new.md": "live", "gone.md": "deleted"}
    assert source.read(day("01-02")) == [] and source.read(last=datetime(2023, 12, 31).date()) == []  # noqa: DTZ001


def test_deletions_are_tombstones_and_what_came_back_is_alive(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": "a", "b.md": "b", "c.md": "c"})
    repository.commit("2024-01-03", {"a.md": None, "b.md": None, "c.md": None})
    repository.commit("2024-01-04", {"b.md": "b"})
    repository.commit("2024-01-05", {"c.md": "c"})
    items = source.fetch_and_read(last=day("01-04"))
    assert kinds(items) == {"a.md": "deleted", "b.md": "live", "c.md": "deleted"}
    assert (items["a.md"].content, items["a.md"].day) == (b"", day("01-03"))
    assert source.report.tombstones == {"docs": 2} and source.report.items == {"docs": 1}


def test_a_rename_is_a_tombstone_and_an_item_that_knows_where_it_was(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": TEXT})
    repository.move("a.md", "docs/b.md")
    repository.commit("2024-01-03", {"docs/b.md": TEXT + "and more\n"})
    items = source.fetch_and_read()
    assert kinds(items) == {"a.md": "deleted", "docs/b.md": "live"}
    assert items["docs/b.md"].metadata["previous_path"] == "a.md"
    assert items["a.md"].day == day("01-03")
    assert source.report.moves == 1


def test_a_chain_of_renames_ends_at_its_last_name(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": TEXT})
    repository.move("a.md", "b.md")
    repository.commit("2024-01-03")
    repository.move("b.md", "c.md")
    repository.commit("2024-01-04")
    items = source.fetch_and_read(day("01-03"))
    assert kinds(items) == {"a.md": "deleted", "b.md": "deleted", "c.md": "live"}
    assert items["c.md"].metadata["previous_path"] == "b.md"
    assert (items["a.md"].day, items["b.md"].day) == (day("01-03"), day("01-04"))


def test_an_old_path_that_is_used_again_is_alive(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": TEXT})
    repository.move("a.md", "b.md")
    repository.commit("2024-01-03")
    repository.commit("2024-01-04", {"a.md": "another"})
    items = source.fetch_and_read()
    assert (items["a.md"].content, items["b.md"].content) == (b"another", TEXT.encode())
    repository.move("b.md", "c.md")
    repository.commit("2024-01-05")
    repository.move("c.md", "b.md")
    repository.commit("2024-01-06")
    assert kinds(source.fetch_and_read()) == {"a.md": "live", "b.md": "live", "c.md": "deleted"}


def test_a_rename_to_another_kind_leaves_a_tombstone_of_the_old_kind(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": TEXT, "b.bin": TEXT, "c.py": TEXT + "c"})
    repository.move("a.md", "a.py")
    repository.move("b.bin", "b.md")
    repository.move("c.py", "c.bin")
    repository.commit("2024-01-03")
    items = source.fetch_and_read(day("01-03"))
    assert kinds(items) == {"a.md": "deleted", "a.py": "live", "b.md": "live", "c.py": "deleted"}
    assert [items[path].source_type for path in ("a.md", "a.py", "b.md", "c.py")] == ["docs", "code", "docs", "code"]
    assert items["a.py"].source_id == "project:a.py"


def test_case_renames_are_two_paths(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"Readme.md": TEXT})
    repository.git("mv", "Readme.md", "README.md")
    repository.commit("2024-01-03")
    assert kinds(source.fetch_and_read()) == {"Readme.md": "deleted", "README.md": "live"}


def test_files_links_and_folders_that_take_each_others_place(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"link.md": "text", "file.md": "text", "folder.md/in.md": "text", "t.md": "target"})
    for name in ("link.md", "file.md", "folder.md/in.md"):
        (repository.path / name).unlink()
    (repository.path / "link.md").symlink_to("t.md")
    (repository.path / "folder.md").rmdir()
    repository.commit("2024-01-03", {"file.md/in.md": "inside", "folder.md": "now a file"})
    items = source.fetch_and_read()
    assert kinds(items) == {
        "link.md": "symlink", "file.md": "deleted", "file.md/in.md": "live", "folder.md": "live",
        "folder.md/in.md": "deleted", "t.md": "live",
    }  # fmt: skip
    (repository.path / "link.md").unlink()
    repository.commit("2024-01-04", {"link.md": "a file again"})
    assert source.fetch_and_read(day("01-04"))["link.md"].content == b"a file again"


def test_submodules_are_skipped_and_mode_changes_are_changes(repository: GitRepository, source: Source) -> None:
    first = repository.commit("2024-01-02", {"run.sh": "echo\n"})
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{first},module.md")
    repository.git("update-index", "--chmod=+x", "run.sh")
    repository.git("commit", "--quiet", "-m", "modes", at="2024-01-03")
    items = source.fetch_and_read(day("01-03"))
    assert kinds(items) == {"module.md": "submodule", "run.sh": "live"}
    assert source.report.skipped == {"submodule": 1}


@pytest.mark.parametrize(
    "name", ["new\nline.md", "tab\t.md", 'quo"te.md', "ünï 文.md", "-n.md", ":colon.md", "a#b?c%20.md", " .md"]
)
def test_any_path_is_read(repository: GitRepository, source: Source, name: str) -> None:
    repository.commit("2024-01-02", {name: TEXT})
    repository.git("mv", "--", f"./{name}", f"./x{name}")
    repository.commit("2024-01-03", {"other.md": "o"})
    items = source.fetch_and_read()
    assert kinds(items) == {name: "deleted", f"x{name}": "live", "other.md": "live"}
    assert items[f"x{name}"].metadata["previous_path"] == name


def test_a_path_that_is_not_utf8_has_a_readable_name_and_an_exact_link(
    repository: GitRepository, source: Source
) -> None:
    repository.commit("2024-01-02", {b"caf\xe9.md".decode("utf-8", "surrogateescape"): "x"})
    source.options = {"web_url": "https://github.com/acme/project"}
    items = source.fetch_and_read()
    item = items["caf\\xe9.md"]
    assert str(item.url).endswith("/caf%E9.md") and item.source_id == "project:caf\\xe9.md"
    item.source_id.encode()


def test_a_merge_is_what_it_changed_on_the_branch(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": "a"})
    for name in ("x", "y"):
        repository.git("switch", "--quiet", "-c", name, "main")
        repository.commit("2024-01-03", {f"{name}.md": name})
    repository.git("switch", "--quiet", "main")
    repository.commit("2024-01-04", {"main.md": "m"})
    repository.git("merge", "--quiet", "-m", "octopus", "x", "y", at="2024-01-06")
    items = source.fetch_and_read()
    assert {path: item.day for path, item in items.items()} == {
        "a.md": day("01-02"), "main.md": day("01-04"), "x.md": day("01-06"), "y.md": day("01-06"),
    }  # fmt: skip
    assert source.fetch_and_read(last=day("01-05")).keys() == {"a.md", "main.md"}


def test_dates_never_run_backwards_and_wild_ones_move_nothing(repository: GitRepository, source: Source) -> None:
    repository.commit("1974-01-01", {"epoch.md": "e"})
    repository.commit("2024-01-05", {"a.md": "a"})
    repository.commit("2024-01-03", {"earlier.md": "e"})
    repository.commit("2090-01-01", {"future.md": "f"})
    repository.commit("2024-01-09", {"b.md": "b"})
    repository.commit(datetime(2024, 3, 1, 20, tzinfo=UTC), {"soon.md": "s"})
    items = source.fetch_and_read()
    assert {path: item.day for path, item in items.items()} == {
        "epoch.md": day("01-01"), "a.md": day("01-05"), "earlier.md": day("01-05"), "future.md": day("01-05"),
        "b.md": day("01-09"), "soon.md": NOW.date(),
    }  # fmt: skip
    assert items["soon.md"].source_updated_at == NOW


@pytest.mark.parametrize("date", ["-1", "-2", str(2**64 - 1)])
def test_a_date_before_1970_ends_no_fetch(repository: GitRepository, source: Source, date: str) -> None:
    tree_of = repository.commit("2024-01-02", {"a.md": "one"})
    signed = f"A <a@example.org> {date} +0000"
    tree = repository.git("rev-parse", f"{tree_of}^{{tree}}").strip()
    odd = repository.path / ".git" / "odd"
    odd.write_text(f"tree {tree}\nparent {tree_of}\nauthor {signed}\ncommitter {signed}\n\nodd\n")
    commit = repository.git("hash-object", "-t", "commit", "-w", "--literally", str(odd)).strip()
    repository.git("update-ref", "HEAD", commit)
    assert source.fetch_and_read()["a.md"].content == b"one"


def test_commits_of_one_second_and_empty_commits(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": "1"})
    repository.commit("2024-01-02", {"a.md": "2"})
    repository.commit("2024-01-02", {"a.md": "3"})
    empty = repository.commit("2024-01-05")
    assert source.fetch_and_read()["a.md"].content == b"3"
    assert source.read(day("01-05")) == []
    window = source.window(day("01-05"))
    assert window is not None and window.end == empty


def test_an_abandoned_history_with_another_root(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.md": "a", "b.md": "b"})
    source.fetch()
    repository.git("switch", "--quiet", "--orphan", "other")
    repository.commit("2024-01-03", {"c.md": "c"})
    repository.git("branch", "-f", "main", "other")
    repository.git("switch", "--quiet", "main")
    source.now = NOW.replace(day=2)
    items = source.fetch_and_read()
    assert kinds(items) == {"a.md": "deleted", "b.md": "deleted", "c.md": "live"}
    assert items["a.md"].day == items["c.md"].day == source.now.date()


def test_many_files_need_no_more_processes(
    repository: GitRepository, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    started = []
    popen = subprocess.Popen

    class Counting(popen):  # type: ignore[type-arg,misc,valid-type]
        def __init__(self, args: list[str], **options: object) -> None:
            started.append(args)
            super().__init__(args, **options)

    counts = []
    for round_, files in enumerate((3, 600)):
        repository.commit(f"2024-01-0{2 + round_}", {f"{round_}/{n}.md": f"text {n}" for n in range(files)})
        source.fetch()
        monkeypatch.setattr(subprocess, "Popen", Counting)
        started.clear()
        assert len(source.read(day(f"01-0{2 + round_}"))) == files
        counts.append(len(started))
        monkeypatch.setattr(subprocess, "Popen", popen)
    assert counts[0] == counts[1] <= 6
