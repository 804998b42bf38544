"""The lake: a part is there whole, as it was, or not at all."""

from __future__ import annotations

import random
import threading
import uuid
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_pipeline.errors import PermanentError
from rag_pipeline.lake.rewriting import rewrite_part
from rag_pipeline.lake.store import Lake, Part

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])
PART = Part(tenant="acme", repository="owner/name", day=date(2024, 5, 1))


@pytest.fixture(params=["folder", "memory"])
def lake(request, tmp_path: Path) -> Lake:
    """A lake in a local folder, and one on a file system that has no renaming."""
    return Lake(str(tmp_path) if request.param == "folder" else f"memory://{uuid.uuid4().hex}/lake")


@pytest.fixture
def local(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path))


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([list(numbers), [f"text {n}" for n in numbers]], schema=SCHEMA)


def put(lake: Lake, *numbers: int, part: Part = PART, stage: str = "chunks", fingerprint: str = "f") -> None:
    with lake.writer(stage, part, schema=SCHEMA) as writer:
        writer.add(batch(*numbers))
        writer.fingerprint = fingerprint


def numbers(lake: Lake, part: Part = PART, stage: str = "chunks") -> list[int]:
    return [n for each in lake.read(stage, part) for n in each.column("n").to_pylist()]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_what_was_written_is_read_back_with_its_tags(lake):
    with lake.writer("chunks", PART, schema=SCHEMA) as writer:
        writer.add(batch(1, 2))
        writer.add(batch())
        writer.add(batch(3))
        writer.fingerprint, writer.tags = "f1", {"commit": "c0ffee", "ä": "ü"}
    assert (writer.rows, writer.bytes > 0) == (3, True)
    assert numbers(lake) == [1, 2, 3]
    assert lake.tags("chunks", PART) == {"fingerprint": "f1", "commit": "c0ffee", "ä": "ü", "rows": "3"}
    assert lake.fingerprint("chunks", PART) == "f1"
    assert [b.schema.names for b in lake.read("chunks", PART, columns=["text"])] == [["text"]]
    assert lake.days("chunks", tenant="acme", repository="owner/name") == [PART.day]
    assert lake.repositories("chunks") == [("acme", "owner/name")]


def test_what_is_not_there_is_empty_not_an_error(lake):
    assert numbers(lake) == []
    assert (lake.tags("chunks", PART), lake.fingerprint("chunks", PART)) == (None, None)
    assert (lake.repositories("chunks"), lake.days("chunks", tenant="acme", repository="x")) == ([], [])
    assert lake.remove("chunks", PART) is False


def test_an_error_in_the_block_leaves_the_old_part_and_nothing_else(lake, tmp_path):
    put(lake, 1, fingerprint="old")
    with pytest.raises(RuntimeError), lake.writer("chunks", PART, schema=SCHEMA) as writer:
        writer.add(batch(2))
        raise RuntimeError
    assert (numbers(lake), lake.fingerprint("chunks", PART)) == ([1], "old")
    assert lake.repositories("chunks") == [("acme", "owner/name")]
    assert [name for name in files(tmp_path) if not name.endswith(".parquet")] == []


def test_a_reader_during_a_write_sees_the_old_part_to_its_end(lake):
    put(lake, *range(5000))
    reading = lake.read("chunks", PART)
    first = next(reading).num_rows
    with lake.writer("chunks", PART, schema=SCHEMA) as writer:
        writer.add(batch(7))
        assert sum(numbers(lake)) == sum(range(5000))
    if lake._local:
        assert first + sum(b.num_rows for b in reading) == 5000
    assert numbers(lake) == [7]


def test_readers_and_writers_at_once_see_whole_parts_only(local):
    put(local, *[0] * 500)
    done = threading.Event()
    seen: list[list[int]] = []

    def read() -> None:
        while not done.is_set():
            seen.append(numbers(local))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for value in range(60):
        put(local, *[value] * 500)
    done.set()
    for thread in threads:
        thread.join()
    assert all(len(each) == 500 and len(set(each)) == 1 for each in seen)


def test_two_writers_of_one_part_do_not_mix(local, tmp_path):
    with local.writer("chunks", PART, schema=SCHEMA) as one, local.writer("chunks", PART, schema=SCHEMA) as other:
        one.add(batch(1))
        other.add(batch(2))
        one.add(batch(1))
    assert numbers(local) == [1, 1]
    assert files(tmp_path) == ["2024-05-01.parquet"]


def test_a_part_without_rows_is_removed(lake):
    put(lake, 1)
    with lake.writer("chunks", PART, schema=SCHEMA) as writer:
        writer.add(batch())
    assert lake.tags("chunks", PART) is None
    with lake.writer("chunks", PART, schema=SCHEMA):
        pass
    assert lake.days("chunks", tenant="acme", repository="owner/name") == []


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_a_truncated_part_counts_as_absent_and_cannot_be_read(local, keep):
    put(local, *range(2000))
    path = Path(local.path("chunks", PART))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    assert local.tags("chunks", PART) is None
    with pytest.raises(
        PermanentError, match=r"2024-05-01\.parquet is damaged .*: if .* delete .* materialize chunks for 2024"
    ):
        numbers(local)


@pytest.mark.parametrize("where", [0.1, 0.5, 0.8])
def test_a_part_with_altered_bytes_is_never_read_as_something_else(local, where):
    put(local, *range(20_000))
    path = Path(local.path("chunks", PART))
    content = bytearray(path.read_bytes())
    at = int(len(content) * where)
    content[at : at + 4] = bytes(255 - byte for byte in content[at : at + 4])
    path.write_bytes(content)
    with pytest.raises(PermanentError, match="is damaged") as raised:
        list(local.read("chunks", PART))
    assert "\n" not in str(raised.value), "only the first line is shown"


def test_a_damaged_part_can_be_written_again(local):
    put(local, 1)
    Path(local.path("chunks", PART)).write_bytes(b"not Parquet")
    put(local, 2)
    assert numbers(local) == [2]


def test_a_part_that_something_else_wrote_is_read_without_tags(local):
    path = Path(local.path("chunks", PART))
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}).replace_schema_metadata(None), path, store_schema=False)
    assert local.tags("chunks", PART) == {"rows": "1"}
    assert local.fingerprint("chunks", PART) is None


NAMES = [
    "..", ".", ".hidden", "a/b/c", "a b", "../../etc/passwd", "ä/ö", "a%2Fb", "a\\b", "C:", "*?[x]", "🎉", "a\nb", "~",
    "x.parquet", "%", "{t}", "#a", "a?b=c",
]  # fmt: skip


def test_any_name_of_a_tenant_or_repository_stays_in_the_lake(lake, tmp_path):
    parts = [Part(tenant=t, repository=r, day=PART.day) for t, r in zip(NAMES, reversed(NAMES), strict=True)]
    for n, part in enumerate(parts):
        put(lake, n, part=part)
    assert lake.repositories("chunks") == sorted((part.tenant, part.repository) for part in parts)
    for n, part in enumerate(parts):
        assert numbers(lake, part) == [n]
        assert lake.days("chunks", tenant=part.tenant, repository=part.repository) == [part.day]
    if lake._local:
        written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
        assert [path.parts[0] for path in written] == ["chunks"] * len(NAMES)


def test_what_others_leave_in_the_folders_is_passed_over(local, tmp_path):
    put(local, 1)
    for folder in (tmp_path / "chunks", tmp_path / "chunks" / "acme", Path(local.path("chunks", PART)).parent):
        (folder / ".DS_Store").write_bytes(b"")
        (folder / "2024-05-01 copy.parquet").write_bytes(b"")
    assert local.days("chunks", tenant="acme", repository="owner/name") == [PART.day]
    assert ("acme", "owner/name") in local.repositories("chunks")
    for tenant, repository in local.repositories("chunks"):
        local.days("chunks", tenant=tenant, repository=repository)


def test_a_large_part_is_read_in_small_batches(local):
    put(local, *range(10_000))
    sizes = [each.num_rows for each in local.read("chunks", PART)]
    assert (sum(sizes), max(sizes)) == (10_000, 1024)


def test_of_a_large_part_only_what_is_read_next_is_in_memory(local, monkeypatch):
    noise = random.Random(1)
    with local.writer("chunks", PART, schema=SCHEMA) as writer:
        for n in range(40):
            texts = [noise.randbytes(16_384).hex() for _ in range(20)]
            writer.add(pa.record_batch([[n] * 20, texts], schema=SCHEMA))
        writer.fingerprint = "f"
    size = Path(local.path("chunks", PART)).stat().st_size
    opened: list[Any] = []
    real = local._open
    monkeypatch.setattr(local, "_open", lambda path: opened.append(real(path)) or opened[-1])
    batches = local.read("chunks", PART)
    first = next(batches)
    assert opened[-1].tell() < size / 3
    assert first.num_rows + sum(each.num_rows for each in batches) == 40 * 20


def test_small_batches_are_written_together(local):
    with local.writer("chunks", PART, schema=SCHEMA) as writer:
        for n in range(2_000):
            writer.add(batch(n))
        assert writer.rows == 2_000
    assert numbers(local) == list(range(2_000))
    assert pq.ParquetFile(local.path("chunks", PART)).num_row_groups == 1


def test_a_damaged_part_is_given_up_and_a_whole_one_is_not(local):
    put(local, *range(20_000))
    path = Path(local.path("chunks", PART))
    whole = path.read_bytes()
    assert not local.give_up("chunks", PART)
    assert path.read_bytes() == whole
    content = bytearray(whole)
    content[100:104] = bytes(255 - byte for byte in content[100:104])
    path.write_bytes(content)
    assert local.tags("chunks", PART) is not None, "its footer is whole"
    assert local.give_up("chunks", PART)
    assert (path.read_bytes(), local.tags("chunks", PART)) == (b"", None)


def test_who_forgets_empties_what_cannot_be_read(local):
    put(local, *range(20_000))
    path = Path(local.path("chunks", PART))
    path.write_bytes(path.read_bytes()[:-20])
    assert list(local.read_or_give_up("chunks", PART)) == []
    assert path.read_bytes() == b""
    path.write_bytes(b"nonsense")
    assert rewrite_part(local, "chunks", PART, lambda batch: batch, fingerprint="new") == 0
