"""What SQLite refuses about a file of ours: named, with what to do; a change that it cuts short is undone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_pipeline.errors import StorageUnavailable, TransientError
from rag_pipeline.sources.github.store import Store
from rag_pipeline.sources.sqlite_file import in_words, transaction


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A mirror that holds something."""
    path = tmp_path / "mirror.sqlite"
    with Store(path) as store:
        store.touch(*range(5000))
    return path


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size * 2 // 3)


def _text(file: Path) -> None:
    file.write_text("<html>404</html>" * 500)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_cut, "is damaged: database disk image is malformed: delete that file, and mirror.sqlite-wal"),
        (_text, "is damaged: file is not a database: delete that file"),
        (_folder, "cannot be used: unable to open database file: see that it is a file"),
    ],
    ids=["cut", "text", "folder"],
)
def test_a_mirror_that_is_none_any_more_is_named(damage: Callable[[Path], None], said: str, file: Path) -> None:
    damage(file)
    with pytest.raises(StorageUnavailable) as caught, Store(file) as store:
        store.touched()
    assert str(caught.value).startswith(f"{file} {said}")


def test_a_page_that_is_damaged_is_found_when_it_is_read(file: Path) -> None:
    content = bytearray(file.read_bytes())
    # Behind the pages that hold the schema and the notes.
    content[80 * 1024 :] = bytes(byte ^ 0xFF for byte in content[80 * 1024 :])
    file.write_bytes(content)
    with pytest.raises(StorageUnavailable, match="is damaged"), Store(file) as store:
        store.touched()


def test_a_change_for_which_there_is_no_room_is_undone_and_the_disk_is_spoken_of(tmp_path: Path) -> None:
    file = tmp_path / "small.sqlite"
    database = sqlite3.connect(file, isolation_level=None)
    database.executescript("PRAGMA page_size = 1024; PRAGMA max_page_count = 20; CREATE TABLE told (words TEXT)")
    database.execute("INSERT INTO told VALUES ('first')")
    full = pytest.raises(StorageUnavailable, match=r"is full: make room there.*what was done so far is kept")
    with full, in_words(file), transaction(database):
        for _ in range(100):
            database.execute("INSERT INTO told VALUES (?)", ("much" * 200,))
    assert database.execute("SELECT words FROM told").fetchall() == [("first",)]
    with transaction(database):
        database.execute("INSERT INTO told VALUES ('second')")
    database.close()
    assert sqlite3.connect(file).execute("SELECT count(*) FROM told").fetchone() == (2,)


def test_a_file_that_another_process_keeps_may_be_free_later(tmp_path: Path) -> None:
    file = tmp_path / "taken.sqlite"
    other, ours = (sqlite3.connect(file, timeout=0, isolation_level=None) for _ in range(2))
    with transaction(other):
        other.execute("CREATE TABLE told (words TEXT)")
        refused = pytest.raises(TransientError, match=r"another process has kept .*taken\.sqlite locked")
        with refused, in_words(file), transaction(ours):
            pass
    # What is wrong with the code is no trouble of the file's.
    with pytest.raises(sqlite3.OperationalError, match="no such table"), in_words(file):
        ours.execute("SELECT * FROM nowhere")
    other.close()
    ours.close()
