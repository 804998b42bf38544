"""Configuration without code: every fault at once with its line, what is in force and why, and a schema for editors."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from pydantic import BaseModel
from typer.testing import CliRunner

from rag_pipeline.cli.app import app
from rag_pipeline.cli.config_values import shown_values
from rag_pipeline.cli.config_warnings import warnings_of
from rag_pipeline.definitions import REFRESH_JOB, build_defs
from rag_pipeline.embedding import bfloat16
from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import load_settings
from rag_pipeline.settings.check import CheckedFile, check_file
from rag_pipeline.settings.positions import lines_of
from rag_pipeline.settings.schema import field_docstrings, json_schema
from rag_pipeline_tests.git_repository import GitRepository

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "docs" / "configuration.md", ROOT / "docs" / "extending.md"]


def checked(folder: Path, text: str, **environ: str) -> CheckedFile:
    (folder / "rag_pipeline.toml").write_text(text, encoding="utf-8")
    return check_file(config_file=None, environ=environ, cwd=folder)


def found(folder: Path, text: str, **environ: str) -> list[tuple[int | None, str]]:
    return [(problem.line, problem.key) for problem in checked(folder, text, **environ).problems]


FAULTY = """tennant = "a"
home = "x"

[[repositories]]
source = "a/b"

[[repositories]]
source = "c/d"
token = "ghp_hunter2"
start_date = "soon"

[chunking]
max_tokens = 3

[embedding]
provider = "opnai"
batch_texts = 0
"""


def test_every_fault_is_found_at_once_with_its_line(tmp_path):
    assert found(tmp_path, FAULTY) == [
        (2, "home"), (10, "repositories.1.start_date"), (9, "repositories.1.token"), (13, "chunking.max_tokens"),
        (16, "embedding.provider"), (17, "embedding.batch_texts"), (1, "tennant"),
    ]  # fmt: skip
    file = checked(tmp_path, FAULTY)
    assert "hunter2" not in "".join(map(str, file.problems))
    # What is right is still there, for the rest of the check.
    assert [repository.name for repository in file.settings.repositories] == ["a/b", "c/d"]


def test_what_a_fault_hides_comes_to_light_and_what_follows_from_it_does_not(tmp_path):
    twice = "tennant = 1\n[[repositories]]\nsource = 'x/a'\nname = 'n'\n[[repositories]]\nsource = 'y/a'\nname = 'n'\n"
    assert [key for _, key in found(tmp_path, twice)] == ["tennant", "the file"]
    assert found(tmp_path, "[chunking]\nmax_tokens = 3\nmin_tokens = 80\n") == [(2, "chunking.max_tokens")]
    assert found(tmp_path, "[[repositories]]\nname = 'x'\n") == [(1, "repositories.0")]


def test_what_is_not_toml_is_one_problem_on_its_line(tmp_path):
    (problem,) = checked(tmp_path, "a = 1\nb = \n").problems
    assert (problem.line, problem.severity) == (2, "error")
    assert "not valid TOML" in problem.message


KEYS = st.text(alphabet="abcä .\"'\\-_1", min_size=1, max_size=6)
VALUES = st.recursive(
    st.integers() | st.text(alphabet="ab[]={}\n", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@hypothesis.settings(deadline=None)
@given(tables=st.lists(st.tuples(KEYS, st.dictionaries(KEYS, VALUES, max_size=3)), min_size=1, max_size=4))
def test_every_key_of_any_file_has_the_line_it_stands_on(tables):
    lines, wanted = [], {}
    numbers: dict[str, int] = {}
    for name, table in tables:
        numbers[name] = numbers.get(name, -1) + 1
        lines.append(f"[[{json.dumps(name, ensure_ascii=False)}]] # [not]")
        wanted[name, numbers[name]] = len(lines)
        for key, value in table.items():
            lines.append(f"{json.dumps(key, ensure_ascii=False)} = {_toml(value)}")
            wanted[name, numbers[name], key] = len(lines)
    text = "\n".join(lines)
    assert tomllib.loads(text)
    positions = lines_of(text)
    assert {place: positions.get(place) for place in wanted} == wanted


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def warned(folder: Path, text: str, **environ: str) -> dict[str, str]:
    (folder / "rag_pipeline.toml").write_text(text, encoding="utf-8")
    settings = load_settings(environ=environ, cwd=folder)
    return {doubt.key: doubt.message for doubt in warnings_of(settings, environ=environ, online=False)}


def test_a_local_model_that_does_not_run_on_this_machine_is_a_warning(tmp_path, monkeypatch):
    text = '[embedding]\nmodel = "all-MiniLM-L6-v2-int8"\n'
    monkeypatch.setattr(bfloat16, "multiplies_int8", lambda: False)
    assert "needs Linux on a processor with" in warned(tmp_path, text)["embedding.model"]
    monkeypatch.setattr(bfloat16, "multiplies_int8", lambda: True)
    assert "embedding.model" not in warned(tmp_path, text)


def test_what_would_only_show_at_use_is_a_warning(tmp_path):
    made = GitRepository(tmp_path / "here")
    made.commit("2024-01-02T10:00", {"docs/a.md": "# A\n"})
    doubts = warned(
        tmp_path,
        """tenant = "Acme"
[[repositories]]
source = "missing/"
tenant = "acme"
token_env = "NOT_THERE"
[[repositories]]
source = "here"
exclude = ["docs/", "doc/", "!"]
[[repositories]]
github = "a/b"
[embedding]
provider = "openai"
[evaluation]
labels = ["*.jsonl"]
legs = ["reranked"]
""",
    )
    assert set(doubts) == {
        "repositories.0.source", "repositories.0.tenant", "repositories.0.token_env", "repositories.1.exclude.1",
        "repositories.1.exclude.2", "github.token_env", "embedding.api_key_env", "embedding.price_per_million_tokens",
        "evaluation.labels.0", "evaluation.legs",
    }  # fmt: skip
    assert "differ by case only" in doubts["repositories.0.tenant"]
    assert "does not exist" in doubts["repositories.0.source"]


def test_putting_it_right_silences_every_warning(tmp_path):
    made = GitRepository(tmp_path / "here")
    made.commit("2024-01-02T10:00", {"docs/a.md": "# A\n"})
    (tmp_path / "own.jsonl").write_text("", encoding="utf-8")
    text = """[[repositories]]
source = "here"
exclude = ["docs/"]
github = "a/b"
[embedding]
provider = "openai"
price_per_million_tokens = 0.02
[evaluation]
labels = ["*.jsonl"]
"""
    assert warned(tmp_path, text, OPENAI_API_KEY="x", GITHUB_TOKEN="y") == {}


def test_the_command_says_all_and_fails_on_errors_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAG_CONFIG", raising=False)
    (tmp_path / "bad.toml").write_text(FAULTY, encoding="utf-8")
    (tmp_path / "fine.toml").write_text("[evaluation]\nlabels = ['none.jsonl']\n[[sources.x]]\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["config", "check", "bad.toml"])
    assert done.exit_code == 1
    assert f"{tmp_path / 'bad.toml'}:16: error: embedding.provider: Input should be 'local'" in done.stdout
    done = CliRunner().invoke(app, ["config", "check", "--json", "fine.toml"])
    assert done.exit_code == 1
    assert [(p["line"], p["key"], p["severity"]) for p in json.loads(done.stdout)] == [
        (3, "sources.x", "error"), (2, "evaluation.labels.0", "warning"),
    ]  # fmt: skip
    (tmp_path / "fine.toml").write_text("[evaluation]\nlabels = ['none.jsonl']\n", encoding="utf-8")
    assert CliRunner().invoke(app, ["config", "check", "fine.toml"]).exit_code == 0


def test_values_in_force_say_where_they_come_from_and_keep_secrets(tmp_path):
    text = "tenant = 'acme'\n[[repositories]]\nsource = 'a/b'\n[sources]\nx = [{name = 'n'}]\n"
    (tmp_path / "rag_pipeline.toml").write_text(text, encoding="utf-8")
    environ = {
        "DATABASE_URL": "postgresql://ada:hunter2@db/rag", "RAG_LAKE": "s3://hunter2:x@bucket/lake",
        "GITHUB_TOKEN": "hunter2",
    }  # fmt: skip
    settings = load_settings(environ=environ, cwd=tmp_path)
    values = {v.key: v for v in shown_values(settings, environ=environ, defaults=True)}
    assert "hunter2" not in repr(values)
    assert values["tenant"].origin == "rag_pipeline.toml:1"
    assert values["repositories.0.tenant"].origin == "derived"
    assert (values["sources.x.0.name"].value, values["sources.x.0.name"].origin) == ("n", "rag_pipeline.toml:5")
    assert values["chunking.max_tokens"].origin == "default"
    assert (values["github.token_env"].value, values["github.token_env"].is_set) == ("GITHUB_TOKEN", True)
    assert values["embedding.api_key_env"].is_set is False
    assert (values["database"].value, values["database"].origin) == ("db/rag", "DATABASE_URL")
    few = {v.key for v in shown_values(settings, environ=environ, defaults=False)}
    assert few == {"database", "lake", "tenant", "repositories.0.source", "repositories.0.name",
                   "repositories.0.tenant", "sources.x.0.name"}  # fmt: skip


def test_one_repository_named_for_this_process_comes_in_place_of_every_source(tmp_path):
    text = "[[repositories]]\nsource = 'a/b'\n[[sources.feeds]]\nname = 'n'\n"
    (tmp_path / "rag_pipeline.toml").write_text(text, encoding="utf-8")
    assert load_settings(environ={}, cwd=tmp_path).sources == {"feeds": ({"name": "n"},)}
    named = load_settings(environ={"RAG_REPO": "c/d"}, cwd=tmp_path)
    assert ([repository.name for repository in named.repositories], named.sources) == (["c/d"], {})
    values = {v.key: v.origin for v in shown_values(named, environ={"RAG_REPO": "c/d"}, defaults=False)}
    assert values["repositories.0.source"] == "RAG_REPO"


def test_the_schema_in_the_repository_is_that_of_the_settings():
    written = (ROOT / "docs" / "rag_pipeline.schema.json").read_text(encoding="utf-8")
    assert json.loads(written) == json.loads(json.dumps(json_schema({}), default=str)), "run `make schema`"


def test_the_schema_says_what_keys_mean_and_refuses_what_the_settings_refuse():
    schema = json_schema({})
    Draft7Validator.check_schema(schema)
    assert schema["$defs"]["Chunking"]["properties"]["overlap_tokens"]["description"].startswith("So much of the end")
    assert "home" not in schema["properties"]
    for wrong in ({"tennant": "a"}, {"chunking": {"max_tokens": 3}}, {"embedding": {"provider": "opnai"}}):
        assert not Draft7Validator(schema).is_valid(wrong)


class Base(BaseModel):
    """A model."""

    one: int = 1
    """Of the
    base."""


class Derived(Base):
    two: int = 2
    """Of its own."""
    three: int = 3


def test_descriptions_are_the_texts_under_the_fields_also_of_a_kind_of_source():
    assert field_docstrings(Derived) == {"one": "Of the base.", "two": "Of its own."}
    schema = json_schema({"feeds": Derived})
    blocks = schema["properties"]["sources"]["properties"]["feeds"]
    assert blocks["items"]["$ref"] == "#/$defs/sources.feeds"
    assert schema["$defs"]["sources.feeds"]["properties"]["two"]["description"] == "Of its own."


def examples() -> list[Any]:
    blocks = [
        pytest.param(text, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, text in enumerate(re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.M | re.S))
        if "[project" not in text
    ]
    return [*blocks, pytest.param((ROOT / "rag_pipeline.toml").read_text("utf-8"), id="rag_pipeline.toml")]


@pytest.mark.parametrize("text", examples())
def test_every_example_is_valid_for_the_schema_and_for_the_settings(tmp_path, text):
    values = json.loads(json.dumps(tomllib.loads(text), default=date.isoformat))
    assert [error.message for error in Draft7Validator(json_schema({})).iter_errors(values)] == []
    assert checked(tmp_path, text).problems == []


def test_a_new_line_in_the_file_is_seen_at_the_next_load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("RAG_CONFIG", "RAG_REPO"):
        monkeypatch.delenv(name, raising=False)

    def load(text: str) -> tuple[set[str], str]:
        """What Dagster sees: the assets of the refresh job, and the first partition."""
        (tmp_path / "rag_pipeline.toml").write_text(text, encoding="utf-8")
        graph = build_defs(load_settings()).resolve_job_def(REFRESH_JOB).asset_layer
        names = {key.to_user_string() for key in graph.executable_asset_keys}
        return names, graph.asset_graph.get(dg.AssetKey("documents")).partitions_def.get_first_partition_key()

    names, first = load("start_date = 2024-01-01\n[[repositories]]\nsource = 'a/b'\n")
    assert ("raw_docs" in names, "raw_github_issues" in names, first) == (True, False, "2024-01-01")
    names, first = load("start_date = 2020-02-02\n[[repositories]]\nsource = 'a/b'\ngithub = 'a/b'\n")
    assert ("raw_docs" in names, "raw_github_issues" in names, first) == (True, True, "2020-02-02")
    with pytest.raises(ConfigError, match=r"sources\.nothing: unknown kind of source: none is installed"):
        load("[[sources.nothing]]\nname = 'x'\n")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("a = " + "[" * 900 + "]" * 900, "is nested too deeply"),
        ('[[repositories]]\nsource = "~no-such-user-here/code"', "is not a path, a URL or owner/name"),
        ('[[repositories]]\nsource = "a\\u0000b"', "is not a path, a URL or owner/name"),
        (f'[[repositories]]\nsource = "{"x" * 5000}"', "is not a path, a URL or owner/name"),
    ],
)
def test_what_no_file_should_say_is_refused_in_words(tmp_path: Path, written: str, reason: str) -> None:
    path = tmp_path / "rag_pipeline.toml"
    path.write_text(written)
    with pytest.raises(ConfigError, match=reason) as raised:
        load_settings(config_file=path, environ={}, cwd=tmp_path)
    assert str(path) in str(raised.value)
