"""What `.gitattributes` takes out of the index and brings into it, and when."""

from __future__ import annotations

from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.sources.git.reading import Index, Source, day


def reasons(source: Source) -> dict[str, object]:
    items = source.fetch_and_read()
    return {path: item.metadata.get("tombstone_reason", "live") for path, item in items.items()}


def test_attributes_have_the_last_word_over_our_patterns(repository: GitRepository, source: Source) -> None:
    rules = (
        "made/* linguist-generated\nvendor/ours/** linguist-vendored=false\npoetry.lock.toml linguist-generated=true\n"
    )
    repository.commit("2024-01-02", {
        ".gitattributes": rules, "made/a.py": "x", "kept.py": "x", "vendor/ours/a.py": "x", "vendor/theirs/a.py": "x",
        "api_pb2.py": "x", "sub/.gitattributes": "api_pb2.py -linguist-generated\nfixtures/** linguist-vendored\n",
        "sub/api_pb2.py": "x", "sub/fixtures/f.md": "x", "poetry.lock.toml": "x",
    })  # fmt: skip
    assert reasons(source) == {
        "made/a.py": "generated", "kept.py": "live", "vendor/ours/a.py": "live", "vendor/theirs/a.py": "vendored",
        "api_pb2.py": "generated", "sub/api_pb2.py": "live", "sub/fixtures/f.md": "vendored",
        "poetry.lock.toml": "generated",
    }  # fmt: skip
    assert source.report.skipped == {"generated": 3, "vendored": 2, "unsupported file type": 2}


def test_a_changed_rule_brings_unchanged_files_out_and_in(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"made/a.py": "x", "b.py": "y"})
    repository.commit("2024-01-03", {".gitattributes": "made/* linguist-generated\n"})
    repository.commit("2024-01-05", {".gitattributes": "b.py linguist-vendored\n"})
    source.fetch()
    index = Index(source=source)
    index.run(day("01-01"), day("01-02"))
    assert set(index.live()) == {"made/a.py", "b.py"}
    index.run(day("01-03"), day("01-04"))
    assert set(index.live()) == {"b.py"}
    index.run(day("01-05"), day("01-05"))
    assert set(index.live()) == {"made/a.py"}
    assert index.held["made/a.py"].day == day("01-05")


def test_an_older_window_read_later_does_not_undo_a_rule(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"made/a.py": "x"})
    repository.commit("2024-01-03", {".gitattributes": "made/* linguist-generated\n"})
    source.fetch()
    index = Index(source=source)
    index.run(day("01-01"), day("01-05"))
    index.run(day("01-01"), day("01-02"))
    assert index.live() == {}
    assert index.held["made/a.py"].day == day("01-03")


def test_a_macro_is_followed_though_its_users_do_not_name_linguist(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {".gitattributes": "[attr]made linguist-generated\n", "sub/a.py": "x", "b.py": "x"})
    repository.commit("2024-01-03", {"sub/.gitattributes": "*.py made\n"})
    assert reasons(source)["sub/a.py"] == "generated"
    assert set(source.fetch_and_read(day("01-03"))) == {"sub/a.py"}


def test_a_rewrite_that_changes_rules_changes_what_they_name(repository: GitRepository, source: Source) -> None:
    base = repository.commit("2024-01-02", {"made/a.py": "x"})
    repository.commit("2024-01-03", {".gitattributes": "made/* linguist-generated\n"})
    source.fetch()
    repository.git("reset", "--quiet", "--hard", base)
    source.now = source.now.replace(day=5)
    source.fetch()
    (item,) = source.read(source.now.date())
    assert item.path == "made/a.py" and not item.deleted


def test_many_attribute_files_need_no_more_processes(repository: GitRepository, source: Source, monkeypatch) -> None:
    from rag_pipeline.sources.git.mirror import Mirror

    calls: list[tuple[str, ...]] = []
    run = Mirror.run
    monkeypatch.setattr(Mirror, "run", lambda self, *args, **kw: calls.append(args) or run(self, *args, **kw))
    files = {f"{n}/.gitattributes": "a.py linguist-generated\n" for n in range(100)}
    repository.commit("2024-01-02", {**files, "1/a.py": "x", "1/b.py": "x"})
    assert reasons(source) == {"1/a.py": "generated", "1/b.py": "live"}
    assert len(calls) <= 4


def test_folders_may_be_called_as_magic_words_of_git(repository: GitRepository, source: Source) -> None:
    paths = [":(x)/a.md", ":!x/a.md", ":^x/a.md", "plain/a.md"]
    repository.commit("2024-01-02", dict.fromkeys(paths, "x"))
    assert reasons(source) == dict.fromkeys(paths, "live")
