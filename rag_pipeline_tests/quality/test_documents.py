"""Documents that must not be cut are found: nameless, empty, dirty, or with a secret in them."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from rag_pipeline.documents.clean import clean
from rag_pipeline.model import SourceItem
from rag_pipeline.quality.documents import documents_suite
from rag_pipeline_tests.quality.lakes import check, documents, failed, item, settings, store

SUITE = documents_suite(settings())
TOKEN = "ghp_" + "x9Kq2LmN4pRsT6vWyZ1aBc3dEf5gHi7jKl8m"


def test_documents_as_cleaning_makes_them_pass(tmp_path):
    tombstone = clean(item("gone.md", deleted=True, content=b""))
    generated = clean(
        SourceItem(**{f: getattr(item("a.py"), f) for f in item("a.py").__dataclass_fields__}
                   | {"source_type": "code", "language": "python", "content": b"# @generated\nx = 1\n"})
    )  # fmt: skip
    assert generated.text == ""
    assert check(store(tmp_path, "documents", [*documents(), tombstone, generated]), SUITE).outcome.passed


GOOD = documents()[0]


@pytest.mark.parametrize(
    ("finding", "bad", "shows"),
    [
        ("document_unique", GOOD, "handbook:guide.md"),
        ("document_id", replace(GOOD, source_id="handbook:x", document_id=uuid4()), "handbook:x"),
        ("clean_text", replace(documents("note.md")[0], text="nul \0 here"), "nul"),
        ("clean_text", replace(documents("note.md")[0], text="Cafe\u0301 is not composed"), "Cafe"),
        ("clean_text", replace(documents("note.md")[0], text="two\r\nlines"), "two"),
        ("language_and_markup", replace(documents("note.md")[0], language="<script>"), "script"),
        ("language_and_markup", replace(documents("note.md")[0], markup="docx"), "docx"),
        ("no_secrets", replace(documents("note.md")[0], text=f"a\nb\ntoken = {TOKEN}\n"), "'line_of_text': '3'"),
    ],
)  # fmt: skip
def test_a_document_that_must_not_go_on_blocks(tmp_path, finding, bad, shows):
    lake = store(tmp_path, "documents", [GOOD, bad])
    found = failed(lake, SUITE)
    assert list(found) == [finding]
    assert found[finding].blocks
    assert shows in str(found[finding].sample)
    assert TOKEN not in str(found)
    assert found[finding].rule.remedy
    store(lake, "documents", documents())
    assert failed(lake, SUITE) == {}


def test_a_document_of_another_tenant_blocks(tmp_path):
    foreign = clean(item("x.md", tenant="rival"))
    found = failed(store(tmp_path, "documents", [GOOD, foreign]), SUITE)
    assert list(found) == ["tenant_and_repository"]
    assert "rival/handbook" in str(found["tenant_and_repository"].sample)


def test_a_few_documents_without_a_word_are_life_and_many_are_a_defect(tmp_path):
    def with_blanks(n: int) -> list:
        return [GOOD, *(clean(item(f"{i}.md", content=b" \n")) for i in range(n))]

    lake = store(tmp_path, "documents", with_blanks(5))
    assert failed(lake, SUITE) == {}
    store(lake, "documents", with_blanks(9))
    (finding,) = failed(lake, SUITE).values()
    assert finding.rule.name == "not_empty"
    assert finding.blocks
    assert finding.observed == "0.9 (1 of 1)"
    accepting = documents_suite(settings(quality={"max_empty_documents": 9}))
    assert failed(lake, accepting) == {}


def test_lost_characters_and_lines_that_go_back_only_warn(tmp_path):
    lost = replace(documents("note.md")[0], text="\ufffd\ufffd and words")
    back = replace(GOOD, source_lines=[3, 2, 1])
    found = failed(store(tmp_path, "documents", [lost, back]), SUITE)
    assert set(found) == {"decoded", "source_lines"}
    assert not any(finding.blocks for finding in found.values())


def test_a_text_longer_than_cleaning_takes_blocks(tmp_path):
    small = documents_suite(settings(documents={"max_bytes": 1000}))
    found = failed(store(tmp_path, "documents", documents()), small)
    assert list(found) == ["length"]
    assert found["length"].observed.startswith("1,8")


def test_what_settings_allow_is_no_secret(tmp_path):
    allowed = documents_suite(settings(redaction={"allowed": ["ghp_.*"]}))
    leaky = replace(documents("note.md")[0], text=f"token = {TOKEN}")
    lake = store(tmp_path, "documents", [leaky])
    assert list(failed(lake, SUITE)) == ["no_secrets"]
    assert failed(lake, allowed) == {}


def test_beyond_a_budget_the_quick_detectors_still_find_what_they_know(tmp_path):
    hurried = documents_suite(settings(quality={"secrets_chars": 0}))
    prefixed = replace(documents("note.md")[0], text=f"token = {TOKEN}")
    lake = store(tmp_path, "documents", [GOOD, prefixed])
    assert list(failed(lake, hurried)) == ["no_secrets"]
    store(lake, "documents", documents())
    assert failed(lake, hurried) == {}
