"""All workers share one RAG_HOME: one that came with its own is refused, with words that help."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import dagster as dg
import pytest
from typer.testing import CliRunner

from rag_pipeline.cli.app import app
from rag_pipeline.defs.celery.home import require_shared_home
from rag_pipeline.errors import ConfigError


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def test_whoever_mounts_the_same_folder_is_let_in_wherever_it_is_mounted(instance, tmp_path):
    (tmp_path / "there").symlink_to(tmp_path / "here")
    require_shared_home(instance, tmp_path / "here")
    require_shared_home(instance, tmp_path / "there")
    assert [file.name for file in (tmp_path / "here").iterdir()] == ["home_id"]


def test_a_worker_with_a_folder_of_its_own_is_told_what_to_do(instance, tmp_path):
    require_shared_home(instance, tmp_path / "shared")
    with pytest.raises(ConfigError, match=r"mount the same volume there .*--adopt-home"):
        require_shared_home(instance, tmp_path / "own")
    require_shared_home(instance, tmp_path / "shared")


def test_a_folder_that_was_made_anew_can_be_adopted_and_the_old_one_is_refused_then(instance, tmp_path):
    require_shared_home(instance, tmp_path / "old")
    require_shared_home(instance, tmp_path / "new", adopt=True)
    require_shared_home(instance, tmp_path / "new")
    with pytest.raises(ConfigError, match="not the folder"):
        require_shared_home(instance, tmp_path / "old")


def test_a_worker_without_the_extra_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dagster_celery", None)
    done = CliRunner().invoke(app, ["worker"])
    assert isinstance(done.exception, ConfigError)
    assert "pip install -e '.[celery]'" in str(done.exception)
