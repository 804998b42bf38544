"""Nothing phones home: what is used without an account asks nobody outside this machine, not even for a name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from rag_pipeline.embedded import EmbeddedPostgres
from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.supply_chain import sealed
from rag_pipeline_tests.supply_chain.declared import ROOT

HERE = Path(__file__).resolve().parent
UNSHARE = {True: ("--net",), False: ("--user", "--map-current-user", "--keep-caps", "--net")}
"""By whether this is root."""
COMPILED = """
import ctypes, socket
class Address(ctypes.Structure):
    _fields_ = [("a", ctypes.c_uint16), ("b", ctypes.c_uint16), ("c", ctypes.c_uint32), ("d", ctypes.c_uint64)]
there = Address(socket.AF_INET, socket.htons(443), int.from_bytes(socket.inet_aton("192.0.2.7"), "little"), 0)
libc = ctypes.CDLL(None)
libc.connect(libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0), ctypes.byref(there), ctypes.sizeof(there))
"""


@cache
def why_not_sealed() -> str:
    """Why this machine cannot seal a process off; empty: it can."""
    if not sys.platform.startswith("linux") or shutil.which("unshare") is None or shutil.which("ip") is None:
        return "sealing a process off needs Linux with unshare and ip (util-linux, iproute2)"
    tried = subprocess.run(
        ["unshare", *UNSHARE[os.geteuid() == 0], "ip", "link", "set", "lo", "up"], capture_output=True, text=True
    )
    return tried.stderr.strip()


def run_sealed(record: Path, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> int:
    """Run it with the hook in every Python and, where the machine allows that, in a network of its own."""
    watched = {**env, "RAG_TEST_RECORD": str(record), "PYTHONPATH": f"{HERE / 'watching'}{os.pathsep}{ROOT}"}
    seal = ["unshare", *UNSHARE[os.geteuid() == 0], sys.executable, str(HERE / "sealed.py"), str(record)]
    return subprocess.run([*([] if why_not_sealed() else seal), *command], cwd=cwd, env=watched).returncode


def written(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.exists() else []


def attempts(record: Path) -> list[dict[str, Any]]:
    """What was tried, each with the step it happened in."""
    found, step = [], ""
    for line in written(record):
        step = line.get("step", step)
        if line["by"] != "use":
            found.append({"during": step, **line})
    return found


@pytest.fixture
def own_env(tmp_path: Path) -> dict[str, str]:
    """As a person's who has set nothing: no switch that would silence anything."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
    return kept | {"HOME": str(tmp_path / "person"), "RAG_HOME": str(tmp_path / "home")}


needs_seal = pytest.mark.skipif(bool(why_not_sealed()), reason=why_not_sealed())


@needs_seal
@pytest.mark.parametrize(
    ("command", "where", "name"),
    [
        ([sys.executable, "-I", "-c", COMPILED], "192.0.2.7 port 443", ""),
        ([sys.executable, "-I", "-c", "import socket; socket.getaddrinfo('telemetry.example', 443)"], " port 53",
         "telemetry.example"),
        ([sys.executable, "-I", "-c", "import socket as s; "
          "s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'x', ('203.0.113.9', 514))"], "203.0.113.9 port 514", ""),
    ],
    ids=["compiled code", "a name", "a datagram"],
)  # fmt: skip
def test_what_no_hook_of_python_sees_is_seen_as_a_packet(command, where, name, tmp_path, own_env) -> None:
    run_sealed(tmp_path / "record", command, cwd=tmp_path, env=own_env)
    (first, *_) = [a for a in attempts(tmp_path / "record") if a["by"] == "packet"]
    assert first["where"].endswith(where)
    assert first["name"].startswith(name)


@pytest.mark.parametrize(
    ("code", "where"),
    [
        ("import urllib.request as r; r.urlopen('http://telemetry.example/x')", "telemetry.example"),
        ("import socket; socket.create_connection(('192.0.2.7', 443), 1)", "192.0.2.7 port 443"),
    ],
    ids=["a name", "an address"],
)
def test_a_child_that_is_python_is_refused_and_says_who_it_is(code, where, tmp_path, own_env) -> None:
    child = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {code!r}]).returncode)"
    assert run_sealed(tmp_path / "record", [sys.executable, "-c", child], cwd=tmp_path, env=own_env) != 0
    (first, *_) = attempts(tmp_path / "record")
    assert (first["by"], first["where"]) == ("python", where)
    assert code in first["command"] and first["stack"]


def test_what_stays_on_this_machine_is_no_attempt(tmp_path, own_env) -> None:
    code = (
        "import socket as s; a = s.create_server(('127.0.0.1', 0)); "
        "s.create_connection(('localhost', a.getsockname()[1]))"
        "; b = s.socket(s.AF_UNIX); b.bind('sock'); b.listen(); s.socket(s.AF_UNIX).connect('sock')"
    )
    assert run_sealed(tmp_path / "record", [sys.executable, "-c", code], cwd=tmp_path, env=own_env) == 0
    assert attempts(tmp_path / "record") == []


def test_answers_and_chatter_of_the_device_are_no_attempts() -> None:
    ipv4 = bytes([0x45, *range(8), 6, 0, 0, *(192, 0, 2, 1), *(192, 0, 2, 7)])
    tcp = bytes([0, 80, 1, 187, *range(9)])
    assert sealed.attempt_of(ipv4 + tcp + bytes([0x02])) is not None
    assert sealed.attempt_of(ipv4 + tcp + bytes([0x12])) is None
    assert sealed.attempt_of(ipv4.replace(bytes([192, 0, 2, 7]), bytes([127, 0, 0, 1])) + tcp + bytes([0x02])) is None


def test_the_local_model_keeps_no_record_of_its_use(tmp_path, own_env) -> None:
    person = Path(own_env["HOME"])
    person.mkdir()
    code = """
        from rag_pipeline.embedding import make_embedder
        from rag_pipeline.settings import Embedding
        print(make_embedder(Embedding(), environ={}).embed_query("Who is told of this?").shape)
    """
    done = run_sealed(tmp_path / "record", [sys.executable, "-c", dedent(code)], cwd=tmp_path, env=own_env)
    assert (done, attempts(tmp_path / "record"), list(person.rglob("*"))) == (0, [], [])


@pytest.mark.slow
def test_a_pipeline_in_use_asks_nobody_outside_this_machine(tmp_path, own_env) -> None:
    tmp_path.chmod(0o755)
    repository = GitRepository(tmp_path / "repository")
    page = "# Keys\n\nA key is rotated with `keys rotate`, once in ninety days; the old one works for an hour.\n"
    html = "<html><body><main><h1>Hosts</h1><p>Hosts are named after rivers.</p></main></body></html>"
    code = 'def area(width, height):\n    """Of a rectangle."""\n    return width * height\n'
    repository.commit("2026-01-02T10:00", {"docs/keys.md": page, "docs/hosts.html": html, "src/shapes.py": code})
    Path(own_env["HOME"]).mkdir()
    place = tmp_path / "place"
    place.mkdir()
    (place / "rag_pipeline.toml").write_text(
        f'sample_question = "How often is a key rotated?"\n'
        f'[[repositories]]\nsource = "{repository.path}"\nname = "handbook"\n'
    )
    record = tmp_path / "record"
    try:
        use = [sys.executable, "-m", "rag_pipeline_tests.supply_chain.use", str(record)]
        assert run_sealed(record, use, cwd=place, env=own_env) == 0
    finally:
        EmbeddedPostgres(Path(own_env["RAG_HOME"])).erase()
    assert attempts(record) == []
    (done,) = [line["done"] for line in written(record) if "done" in line]
    assert done["hits"] > 0 and "ninety days" in done["answer"]
    (location,) = done["located"]["workspaceOrError"]["locationEntries"]
    assert location["locationOrLoadError"]["__typename"] == "RepositoryLocation"
