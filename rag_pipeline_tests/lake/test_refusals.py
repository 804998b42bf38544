"""What the file system refuses becomes an error that names the file and says what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from rag_pipeline.errors import PermanentError, StorageUnavailable
from rag_pipeline.lake import store
from rag_pipeline.lake.refusals import spoken
from rag_pipeline.lake.store import Lake, Part

PART = Part(tenant="acme", repository="code", day=date(2024, 5, 1))
SCHEMA = pa.schema([("n", pa.int64())])


def test_a_full_disk_is_named_with_what_was_to_be_written() -> None:
    found = spoken(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), where="/lake/chunks/a.parquet")
    assert str(found).startswith("/lake/chunks/a.parquet cannot be used: No space left on device: make room there")


def test_a_file_names_itself() -> None:
    found = spoken(PermissionError(errno.EACCES, "Permission denied", "/lake/x"))
    assert isinstance(found, StorageUnavailable)
    assert str(found).startswith("/lake/x cannot be used: Permission denied: run as its owner")


def test_what_is_not_about_a_file_is_left_alone() -> None:
    assert spoken(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")) is None
    assert spoken(ValueError("x")) is None


class FullDisk:
    """A file on a disk that is full from the second block on; closing it fails, too."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._written = 0
        self.closed = False

    def write(self, block: bytes) -> int:
        self._written += 1
        if self._written > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(block)

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        self.closed = True
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    def opened(path: Path) -> FullDisk:
        path.parent.mkdir(parents=True, exist_ok=True)
        return FullDisk(path)

    monkeypatch.setattr(store, "_new_file", opened)
    yield Lake(str(tmp_path))


def test_a_part_that_does_not_fit_says_so_and_leaves_no_temporary_file(full: Lake, tmp_path: Path) -> None:
    with (
        pytest.raises(StorageUnavailable, match=r"2024-05-01\.parquet cannot be used: No space left"),
        full.writer("chunks", PART, schema=SCHEMA) as writer,
    ):
        writer.add(pa.record_batch([pa.array(range(1000))], schema=SCHEMA))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_input_that_cannot_be_read_is_not_taken_for_nothing(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    path = Path(lake.path("raw_docs", PART))
    assert lake.tags("raw_docs", PART, owned=False) is None
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not Parquet")
    assert lake.tags("raw_docs", PART) is None
    with pytest.raises(PermanentError, match="is damaged"):
        lake.tags("raw_docs", PART, owned=False)
