"""JSON from outside: every reader holds the limits, and no hostile drop stops what goes over all drops."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import rag_pipeline
from rag_pipeline.bounded_json import parse_json, read_checked
from rag_pipeline.errors import ItemError
from rag_pipeline.forgotten import Forgotten, author_mark, document_mark
from rag_pipeline.model import document_id
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.forgotten_drops import purge_inbox
from rag_pipeline.sources.drops.inbox import Inbox

PACKAGE = Path(rag_pipeline.__file__).parent
OURS = {
    "bounded_json.py": "the parser itself",
    "defs/automation/alerts.py": "the cursor of our own sensor",
    "defs/automation/drops.py": "the cursor of our own sensor",
    "defs/automation/freshness.py": "the cursor of our own sensor",
    "defs/automation/quarantine.py": "the cursor and the marks of our own sensor",
    "forgotten.py": "our own copy of the marks; contents of threads go through parse_json",
    "lake/schemas.py": "metadata that we wrote into the lake, after they were checked",
    "settings/positions.py": "one quoted key of the operator's own configuration",
    "sources/github/forgetting.py": "the alias file that our mirror wrote",
    "sources/github/mirror.py": "the alias file that our mirror wrote",
    "sources/github/stage.py": "threads and notes that our mirror wrote",
    "sources/github/store.py": "bodies that our mirror wrote, after parse_json read them from GitHub",
}
"""Modules that may read JSON directly, and why what they read is our own."""

DEEP = b"[" * 100_000
HOSTILE = {
    "deep arrays": DEEP,
    "deep arrays that end": b"[" * 50_000 + b"]" * 50_000,
    "deep objects": b'{"a":' * 100_000,
    "a little too deep": b"[" * 102 + b"]" * 102,
    "a number of many digits": b'{"number": ' + b"7" * 100_000 + b"}",
    "no JSON": b"{id: 1}",
    "nothing": b"",
    "half a UTF-16 text": "[1]".encode("utf-16")[:-1],
    "a string without an end": b'"' + b"x" * 1_000_000,
}


def test_only_readers_of_our_own_json_do_without_limits() -> None:
    direct = re.compile(r"\bjson\.loads?\(|\bjson\.JSONDecoder|\.json\(\)|\borjson\b|\bfrom_json\(|\bvalidate_json\(")
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if direct.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(OURS)


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_json_is_an_error_with_a_reason(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"is nested|holds a number|is not"):
        parse_json(content)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32-le"])
def test_every_encoding_of_json_is_read(encoding: str) -> None:
    assert parse_json('{"a": ["ä", 1]}'.encode(encoding)) == {"a": ["ä", 1]}


def test_untidy_values_become_what_can_be_stored() -> None:
    assert parse_json(r'{"a": 1, "c": "x\ud800\u0000y", "a": 2}') == {"a": 2, "c": "x\ufffdy"}
    assert parse_json(b"[" * 100 + b"]" * 100)
    assert parse_json(b'"' + b"x" * 1_000_000 + b'"') == "x" * 1_000_000


@pytest.mark.parametrize("content", [b'{"scope": "user:jane", "scope": null}', b"[NaN]", b"[1e999]", DEEP])
def test_what_decides_about_access_is_read_without_tolerance(content: bytes) -> None:
    with pytest.raises(ItemError):
        read_checked(content)


def test_hostile_files_in_the_archive_do_not_stop_forgetting(tmp_path: Path) -> None:
    now = datetime(2024, 5, 2, tzinfo=UTC)
    settings = Settings.model_validate({"home": tmp_path, "tenant": "acme"})
    inbox = Inbox(settings.inbox_url)
    for folder in ("", "rejected/", "accepted/2024-05-01/"):
        (tmp_path / "inbox" / folder).mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(HOSTILE.values()):
            for suffix in ("json", "ndjson", "ipynb", "md"):
                (tmp_path / "inbox" / folder / f"hostile-{number}.{suffix}").write_bytes(content)
        (tmp_path / "inbox" / folder / "jane.json").write_bytes(b'{"id": "jane", "content": "Words."}')
        (tmp_path / "inbox" / folder / "front.md").write_bytes(b"---\ntags: " + DEEP + b"\n---\nWords.")
    gone = document_id(tenant="acme", source_type="knowledge", source_id="jane")
    forgotten = Forgotten(marks=frozenset([document_mark("acme", gone), author_mark("acme", "jane")]))
    for remove, left in ((False, 1), (True, 1), (False, 0)):
        found = purge_inbox(inbox, forgotten, settings, names=(), now=now, remove=remove)
        assert (found["waiting"], found["accepted"], found["rejected"]) == (left, left, left)
