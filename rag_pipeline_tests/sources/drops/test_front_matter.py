"""Front matter of drops is absent, read or broken: what was meant to hide a text never lets everyone see it."""

from __future__ import annotations

import json
import re
import time

import pytest

from rag_pipeline.front_matter import Broken, read_front_matter
from rag_pipeline.front_matter.keys import KEYS, similar_key
from rag_pipeline_tests.sources.drops.parsing import item, parse, refusal
from rag_pipeline_tests.sources.drops.taking import Taking

HEADER = "id: p1\nscope: user:jane\ntitle: Plans\n"
TEXT = "The merger closes in May.\n"
KINDS = ("a.md", "a.markdown", "a.txt", "a.rst", "a.adoc", "a.html")

BROKEN = {
    # Neither YAML nor TOML.
    "colon in a value": (f"---\n{HEADER}more: Q3: plans\n---\n", 5),
    "tab": ("---\nid: p1\n\tscope: user:jane\n---\n", 3),
    "at sign": (f"---\n{HEADER}author: @jane\n---\n", 5),
    "glob": ("---\nid: p1\nglob: *.md\n---\n", 3),
    "template": ("---\ntitle: {{ title }}\n---\n", 2),
    "no-break space": (f"---\n{HEADER}team:\u00a0x\n---\n", 6),
    "no-break space alone": ("---\nscope:\u00a0user:jane\n---\n", 2),
    "no space": ("---\nscope:user:jane\n---\n", 2),
    "full-width colon": ("---\nscope\uff1auser:jane\n---\n", 2),
    "control character": ("---\nid: x\ns\x00cope: user:jane\n---\n", 3),
    "list": ("---\n- scope: user:jane\n---\n", 2),
    "deep": ("---\nscope: " + "[" * 20_000 + "\n---\n", 2),
    "deep objects": ("---\nscope: " + "{a: " * 10_000 + "\n---\n", 2),
    "toml value": ("+++\nid = 'p1'\nscope = user:jane\n+++\n", 3),
    "deep toml": ("+++\nscope = " + "[" * 20_000 + "\n+++\n", 2),
    # Read in another way than it was meant.
    "key twice": ("---\nscope: user:jane\nscope: null\n---\n", 3),
    "toml key twice": ("+++\nscope = 'user:jane'\nscope = ''\n+++\n", 3),
    "part of a value": ("---\ntitle: x\n  scope:\u00a0user:jane\n---\n", 3),
    "below another key": ("---\npage:\n  scope: user:jane\n---\n", 2),
    "second document": ("---\nid: a\n---\nscope: user:jane\n---\n", 4),
    "no value": ("---\nid: p1\nscope:\n---\n", 3),
    # Where it does not belong.
    "never closed": (f"---\n{HEADER}\n", 1),
    "closed by another line": (f"---\n{HEADER}----\n", 5),
    "closed in another way": (f"---\n{HEADER}+++\n", 5),
    "longer than the limit": (f"---\n{HEADER}{'x: y' * 15_000}\n---\n", 1),
    "many lines": (f"---\n{HEADER}{'- y' + chr(10) * 2}{('z: y' + chr(10)) * 15_000}---\n", 1),
    "blank line": (f"\n---\n{HEADER}---\n", 1),
    "comment": (f"# yes\n---\n{HEADER}---\n", 1),
    "html comment": (f"<!-- a\nb -->\n\n---\n{HEADER}---\n", 1),
    "zero-width space": (f"\u200b---\n{HEADER}---\n", 1),
    "indented": ("  ---\n  id: p1\n  scope: user:jane\n  ---\n", 1),
    "four dashes": (f"----\n{HEADER}----\n", 1),
    "two dashes": (f"--\n{HEADER}--\n", 1),
    "apart": (f"-- -\n{HEADER}---\n", 1),
    "em dashes": (f"\u2014\u2014\u2014\n{HEADER}\u2014\u2014\u2014\n", 1),
    "named": (f"---yaml\n{HEADER}---\n", 1),
    "json": (';;;\n{"scope": "user:jane"}\n;;;\n', 1),
    "json object": ('{\n"id": "p1",\n"scope": "user:jane"\n}\n\n', 3),
    "line separators": ("---\u2028scope: user:jane\u2028---\u2028", 1),
    "never opened": (f"{HEADER}---\n", 2),
    "alone": ("scope: user:jane\n\n", 1),
    "field of reStructuredText": (":scope: user:jane\n\n", 1),
    "in a comment": ("<!--\nscope: user:jane\n-->\n", 2),
    "on one line": ("--- {scope: user:jane}\n", 1),
    # At another place of its line, or below a title.
    "in metadata": ("---\nmetadata: {scope: user:jane}\n---\n", 2),
    "in metadata of a tenant": ("---\ntenant: acme\nmetadata: {scope: user:jane}\n---\n", 2),
    "in toml's metadata": ("+++\n[metadata]\nscope = 'user:jane'\n+++\n", 2),
    "a list as a key": ("---\n? [scope]\n: user:jane\n---\n", 2),
    "merged": ("---\nbase: &b {scope: user:jane}\n<<: *b\n---\n", 3),
    "without a colon": ("---\nscope user:jane\n---\n", 2),
    "comment of Markdown": ("[//]: # (scope: user:jane)\n\n", 1),
    "fields below a title": ("Title\n=====\n\n:scope: user:jane\n\n", 4),
    "below an introduction": ("Words.\n\n---\nscope: user:jane\n---\n", 4),
    "meta element": ('<html><head>\n<meta name="scope" content="user:jane">\n</head>\n', 2),
    "again behind it": ("---\nscope: null\n---\n---\nscope: user:jane\n---\n", 4),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("header", "line"), BROKEN.values(), ids=BROKEN)
def test_broken_front_matter_is_refused_with_its_line(name: str, header: str, line: int) -> None:
    said = re.match(rf"{name}: line (\d+): broken front matter: .", refusal(header + TEXT, name))
    assert said
    assert int(said[1]) == line


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize(
    "header", ["---\nID: p1\nScope: user:jane\n---\n", "+++\nid = 'p1'\nSCOPE = 'user:jane'\n+++\n"]
)
def test_yaml_and_toml_are_read_in_every_encoding(header: str, encoding: str, newline: str) -> None:
    found = item((header + TEXT).replace("\n", newline).encode(encoding), "a.md")
    assert (found.source_id, found.scope) == ("p1", "user:jane")
    assert "scope" not in found.content.decode(encoding).lower()


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nProse about scope and title.\n\n---\nMore.\n",
        "---\nSome prose: it is good.\n\n---\nMore.\n",
        "---\nSome prose\nof two lines.\n---\n",
        "---\n\n# Title\n\n```\nid: 5\n```\n\n---\n",
        "# Title\n\n---\n\nText.\n",
        "Scope\n-----\nText.\n",
        "Title: of a page\n----------------\nText.\n",
        "----\n\n# Title\n\n----\n",
        "- title: x\n- scope\n",
        "Scope: everything that follows\n\nText.\n",
        "\u2014 He said: no \u2014\nid: 5\n",
        "***\nid: 5\n***\n",
        "# Scopes\n\n```yaml\nscope: user:jane\n```\n",
        "# Scopes\n\n    scope: user:jane\n",
        "# Scopes\n\nWrite `scope: user:jane` there.\n",
        "***",
        "---",
    ],
)
def test_a_text_that_begins_with_a_rule_is_taken_as_it_is(text: str) -> None:
    assert item(text, "a.md").content == text.encode()


@pytest.mark.parametrize(
    "key",
    [
        "scopes", "Scope ", "scop", "socpe", "scoope", "scope_", "_scope", "sc-ope", "scope_id", "tenants", "tenent",
        "tenant-id", "tenantName", "source-type", "sourceType", "source type", "SourceTypes", "sourcetype", "updatedAt",
        "updated-at", "update_at", "titles", "titel", "ids", "urls", "u.r.l", "meta-data", "delete", "deletd",
        "ѕсоре", "sсope", "scοpe", "ｓｃｏｐｅ", "sc\u200bope", "sc\u00adope", "scope\u00a0",
        "ꜱᴄᴏᴘᴇ", "scópe", "𝐬𝐜𝐨𝐩𝐞", "ſcope",
    ],
)  # fmt: skip
def test_a_key_that_looks_like_a_known_one_is_an_error(key: str) -> None:
    like = similar_key(key)
    for name, text in (
        ("a.md", f"---\nid: p1\n{json.dumps(key, ensure_ascii=False)}: user:jane\n---\n{TEXT}"),
        ("a.json", json.dumps({"id": "p1", "content": TEXT, key: "user:jane"})),
        ("a.ndjson", json.dumps({"id": "p1", "content": TEXT, key: "user:jane"})),
    ):
        assert f"looks like {like}: write {like}" in refusal(text, name)


@pytest.mark.parametrize(
    "key",
    ["author", "tags", "date", "context", "subtitle", "updated", "created_at", "source", "type", "slope", "team",
     "link", "автор", "名前", "oauth_scope", "status", "name", "description", "i", "d", "", "titre", "contact"],
)  # fmt: skip
def test_a_key_of_another_meaning_is_metadata(key: str) -> None:
    assert similar_key(key) is None
    found = item({"id": "p1", "content": TEXT, key: "x"})
    assert found.metadata[key] == "x"


@pytest.mark.parametrize("key", sorted(KEYS))
def test_keys_are_matched_without_case_and_once(key: str) -> None:
    record = {"id": "p1", "content": TEXT} | {key: {"id": "p1", "deleted": False, "metadata": {}}.get(key)}
    upper = {(name.upper() if name == key else name): value for name, value in record.items()}
    if key != "content":
        assert parse(upper).items == parse(record).items
    assert "are the same: keep one of them" in refusal({**record, key.upper(): "x"})


@pytest.mark.parametrize(
    "value", ["[user:jane]", "5", "{user: jane}", "''", "true", "jane", "2024-05-01", "|\n  user:j\n  x"]
)
def test_a_scope_of_a_wrong_kind_is_refused(value: str) -> None:
    assert re.search(r"scope .*\(line 2\)", refusal(f"---\nscope: {value}\n---\n{TEXT}", "a.md"))


@pytest.mark.parametrize("more", ["", "metadata: {scope: user:jane}\n", "---\n\nscope: user:jane\n\n"])
def test_a_scope_that_is_explicitly_null_is_none(more: str) -> None:
    end = "" if more.startswith("---") else "---\n"
    assert item(f"---\nscope: null\n{more}{end}{TEXT}", "a.md").scope is None


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"scope": "user:jane"}},
        {"page": [{"Scopes": "user:jane"}]},
        {"content": f"scope: user:jane\n\n{TEXT}"},
    ],
)
def test_a_record_that_says_it_elsewhere_is_refused(more: dict[str, object]) -> None:
    record = {"id": "p1", "tenant": "acme", "content": TEXT} | more
    assert "give scope as a key of the record" in refusal(record)
    assert item(record | {"scope": None}).scope is None
    assert item(record | {"scope": "user:ann"}).scope == "user:ann"


@pytest.mark.parametrize("head", ["---\nscope: user:jane\n---", "# scope: user:jane", "scope user:jane"])
def test_lines_below_a_header_with_a_scope_are_refused(head: str) -> None:
    assert "says who may see the records" in refusal(
        f"{head}\n" + json.dumps({"id": "p1", "content": TEXT}), "a.ndjson"
    )


def test_a_drop_with_broken_front_matter_is_rejected_with_its_reason(tmp_path) -> None:
    taking = Taking(tmp_path)
    taking.drop("plans.md", f"---\nid: p1\nscope: user:jane\ntitle: Q3: plans\n---\n{TEXT}")
    taking.drop("good.md", f"---\nid: p2\nscope: user:jane\ntitle: 'Q3: plans'\n---\n{TEXT}")
    assert [name for name, _ in taking.take().rejected] == ["plans.md"]
    assert taking.reason("plans.md").startswith("plans.md: line 4: broken front matter: mapping values are not allowed")
    assert [(found.source_id, found.scope) for found in taking.items()] == [("p2", "user:jane")]


@pytest.mark.parametrize(
    "header", ["---\nscope: user:jane\n---\n", "---\nScopes: user:jane\n---\n", "---\ntenant: globex\n---\n",
               "---\nscope: user:jane: x\n---\n", "----\nscope: user:jane\n----\n"],
)  # fmt: skip
def test_a_record_whose_content_says_who_may_see_it_is_refused(header: str) -> None:
    assert re.search("front matter", refusal({"id": "p1", "content": header + TEXT}))


def test_a_record_and_its_content_may_say_the_same() -> None:
    record = {"id": "p1", "scope": "user:jane", "content": f"---\nscope: user:jane\ntitle: x\n---\n{TEXT}"}
    assert item(record).scope == "user:jane"
    assert item({"id": "p1", "content": f"---\ntitle: Q3: x\n---\n{TEXT}"}).scope is None


@pytest.mark.parametrize("text", ["# a\n" * 200_000, "<!--\n" + "x\n" * 200_000, "---\n" * 100_000, "\n" * 500_000,
                                  "-" * 500_000, "- " * 200_000, "---\n" + "x" * 500_000, "a" * 500_000])  # fmt: skip
def test_looking_for_front_matter_takes_no_time(text: str) -> None:
    started = time.perf_counter()
    assert not isinstance(read_front_matter(text, clean=str), Broken)
    assert time.perf_counter() - started < 1
