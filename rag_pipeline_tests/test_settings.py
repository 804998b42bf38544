"""Settings: what the file and the environment may say, what is refused and how, and that every key is documented."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import (
    Limits,
    Settings,
    fingerprint,
    load_settings,
    price_of,
    repository_name,
    resolve_source,
)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the file stands; `tmp_path` itself is free for RAG_HOME."""
    made = tmp_path / "project"
    made.mkdir()
    return made


def load(folder: Path, text: str = "", **environ: str) -> Settings:
    (folder / "rag_pipeline.toml").write_text(text, encoding="utf-8")
    return load_settings(environ=environ, cwd=folder)


def refused(folder: Path, text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, **environ)
    message = str(caught.value)
    assert "\n" not in message
    assert "rag_pipeline.toml" in message
    return message


def test_an_empty_file_and_no_file_are_valid(folder):
    settings = load(folder)
    assert (settings.tenant, settings.repositories, settings.embedding.provider) == ("default", (), "local")
    assert settings.config_file == folder / "rag_pipeline.toml"
    (folder / "rag_pipeline.toml").unlink()
    assert load_settings(environ={}, cwd=folder).config_file is None


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("tennant = 'a'", "tennant", "did you mean 'tenant'?"),
        ("[embeding]\nmodel = 'x'", "embeding", "did you mean 'embedding'?"),
        ("[embedding]\napi_key = 'sk-1234'", "embedding.api_key", "did you mean 'api_key_env'?"),
        ("[[repositories]]\nsource = '.'\ntoken = 'ghp_1234'", "repositories.0.token", "did you mean 'token_env'?"),
        ("max_tokens = 100", "max_tokens", "did you mean 'chunking.max_tokens'?"),
        ("[embedding]\nmax_file_bytes = 1", "embedding.max_file_bytes", "did you mean 'git.max_file_bytes'?"),
        ("zzz = 1", "zzz", "see docs/configuration.md"),
    ],
)
def test_an_unknown_key_is_one_line_with_what_was_probably_meant(folder, text, key, hint):
    message = refused(folder, text)
    assert f"unknown key {key!r}: " in message
    assert hint in message
    assert "1234" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tenant = 3", "tenant: Input should be a valid string (got '3')"),
        ("tenant = ''", "tenant: String should have at least 1 character"),
        ("start_date = 'yesterday'", "start_date: Input should be a valid date"),
        ("repositories = 'x'", "repositories: "),
        ("[[repositories]]\nname = 'x'", "repositories.0: names nothing to index"),
        ("[[repositories]]\nsource = 7", "repositories.0.source: Input should be a valid string"),
        ("[[repositories]]\nsource = '.'\nname = '../x'", "repositories.0.name: may hold letters, digits"),
        ("[chunking]\nmax_tokens = 1", "chunking.max_tokens: Input should be greater than or equal to 16 (got '1')"),
        ("[chunking]\nmax_tokens = 100\nmin_tokens = 60", "min_tokens must be at most half of max_tokens"),
        ("[embedding]\nprovider = 'opnai'", "embedding.provider: Input should be 'local', 'openai'"),
        ("[quality]\nmax_failure_share = 1.5", "quality.max_failure_share: Input should be less than or equal to 1"),
        ("chunking = 5", "chunking: "),
    ],
)
def test_a_wrong_value_is_one_line_with_its_place(folder, text, said):
    assert said in refused(folder, text)


@pytest.mark.parametrize("text", ["tenant = ", "a = 1\na = 2", "[x\n", b"\xff\xfe"])
def test_what_is_not_toml_is_one_line(folder, text):
    (folder / "rag_pipeline.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=r"rag_pipeline\.toml is not valid TOML: [^\n]*$"):
        load_settings(environ={}, cwd=folder)


@pytest.mark.parametrize("key", ["home", "lake", "database_url", "replica_url", "config_file"])
def test_what_belongs_to_the_environment_is_refused_in_the_file(folder, key):
    message = refused(folder, f"{key} = 'postgresql://ada:hunter2@db/rag'")
    assert "set RAG_HOME, RAG_LAKE, DATABASE_URL or RAG_REPLICA_URL in the environment" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "text",
    [
        "[embedding]\napi_key_env = 'sk-proj-hunter2'",
        "[[repositories]]\nsource = 'a/b'\ntoken_env = 'ghp_hunter2'",
        "[[repositories]]\nsource = 'https://ada:hunter2@github.com/a/b.git'",
        "[[repositories]]\nsource = 'https://hunter2@github.com/a/b.git'",
        "[[repositories]]\nsource = 'ssh://git:hunter2@host/a/b.git'",
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(folder, text):
    message = refused(folder, text)
    assert "hunter2" not in message
    assert "environment variable" in message or "token_env" in message


def test_the_settings_do_not_show_the_database_password(folder):
    settings = load(folder, DATABASE_URL="postgresql://ada:hunter2@db/rag")
    assert settings.database_url == "postgresql://ada:hunter2@db/rag"
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in settings.model_dump_json()


def test_two_repositories_of_one_name_are_refused_within_a_tenant_only(folder):
    text = "[[repositories]]\nsource = 'https://github.com/a/b'\n[[repositories]]\nsource = 'git@gitlab.com:a/b.git'\n"
    message = refused(folder, text)
    assert "are both named 'a/b' for tenant 'default': give one of them another `name`" in message
    assert len(load(folder, text + "name = 'c'").repositories) == 2
    assert len(load(folder, text + "tenant = 'globex'").repositories) == 2


def test_an_empty_name_or_tenant_means_the_default(folder):
    (repository,) = load(
        folder, "tenant = 'acme'\n[[repositories]]\nsource = 'a/b'\nname = ''\ntenant = ''"
    ).repositories
    assert (repository.name, repository.tenant) == ("a/b", "acme")


@pytest.mark.parametrize(
    ("source", "resolved", "name"),
    [
        ("owner/name", "https://github.com/owner/name.git", "owner/name"),
        ("owner/name.py", "https://github.com/owner/name.py.git", "owner/name.py"),
        ("https://github.com/owner/name", "https://github.com/owner/name", "owner/name"),
        ("https://github.com/owner/name.git/", "https://github.com/owner/name.git/", "owner/name"),
        ("https://gitlab.com/a/b/c.git", "https://gitlab.com/a/b/c.git", "a/b/c"),
        ("ssh://git@host:22/a/b.git", "ssh://git@host:22/a/b.git", "a/b"),
        ("git@github.com:owner/name.git", "git@github.com:owner/name.git", "owner/name"),
        ("git@host:~ada/my repo", "git@host:~ada/my repo", "ada/my-repo"),
        ("owner/.github", "https://github.com/owner/.github.git", "owner/github"),
        ("https://host/", "https://host/", "repository"),
    ],
)
def test_a_source_that_is_no_folder_is_a_url_and_named_by_it(tmp_path, source, resolved, name):
    assert resolve_source(source, tmp_path) == resolved
    assert repository_name(resolved) == name


def test_an_existing_folder_comes_before_github(folder):
    (folder / "owner" / "name").mkdir(parents=True)
    (repository,) = load(folder, "[[repositories]]\nsource = 'owner/name'").repositories
    assert (repository.source, repository.name) == (str(folder / "owner" / "name"), "name")


@pytest.mark.parametrize("source", [".", "..", "./missing", "missing", "a/b/c"])
def test_any_other_word_is_a_path_beside_the_file(folder, source):
    (repository,) = load(folder, f"[[repositories]]\nsource = '{source}'").repositories
    assert repository.source == str((folder / source).resolve())


def test_a_file_url_is_named_by_its_folder():
    assert repository_name("file:///srv/git/handbook.git") == "handbook"


def test_the_environment_comes_before_the_file(folder, tmp_path):
    text = "[[repositories]]\nsource = 'a/b'"
    settings = load(
        folder, text, RAG_HOME=str(tmp_path / "home"), RAG_LAKE="s3://bucket/lake", RAG_REPO="c/d",
        DATABASE_URL="postgresql://db/rag",
    )  # fmt: skip
    assert settings.home == tmp_path / "home"
    assert settings.lake_url == "s3://bucket/lake"
    assert [r.name for r in settings.repositories] == ["c/d"]
    assert settings.database_url == "postgresql://db/rag"
    empty = load(folder, text, RAG_HOME="", RAG_LAKE="", RAG_REPO="", DATABASE_URL="", RAG_CONFIG="")
    assert (empty.home, empty.lake_url) == (folder / ".rag", str(folder / ".rag" / "lake"))
    assert [r.name for r in empty.repositories] == ["a/b"]
    assert empty.database_url is None


def test_relative_places_are_made_absolute(folder):
    settings = load(folder, RAG_HOME="data", RAG_LAKE="lake")
    assert (settings.home, settings.lake_url) == (folder / "data", str(folder / "lake"))


def test_a_file_may_be_named_and_must_then_exist(folder, tmp_path):
    named = tmp_path / "other.toml"
    named.write_text("tenant = 'named'\n[[repositories]]\nsource = 'sub'", encoding="utf-8")
    for settings in (
        load_settings(config_file=named, environ={}, cwd=folder),
        load_settings(environ={"RAG_CONFIG": "../other.toml"}, cwd=folder),
    ):
        assert (settings.tenant, settings.repositories[0].source) == ("named", str(tmp_path / "sub"))
        assert settings.home == tmp_path / ".rag"
    with pytest.raises(ConfigError, match=r"missing\.toml does not exist: create it, or name another with --config"):
        load_settings(environ={"RAG_CONFIG": "missing.toml"}, cwd=folder)


def test_without_dates_the_first_day_is_a_week_before_the_first_use_and_stays(folder):
    today = datetime.now(UTC).date()
    settings = load(folder, "[[repositories]]\nsource = 'a/b'")
    assert settings.first_day in {today - timedelta(days=7), datetime.now(UTC).date() - timedelta(days=7)}
    marker = settings.home / "first_use"
    marker.write_text("2024-03-09\n", encoding="utf-8")
    assert load(folder).first_day == date(2024, 3, 2)
    marker.write_text("nonsense", encoding="utf-8")
    assert load(folder).first_day >= today - timedelta(days=7)
    assert date.fromisoformat(marker.read_text(encoding="utf-8").strip()) >= today


def test_the_first_day_is_that_of_the_earliest_repository(folder):
    text = "[[repositories]]\nsource = 'a/b'\nstart_date = 2023-05-01\n[[repositories]]\nsource = 'c/d'\n"
    settings = load(folder, "start_date = 2024-01-01\n" + text)
    one, other = settings.repositories
    assert settings.first_day == date(2023, 5, 1)
    assert (settings.first_day_of(one), settings.first_day_of(other)) == (date(2023, 5, 1), date(2024, 1, 1))
    # With a date for each, no folder is touched.
    dated = load(folder, text + "start_date = 2022-02-02")
    assert dated.first_day == date(2022, 2, 2)
    assert not dated.home.exists()


def test_prices_are_added_to_those_that_are_built_in_and_a_price_of_the_section_wins(folder):
    settings = load(folder, '[prices]\n"bge-m3" = 0.5\ntext-embedding-3-small = 0.01')
    assert settings.prices["text-embedding-3-large"] == 0.13
    service = settings.embedding.model_copy(update={"provider": "openai", "model": "openai/text-embedding-3-small"})
    assert price_of(service, settings.prices) == 0.01
    assert price_of(service.model_copy(update={"price_per_million_tokens": 7.0}), settings.prices) == 7.0
    assert price_of(service.model_copy(update={"model": "bge-m3"}), settings.prices) == 0.5
    # Nobody told us what this one costs, which is not the same as nothing.
    assert price_of(service.model_copy(update={"model": "other"}), settings.prices) is None
    assert price_of(settings.embedding.model_copy(update={"model": "mine"}), settings.prices) == 0.0
    assert "prices.x: Input should be greater than or equal to 0" in refused(folder, "[prices]\nx = -1")


def test_the_budget_of_a_tenant_takes_the_place_of_what_holds_for_all(folder):
    budget = load(folder, "[budget]\nrun_usd = 5\nmonth_tokens = 9\n[budget.tenants.acme]\nrun_usd = 1").budget
    assert budget.of("acme") == Limits(run_usd=1, month_tokens=9)
    assert budget.of("other") == Limits(run_usd=5, month_tokens=9)
    assert not load(folder).budget.of("acme").limits_anything
    assert "budget.tenants.acme.run_uds" in refused(folder, "[budget.tenants.acme]\nrun_uds = 1")


def test_settings_cannot_be_changed_and_their_fingerprint_follows_their_values(folder):
    settings = load(folder, "[chunking]\nmax_tokens = 128")
    with pytest.raises(ValidationError):
        settings.tenant = "other"
    assert fingerprint(settings.chunking) == fingerprint(load(folder, "[chunking]\nmax_tokens = 128").chunking)
    assert fingerprint(settings.chunking) != fingerprint(load(folder).chunking)
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


def keys(model: type[BaseModel], above: str = "") -> dict[str, object]:
    """Every key that a value can be given to, with its default."""
    found: dict[str, object] = {}
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        inner = [t for t in (field.annotation, *getattr(field.annotation, "__args__", ())) if isinstance(t, type)]
        sections = [t for t in inner if issubclass(t, BaseModel)]
        if sections:
            found |= keys(sections[0], f"{above}{name}.")
        else:
            found[above + name] = field.get_default()
    return found


def test_every_key_is_documented_with_its_default_and_no_other_is():
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    file, environment = page.split("## The environment")
    rows = re.findall(r"^\| `([a-z0-9_.]+)` \| [^|]+ \| ([^|]+) \|", file, re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(keys(Settings))
    for name, shown in rows:
        default = keys(Settings)[name]
        if default not in (None, "", ()) and isinstance(default, str | int | float):
            literal = f'`"{default}"`' if isinstance(default, str) else f"`{str(default).lower()}`"
            assert shown.strip() == literal, name
    assert "`RAG_HOME`" in environment


def test_every_variable_that_the_code_or_the_deployment_names_is_documented():
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE))
    sources = [
        *(ROOT / "rag_pipeline").rglob("*.py"),
        *(ROOT / name for name in ("dagster.yaml", "docker-compose.yml")),
    ]
    name = re.compile(
        r"\b(?:RAG|DAGSTER)_[A-Z_]+\b|\bDATABASE_URL\b|\b(?:OPENAI_API_KEY|RERANK_API_KEY|GITHUB_TOKEN|GITHUB_APP_PRIVATE_KEY|GITHUB_WEBHOOK_SECRET)\b"
    )
    named = {found for path in sources for found in name.findall(path.read_text(encoding="utf-8"))}
    assert named == documented


def test_the_file_of_this_checkout_is_valid():
    assert load_settings(config_file=ROOT / "rag_pipeline.toml", environ={}).repositories[0].source == str(ROOT)
