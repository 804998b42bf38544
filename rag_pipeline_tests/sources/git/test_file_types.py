"""Every text file has a type, the settings can say another, and a change of them reaches the files it names."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from rag_pipeline.documents import clean
from rag_pipeline.settings import FileType, GitLimits
from rag_pipeline.sources.git.file_kinds import FileKind, kind_by_content, kind_of, skip_by_content
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.sources.git.reading import Source
from rag_pipeline_tests.sources.git.test_stage import Raw

PROSE = ("A sentence of a paragraph that stands on one line, as many editors write them. " * 60).encode()
DOCS = FileKind(source_type="docs", language="markdown")
CODE = FileKind(source_type="code", language="javascript")


@pytest.mark.parametrize(
    ("paths", "kind"),
    [
        ("a.qmd b.Rmd c.mkd d.mdown e.MARKDOWN", "docs markdown"),
        ("guide.asc", "docs asciidoc"),
        ("notes.org TODO.ORG", "docs org"),
        ("HACKING NOTICE INSTALL CHANGES AUTHORS MAINTAINERS TODO README.ja README.zh_CN INSTALL.windows", "docs text"),
        ("a.textile", "docs textile"),
        ("app.properties messages_de.PROPERTIES", "code properties"),
        ("run.bat setup.CMD", "code batch"),
        ("Token.sol", "code solidity"),
        ("a.fs b.fsx c.fsi", "code fsharp"),
        ("Form.vb", "code visual-basic"),
        ("solver.f90 solver.F90 old.f", "code fortran"),
        ("kernel.cu kernel.cuh", "code cuda"),
        ("top.v", "code verilog"),
        ("top.sv", "code systemverilog"),
        ("App.vue", "code vue"),
        ("App.svelte", "code svelte"),
        ("CODEOWNERS .github/CODEOWNERS", "code codeowners"),
        ("Dockerfile.dev prod.dockerfile Containerfile", "code dockerfile"),
        ("Makefile.am rules.mk GNUmakefile", "code make"),
        ("config.yaml.example values.yml.tmpl", "code yaml"),
        (".env.example nginx.conf .editorconfig", "code ini"),
        ("go.mod", "code go-module"),
        ("BUILD WORKSPACE BUILD.bazel", "code starlark"),
        ("meson.build", "code meson"),
        ("build.gradle.kts", "code kotlin"),
    ],
)
def test_text_files_of_many_kinds_are_indexed(paths: str, kind: str) -> None:
    for path in paths.split():
        found = kind_of(path)
        assert found is not None, path
        assert f"{found.source_type} {found.language}" == kind, path


@pytest.mark.parametrize("path", ["LICENSE", "COPYING", "a.png", "README.png", "a.lock", "a.bin", "a.so"])
def test_what_is_no_knowledge_has_no_type(path: str) -> None:
    assert kind_of(path) is None


@pytest.mark.parametrize(
    ("path", "content", "language"),
    [
        ("a.v", b"Require Import Arith.\nTheorem a : True.\nProof. auto. Qed.\n", "coq"),
        ("a.v", b"// top\nmodule top(input clk);\nendmodule\n", "verilog"),
        ("a.v", b"module main\n\nfn main() {\n}\n", "v"),
        ("a.m", b"function y = f(x)\n  y = x;\nend\n", "matlab"),
        ("a.m", b"#import <Foundation/Foundation.h>\n@implementation A\n", "objective-c"),
        ("a.py", b"module main\n", "python"),
    ],
)
def test_the_content_tells_languages_of_one_ending_apart(path: str, content: bytes, language: str) -> None:
    kind = kind_of(path)
    assert kind is not None
    assert kind_by_content(kind, path, content).language == language


@pytest.mark.parametrize(
    ("kind", "content", "reason"),
    [
        (DOCS, PROSE, None),
        (DOCS, "这是一段没有空格的长文字，用来说明一行也可以很长。".encode() * 100, None),
        (FileKind(source_type="docs", language="text"), b"# T\n" + PROSE, None),
        (DOCS, b"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3ODkw" * 200, "minified"),
        (CODE, b"<feed><p>" + "дорогая редакция, ".encode("koi8-r") * 300 + b"</p></feed>", None),
        (CODE, b"var a=1,b=function(c){return c+1};" * 200, "minified"),
        (DOCS, b"A page with\0 one NUL in it is a page.\n", None),
        (DOCS, "Straße und\0 Größe sind Wörter.\n".encode("latin-1") * 3, None),
        (CODE, "print('größe')\n".encode("utf-16-le"), None),
        (CODE, b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01\0\0\0" * 20, "binary"),
        (DOCS, bytes(range(256)) * 40, "binary"),
        (DOCS, b"-----BEGIN PGP SIGNATURE-----\n\niQIzBAAB\n", "signature or key"),
    ],
)
def test_prose_and_slips_are_text_and_data_is_not(kind: FileKind, content: bytes, reason: str | None) -> None:
    assert skip_by_content(content, kind=kind, generated=None, limits=GitLimits()) == reason


def types(**named: dict[str, str]) -> GitLimits:
    return GitLimits.model_validate({"file_types": {name.replace("_", "."): value for name, value in named.items()}})


def test_the_settings_map_endings_and_names() -> None:
    chosen = GitLimits.model_validate(
        {
            "file_types": {
                ".foo": {"kind": "docs", "language": "markdown"},
                ".Page.Html": {"kind": "code", "language": "jinja"},
                "Runfile": {"kind": "code", "language": "bash"},
                ".txt": {"kind": "none"},
            }
        }
    ).file_types
    assert kind_of("a/B.FOO", chosen) == FileKind(source_type="docs", language="markdown")
    assert kind_of("x.page.html", chosen) == FileKind(source_type="code", language="jinja")
    assert kind_of("x.html", chosen) == FileKind(source_type="docs", language="html")
    assert kind_of("runfile", chosen) == FileKind(source_type="code", language="bash")
    assert kind_of("notes.txt", chosen) is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("*.foo", {"kind": "docs"}, "is no ending and no name"),
        ("docs/a", {"kind": "docs"}, "is no ending and no name"),
        ("", {"kind": "docs"}, "is no ending and no name"),
        (".foo", {"kind": "prose"}, "'docs', 'code' or 'none'"),
        (".foo", {"kind": "docs", "language": "markdwn"}, "choose from asciidoc, html, markdown"),
        (".foo", {"kind": "code", "language": "C Sharp"}, "is no language"),
        (".foo", {"kind": "none", "language": "text"}, "leave `language` out"),
        (".foo", {"kind": "docs", "lang": "text"}, "Extra inputs"),
    ],
)
def test_a_wrong_type_is_refused_with_a_reason(name: str, value: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        GitLimits.model_validate({"file_types": {name: value}})


def test_the_same_ending_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match="is there twice"):
        GitLimits.model_validate({"file_types": {".foo": {"kind": "docs"}, ".FOO": {"kind": "none"}}})


def with_types(raw: Raw, chosen: dict[str, FileType]) -> None:
    limits = raw.settings.git.model_copy(update={"file_types": chosen})
    raw.settings = raw.settings.model_copy(update={"git": limits})


@pytest.fixture
def raw(tmp_path: Path, repository: GitRepository) -> Raw:
    repository.commit("2024-01-02", {"a.foo": "# A\n", "b.txt": "b", "kept.md": "k"})
    repository.commit("2024-01-04", {"c.txt": "c"})
    return Raw(tmp_path / "home", repository.path)


def living(raw: Raw, *days: str) -> set[tuple[str, str | None]]:
    """What an index would hold: of each item the newest state."""
    newest: dict[tuple[str, str | None], tuple[tuple[datetime, datetime], bool]] = {}
    for day in days:
        for stage in ("raw_docs", "raw_code"):
            for item in raw.items(stage, day).values():
                key = (item.source_type, item.path)
                age = (item.source_updated_at, item.observed_at)
                newest[key] = max(newest.get(key, (age, item.deleted)), (age, item.deleted))
    return {key for key, (_, deleted) in newest.items() if not deleted}


def test_changed_types_take_files_in_out_and_over(raw: Raw) -> None:
    days = ("01-02", "01-04")
    raw.run()
    assert living(raw, *days) == {("docs", "b.txt"), ("docs", "kept.md"), ("docs", "c.txt")}
    with_types(raw, {".foo": FileType(kind="docs", language="markdown"), ".txt": FileType(kind="code", language="ini")})
    raw.run()
    assert living(raw, *days) == {("docs", "a.foo"), ("docs", "kept.md"), ("code", "b.txt"), ("code", "c.txt")}
    assert raw.items("raw_docs", "01-02")["b.txt"].metadata["tombstone_reason"] == "of another type now"
    assert raw.items("raw_docs", "01-02")["a.foo"].language == "markdown"
    before = raw.files()
    assert raw.run().written_parts == 0
    assert raw.files() == before
    with_types(raw, {".txt": FileType(kind="none")})
    report = raw.run()
    assert living(raw, *days) == {("docs", "kept.md")}
    assert report.repositories[0].git.skipped["excluded by configuration"] == 2
    assert raw.items("raw_code", "01-04")["c.txt"].deleted
    before = raw.files()
    assert raw.run().written_parts == 0
    assert raw.files() == before


def test_a_file_that_changed_meanwhile_leaves_nothing_of_its_former_type(raw: Raw, repository: GitRepository) -> None:
    raw.run()
    repository.commit("2024-01-06", {"c.txt": "c2"})
    with_types(raw, {".txt": FileType(kind="code", language="ini")})
    raw.run()
    assert living(raw, "01-02", "01-04", "01-06") == {("docs", "kept.md"), ("code", "b.txt"), ("code", "c.txt")}


def test_docs_of_a_chosen_language_are_cleaned_as_such(repository: GitRepository, source: Source) -> None:
    repository.commit("2024-01-02", {"a.foo": "# Title\n\n<!-- gone -->Words\n"})
    source.limits = types(_foo={"kind": "docs", "language": "markdown"})
    document = clean(source.fetch_and_read()["a.foo"])
    assert (document.title, document.markup) == ("Title", "markdown")
    assert "gone" not in document.text


def test_a_working_tree_encoding_is_believed_of_bytes_that_are_not_utf8(
    repository: GitRepository, source: Source
) -> None:
    text = "Ναι, αυτό είναι.\n"
    repository.commit("2024-01-02", {"raw.txt": text.encode("cp1253"), "other.txt": text.encode()})
    (repository.path / ".gitattributes").write_text("*.txt working-tree-encoding=windows-1253\n")
    repository.git("add", ".gitattributes")  # all others are left as they are in the repository
    repository.git("commit", "--quiet", "--message", "encoding", at="2024-01-03")
    items = source.fetch_and_read()
    assert items["raw.txt"].metadata["declared_encoding"] == "windows-1253"
    for path, encoding in (("raw.txt", "cp1253"), ("other.txt", None)):
        document = clean(items[path])
        assert document.text == text
        assert document.metadata.get("encoding") == encoding
