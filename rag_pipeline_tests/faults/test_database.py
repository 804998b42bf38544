"""PostgreSQL goes away, comes back, has no room, no connection, no right to write: what a refresh makes of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag_pipeline.defs import failures
from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline_tests.embedded.servers import pid_of, temporary_home
from rag_pipeline_tests.embedding.fake_service import Reply, embeddings
from rag_pipeline_tests.embedding.fake_service import Request as Asked
from rag_pipeline_tests.faults.conftest import Record, Script
from rag_pipeline_tests.faults.forked import fork
from rag_pipeline_tests.faults.site import (
    Site,
    copy_of,
    databases_of,
    failed,
    index_of,
    locks_of,
    places_of,
    rows_in,
)  # fmt: skip

__all__ = ["fork"]

pytestmark = pytest.mark.faults
Index = Mapping[str, list[tuple[Any, ...]]]


@pytest.fixture(autouse=True)
def _running(victim: EmbeddedPostgres) -> Iterator[None]:
    """Whatever a test did to the server, the next finds it as it was."""
    yield
    victim.start()


def at_request(number: int, action: Callable[[], object]) -> Callable[[Asked], Reply]:
    """The service answers as it should, and just before the answer to this request something happens, once."""
    seen = 0

    def reply(request: Asked) -> Reply:
        nonlocal seen
        seen += 1
        if seen == number:
            action()
        return embeddings(request)

    return reply


def converges(site: Site, undisturbed: Index) -> int:
    """After another refresh the index is the undisturbed one, and nothing is held by anybody; how many rows it has."""
    site.refresh()
    index = index_of(site.database)
    assert index == undisturbed
    assert (locks_of(site.database), places_of(site)) == ([], [])
    return rows_in(index)


def halt(server: EmbeddedPostgres) -> None:
    """`pg_ctl stop -m immediate`: no checkpoint, nobody is asked."""
    pid = pid_of(server)
    os.kill(pid, signal.SIGQUIT)
    while server._serves(pid):
        pass


def test_a_server_that_is_stopped_while_texts_are_embedded(site, victim, script: Script, undisturbed, outcome: Record):
    script.reply = at_request(3, victim.stop)
    said = failed(site.run("materialize"), saying=r"PostgreSQL.*(lost|cannot connect|ended the work)")
    script.reply = embeddings
    victim.start()
    outcome("PostgreSQL stopped", "embeddings", f"failed: {said[:90]}", rows=converges(site, undisturbed))


@pytest.mark.parametrize(
    "moment", ["raw_docs, raw_code: 1 of", "documents: ", "embeddings: writing", "knowledge_index"]
)
def test_a_server_that_is_stopped_in_any_stage(moment, site, victim, undisturbed, outcome: Record):
    child = site.start("materialize")
    child.says(moment)
    victim.stop()
    ended = "converged" if child.wait() == 0 else f"failed: {failed(child, saying='PostgreSQL')[:90]}"
    victim.start()
    outcome("PostgreSQL stopped", moment.strip(": "), ended, rows=converges(site, undisturbed))


@pytest.mark.parametrize("how", [halt, EmbeddedPostgres.stop], ids=["immediate", "fast"])
def test_a_server_that_is_restarted_in_the_middle(how, site, victim, script: Script, undisturbed, outcome: Record):
    def restart() -> None:
        how(victim)
        victim.start()

    script.reply = at_request(3, restart)
    child = site.run("materialize")
    script.reply = embeddings
    ended = "converged" if child.code == 0 else f"failed: {failed(child, saying='PostgreSQL')[:90]}"
    outcome(f"PostgreSQL restarted ({how.__name__})", "embeddings", ended, rows=converges(site, undisturbed))


def test_a_server_that_crashes_recovers_and_so_does_the_refresh(site, victim, script, undisturbed, outcome: Record):
    def crash() -> None:
        # One backend that dies takes all connections with it (PostgreSQL restarts itself).
        with psycopg.connect(victim.url("postgres")) as connection:
            row = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = %s LIMIT 1", (site.name,)
            ).fetchone()
        os.kill(row[0], signal.SIGKILL)

    script.reply = at_request(3, crash)
    child = site.run("materialize")
    script.reply = embeddings
    ended = "converged" if child.code == 0 else f"failed: {failed(child, saying='PostgreSQL')[:90]}"
    victim.start()
    outcome("a backend of PostgreSQL killed", "embeddings", ended, rows=converges(site, undisturbed))


@contextlib.contextmanager
def crowded(server: EmbeddedPostgres) -> Iterator[None]:
    """All connections that the server has are taken."""
    taken = []
    try:
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                taken.append(psycopg.connect(server.url("postgres")))
        yield
    finally:
        for connection in taken:
            connection.close()


def test_a_server_without_a_connection_left(site, victim, undisturbed, outcome: Record):
    with crowded(victim):
        for words in (("materialize",), ("search", "topic"), ("status",), ("maintain",), ("spaces", "list")):
            said = site.fails(*words, saying="too many .*raise max_connections")
    outcome("out of connections", "every command", f"failed: {said[:90]}", rows=converges(site, undisturbed))


def test_a_server_whose_connections_run_out_in_the_middle(site, victim, script, undisturbed, outcome: Record):
    with contextlib.ExitStack() as held:
        script.reply = at_request(3, lambda: held.enter_context(crowded(victim)))
        child = site.run("materialize")
        ended = "converged" if child.code == 0 else f"failed: {failed(child, saying='PostgreSQL.*too many')[:90]}"
    script.reply = embeddings
    outcome("out of connections", "embeddings", ended, rows=converges(site, undisturbed))


def read_only(site: Site, setting: str) -> None:
    with psycopg.connect(site.server.url("postgres"), autocommit=True) as connection:
        for name in (site.name, f"{site.name}_dagster"):
            connection.execute(
                psycopg.sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}").format(
                    psycopg.sql.Identifier(name), psycopg.sql.Literal(setting)
                )
            )


def test_a_database_that_may_only_be_read_answers_questions_and_says_why_nothing_is_written(
    site, undisturbed, outcome: Record
):
    site.refresh()
    before = index_of(site.database)
    read_only(site, "on")
    for words in (("materialize", "--from", str(site.first_day)), ("maintain",)):
        said = site.fails(*words, saying="only be read.*primary.*default_transaction_read_only")
    for words in (("search", "topic"), ("status",)):
        assert site.run(*words).code == 0
    assert index_of(site.database) == before
    read_only(site, "off")
    outcome("read-only database", "refresh, maintain", f"failed: {said[:90]}", rows=converges(site, undisturbed))


def test_a_database_that_becomes_read_only_in_the_middle(site, script, undisturbed, outcome: Record):
    def freeze() -> None:
        read_only(site, "on")
        with psycopg.connect(site.server.url("postgres"), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (site.name,)
            )

    script.reply = at_request(3, freeze)
    said = failed(site.run("materialize"), saying="PostgreSQL")
    script.reply = embeddings
    read_only(site, "off")
    outcome("read-only database", "embeddings", f"failed: {said[:90]}", rows=converges(site, undisturbed))


def test_a_standby_refuses_to_be_written_and_answers_questions(site, victim, tmp_path, undisturbed, outcome: Record):
    site.refresh()
    victim.stop()
    with temporary_home() as home:
        standby = EmbeddedPostgres(home, durable=False)
        shutil.copytree(victim._folder, standby._folder, symlinks=True)
        for path in (standby._folder, *standby._folder.rglob("*")):
            shutil.chown(path, victim._account.uid, victim._account.gid)
        (standby._data / "standby.signal").touch()
        standby.start()
        victim.start()
        other = Site(
            home=site.home, server=standby, project=site.project, service=site.service, name=site.name,
            first_day=site.first_day,
        )  # fmt: skip
        said = other.fails("materialize", "--from", str(site.first_day), saying="only be read.*primary, not a standby")
        found = other.run("search", "topic")
        assert found.code == 0, found.said
        assert "docs/page_" in found.said
    outcome("a standby in place of the primary", "refresh", f"failed: {said[:90]}", rows=converges(site, undisturbed))


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A file system of this size, where we may mount one."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system of a fixed size can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, *, but: int = 0) -> Path:
    """Take all room but these bytes."""
    filler, block = folder / "filler", b"\0" * 65536
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while shutil.disk_usage(folder).free > but:
            if file.write(block) < len(block):
                break
    return filler


@pytest.mark.parametrize("left", [0, 300_000])
def test_a_disk_of_the_database_that_is_full(left, fresh: Site, script, undisturbed, tmp_path, outcome: Record):
    with temporary_home() as home, small_disk(home / "disk", 700):
        server = EmbeddedPostgres(home / "disk" / "server")
        server.start()
        try:
            databases_of(server, "full")
            site = Site(
                home=home / "site", server=server, project=fresh.project, service=fresh.service, name="full",
                first_day=fresh.first_day,
            )  # fmt: skip
            with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
                connection.execute("CHECKPOINT")
            fillers: list[Path] = []
            script.reply = at_request(2, lambda: fillers.append(fill(home / "disk", but=left)))
            child = site.run("materialize")
            script.reply = embeddings
            words = r"no room left|No space left|connection to PostgreSQL was lost|cannot connect to PostgreSQL"
            ended = "converged" if child.code == 0 else f"failed: {failed(child, saying=words)[:90]}"
            fillers[0].unlink()
            server.start()
            outcome("disk of PostgreSQL full", "embeddings", ended, rows=converges(site, undisturbed))
        finally:
            server.erase()


def test_a_disk_of_the_lake_that_is_full_leaves_no_half_file(fresh: Site, undisturbed, tmp_path, outcome: Record):
    with temporary_home() as home, small_disk(home / "disk", 2), copy_of(fresh, home / "site") as site:
        site.lake = home / "disk" / "lake"
        filler = fill(home / "disk")
        said = site.fails("materialize", saying="No space left.*make room there")
        filler.unlink()
        fill(home / "disk", but=40_000)
        site.fails("materialize", saying="No space left.*make room there")
        assert list(site.lake.rglob("*.tmp")) == []
        filler.unlink()
        outcome("disk of the lake full", "raw, documents", f"failed: {said[-90:]}", rows=converges(site, undisturbed))


def test_a_passing_loss_of_the_connection_is_tried_again_within_the_run(
    site, script, monkeypatch, undisturbed, outcome: Record
):
    """Dagster's own records lie elsewhere: only the index's connection is lost."""
    monkeypatch.setattr(failures, "_LONGEST_WAIT_S", 0.2)

    def cut() -> None:
        with psycopg.connect(site.server.url("postgres"), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (site.name,)
            )

    script.reply = at_request(3, cut)
    child = site.run("materialize")
    assert child.code == 0, child.said[-4000:]
    assert index_of(site.database) == undisturbed
    outcome("connections to the index cut", "embeddings", "converged in the same run", rows=rows_in(undisturbed))
