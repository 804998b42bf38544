"""Every string of a document is redacted, and its metadata says what was, never the value."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import asdict

from rag_pipeline.documents import clean
from rag_pipeline.documents.redaction.document import MAX_ENTRIES, redactions_in
from rag_pipeline.documents.stage import fingerprint
from rag_pipeline.model import SourceItem
from rag_pipeline.settings import Redaction
from rag_pipeline_tests.documents.redaction.planted import NAMED, TOKENS, word
from rag_pipeline_tests.documents.threads import comment, thread, thread_item

MakeItem = Callable[..., SourceItem]
RNG = random.Random(7)
TOKEN = TOKENS["github-classic"](RNG)
PASSWORD = word(RNG)


def everything(document: object) -> str:
    return json.dumps(asdict(document), default=str)  # type: ignore[call-overload]


def test_text_title_and_metadata_hold_no_secret(make_item: MakeItem) -> None:
    content = f"---\npassword: '{PASSWORD}'\nnested:\n  - token: {TOKEN}\n---\n# Use {TOKEN}\n\nIt is {TOKEN}.\n"
    document = clean(make_item(content, title=f"Key {TOKEN}", metadata={"note": f"see {TOKEN}"}))
    assert TOKEN not in everything(document)
    assert PASSWORD not in everything(document)
    assert document.title == "Key [REDACTED:github-token]"
    assert redactions_in(document.metadata)["github-token"] >= 3


def test_what_was_redacted_is_listed_by_source_line(make_item: MakeItem) -> None:
    document = clean(make_item(f"---\ntitle: T\n---\n\nOne.\n\n{TOKEN} and {TOKEN}\n"))
    assert document.metadata["redactions"] == [{"kind": "github-token", "line": 7, "count": 2}]
    assert document.metadata["redactions_by_kind"] == {"github-token": 2}


def test_the_list_is_bounded_and_the_count_is_not(make_item: MakeItem) -> None:
    rng = random.Random(8)
    lines = [f"- {TOKENS['github-classic'](rng)}" for _ in range(MAX_ENTRIES + 50)]
    document = clean(make_item("\n".join(lines)))
    entries = document.metadata["redactions"]
    assert isinstance(entries, list)
    assert len(entries) == MAX_ENTRIES
    assert redactions_in(document.metadata) == {"github-token": MAX_ENTRIES + 50}


def test_sections_begin_where_they_did() -> None:
    entries = [comment(f"Mine is {TOKEN}, sorry.", by="bob"), comment("Thanks for telling us about it.", by="carol")]
    document = clean(thread_item(thread(body=f"Broken with {TOKEN}.", entries=entries)))
    plain = clean(thread_item(thread(body="Broken with it.", entries=entries)))
    assert TOKEN not in everything(document)
    assert document.sections
    assert len(document.sections) == len(plain.sections or ())
    for section in document.sections[1:]:
        assert document.text[section.start_char - 1] == "\n"
        assert document.text[section.start_char :].startswith("**")


def test_settings_and_the_detector_are_part_of_the_fingerprint() -> None:
    assert "redaction-" in fingerprint()
    assert len({fingerprint(), fingerprint(redaction=Redaction(emails=True))}) == 2


def test_a_document_without_secrets_and_a_tombstone_stay_as_they_are(make_item: MakeItem) -> None:
    assert "redactions" not in clean(make_item("# Hello\n\nWorld.")).metadata
    assert clean(make_item("# Gone", deleted=True, metadata={"token": NAMED["api-key"][1](RNG)})).text == ""
