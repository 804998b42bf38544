"""Files of the lake that are cut off, empty, foreign, altered, lost, or folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_pipeline.cli.runs import reason_of
from rag_pipeline.errors import RagPipelineError
from rag_pipeline_tests.end_to_end.conftest import _not_drawn
from rag_pipeline_tests.end_to_end.installation import Installation
from rag_pipeline_tests.faults.conftest import Record
from rag_pipeline_tests.faults.site import index_of, rows_in
from rag_pipeline_tests.git_repository import GitRepository

__all__ = ["_not_drawn"]

pytestmark = pytest.mark.faults
DAYS = ("2024-01-02", "2024-01-06")
STAGES = ("raw_docs", "documents", "chunks", "embeddings")


@pytest.fixture
def installation(tmp_path: Path, database: str, repository: GitRepository) -> Installation:
    """Two days of pages, indexed."""
    pages = {f"{n}.md": f"# Page {n}\n\n" + f"What page {n} says of it. " * 12 for n in range(5)}
    repository.commit("2024-01-02T10:00", pages)
    repository.commit("2024-01-05T10:00", {"0.md": "# Page 0\n\nOther words.\n", "1.md": None})
    made = Installation(tmp_path / "home", database, [{"source": str(repository.path), "name": "project"}])
    made.run(*DAYS)
    return made


def parts_of(installation: Installation, stage: str) -> list[Path]:
    found = sorted((Path(installation.settings.lake_url) / stage).rglob("*.parquet"))
    assert found
    return found


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size * 2 // 3)


def _emptied(path: Path) -> None:
    os.truncate(path, 0)


def _foreign(path: Path) -> None:
    pq.write_table(pa.table({"what": ["somebody", "else's"]}), path)


def _nonsense(path: Path) -> None:
    path.write_bytes(b"PAR1" + os.urandom(2000) + b"PAR1")


def _text(path: Path) -> None:
    path.write_text("<html>404</html>")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _altered(path: Path) -> None:
    """Bytes of a column are others, the footer is whole."""
    content = bytearray(path.read_bytes())
    for at in range(40, len(content) // 2, 7):
        content[at] ^= 0xFF
    path.write_bytes(content)


DAMAGES = (_cut, _emptied, _foreign, _nonsense, _text)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))
def test_a_damaged_file_is_made_again_by_the_stage_that_owns_it(
    damage: Callable[[Path], None], stage, installation: Installation, outcome: Record
):
    before, embedded = index_of(installation.database), len(installation.embedder.embedded)
    for path in parts_of(installation, stage):
        damage(path)
    installation.run(*DAYS)
    assert index_of(installation.database) == before
    for path in parts_of(installation, stage):
        assert pq.read_metadata(path).metadata.get(b"rag.fingerprint")
    assert len(installation.embedder.embedded) == embedded
    outcome(f"file {damage.__name__.strip('_')}", f"lake: {stage}", "converged", rows=rows_in(before))


@pytest.mark.parametrize("stage", ["raw_docs", "documents", "chunks"])
@pytest.mark.parametrize("damage", [*DAMAGES, _altered], ids=lambda damage: damage.__name__.strip("_"))
def test_a_stage_that_is_run_alone_takes_no_damaged_input_for_nothing(
    damage: Callable[[Path], None], stage, installation: Installation, outcome: Record
):
    """It says which files, what was derived from them before stays, and the next refresh makes them again."""
    before = index_of(installation.database)
    after = {"raw_docs": "documents", "documents": "chunks", "chunks": "embeddings"}[stage]
    _make_stale(installation, after)
    for path in parts_of(installation, stage):
        damage(path)
    reason = _fails(installation, select=[after])
    for path in parts_of(installation, stage):
        assert f"{path} is damaged" in str(reason)
        assert f"delete that file, then materialize {stage} for {path.stem}" in str(reason)
    assert index_of(installation.database) | {"failures": []} == before
    installation.run(*DAYS)
    assert index_of(installation.database) == before
    outcome(f"file {damage.__name__.strip('_')}", f"lake: {stage}, read by {after}", "left aside, then converged",
            rows=rows_in(before))  # fmt: skip


def _make_stale(installation: Installation, stage: str) -> None:
    """Everything the stage has made is gone, so that it reads its inputs."""
    shutil.rmtree(Path(installation.settings.lake_url) / stage)


def _fails(installation: Installation, **what: Any) -> BaseException:
    result, _ = installation.try_run(*DAYS, **what)
    assert not result.success
    reason = reason_of(result)
    assert isinstance(reason, RagPipelineError), reason
    assert "\n" not in str(reason), "a traceback: nobody foresaw it"
    return reason


def test_documents_whose_chunks_were_lost_keep_their_former_state(installation: Installation, outcome: Record):
    before = index_of(installation.database)
    shutil.rmtree(Path(installation.settings.lake_url) / "chunks")
    installation.run(*DAYS, select=["knowledge_index"])
    reasons = {reason for _, _, reason in installation.failures()}
    assert reasons == {"the lake holds no chunks of its day: materialize chunks for this day again"}
    after = index_of(installation.database)
    assert after | {"failures": []} == before
    installation.run(*DAYS)
    assert index_of(installation.database) == before
    what = "quarantined, then converged"
    outcome("files removed", "lake: chunks, read by knowledge_index", what, rows=rows_in(before))


@pytest.mark.parametrize("stage", ["raw_docs", "documents", "chunks", "embeddings"])
def test_a_folder_in_the_place_of_a_file_is_named(stage, installation: Installation, outcome: Record):
    before = index_of(installation.database)
    for path in parts_of(installation, stage):
        _folder(path)
    reason = _fails(installation)
    assert "move it away" in str(reason)
    for path in (Path(installation.settings.lake_url) / stage).rglob("*.parquet"):
        path.rmdir()
    installation.run(*DAYS)
    assert index_of(installation.database) == before
    outcome("a folder in its place", f"lake: {stage}", f"failed: {str(reason)[:80]}", rows=rows_in(before))
