"""A mirror that machines share does without what only one machine can share."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rag_pipeline.sources.github import mirror_file
from rag_pipeline.sources.github.network_folders import is_on_network
from rag_pipeline.sources.github.store import Store

MOUNTS = """\
22 1 0:20 / / rw,relatime - overlay overlay rw
30 22 0:25 / /srv rw shared:1 - nfs4 files:/srv rw,vers=4.2
31 30 0:26 / /srv/local rw - ext4 /dev/sda1 rw
32 22 0:27 / /mnt/team\\040files rw - fuse.sshfs team@host: rw
33 22 0:28 / /over rw - ext4 /dev/sdb1 rw
34 33 0:29 / /over rw - cifs //files/over rw
"""


@pytest.mark.parametrize(
    ("folder", "wanted"),
    [
        ("/var/lib/rag", False), ("/srv", True), ("/srv/rag/mirrors", True), ("/srvice", False),
        ("/srv/local/rag", False), ("/mnt/team files/rag", True), ("/over/rag", True),
    ],
)  # fmt: skip
def test_a_folder_is_where_its_innermost_and_last_mount_is(tmp_path, folder, wanted):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert is_on_network(Path(folder), mounts=mounts) is wanted


def test_where_mounts_are_not_told_a_folder_counts_as_local(tmp_path):
    assert not is_on_network(tmp_path, mounts=tmp_path / "missing")


@pytest.mark.parametrize(("on_network", "journal"), [(False, "wal"), (True, "truncate")])
def test_a_mirror_has_the_journal_that_its_place_allows_and_keeps_what_it_had(
    tmp_path, monkeypatch, on_network, journal
):
    file = tmp_path / "mirror.sqlite"
    with Store(file) as before:
        before.set_note("full_name", "acme/rocket")
    monkeypatch.setattr(mirror_file, "is_on_network", lambda _: on_network)
    with Store(file) as after:
        assert after.note("full_name") == "acme/rocket"
        with closing(sqlite3.connect(file)) as other:
            # Which of the journals without a log it is, each connection says for itself.
            assert (other.execute("PRAGMA journal_mode").fetchone() == ("wal",)) == (journal == "wal")
        assert (tmp_path / "mirror.sqlite-wal").exists() == (journal == "wal")
