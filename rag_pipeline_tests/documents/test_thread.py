"""A conversation becomes one document with a section for each thing that was said."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.documents import clean
from rag_pipeline.errors import ItemError
from rag_pipeline.model import Document
from rag_pipeline.settings import Threads
from rag_pipeline_tests.documents.threads import (
    archived_threads,
    author,
    comment,
    needs_archive,
    review,
    review_comment,
    thread,
    thread_item,
)


def document_of(**fields: Any) -> Document:
    return clean(thread_item(thread(**fields)))


def sections_of(document: Document) -> list[tuple[str, str, str]]:
    """Name, anchor and text of each section."""
    sections = document.sections or []
    ends = [*(section.start_char for section in sections[1:]), len(document.text)]
    return [(s.name, s.anchor, document.text[s.start_char : end]) for s, end in zip(sections, ends, strict=True)]


def text_of(document: Document, name: str) -> str:
    (text,) = [text for found, _, text in sections_of(document) if found == name]
    return text


def test_an_issue_reads_from_description_to_outcome() -> None:
    document = document_of(
        state="closed", state_reason="not_planned", closed_at="2024-05-03T08:00:00Z", labels=["bug", "ci"],
        milestone="2.0", assignees=["carol"], links=["acme/app#9"],
        entries=[comment("Not *here*."), comment("I see.", by="alice", number=2)],
    )  # fmt: skip
    assert document.title == "Cache is stale"
    assert sections_of(document) == [
        (
            "alice, 2024-05-01",
            "",
            "# Cache is stale\n\nIssue #17 by alice, 2024-05-01 10:11 UTC.\n\nIt serves old pages.\n\n",
        ),
        ("bob, 2024-05-02", "#issuecomment-1", "**bob** commented, 2024-05-02 12:01 UTC\n\nNot *here*.\n\n"),
        ("alice, 2024-05-02", "#issuecomment-2", "**alice** commented, 2024-05-02 12:02 UTC\n\nI see.\n\n"),
        (
            "Outcome",
            "",
            "Outcome of issue #17:\nClosed 2024-05-03 08:00 UTC as not planned.\nLinked to: #9.\n"
            "Labels: bug, ci.\nMilestone: 2.0.\nAssigned to: carol.\n",
        ),
    ]


def test_a_pull_request_tells_its_reviews_its_files_and_what_became_of_it() -> None:
    document = document_of(
        kind="pull_request", state="merged", merged_at="2024-05-03T08:00:00Z", merge_commit="3fa9c2d10b12" + "0" * 28,
        closes=["acme/app#12"], links=["acme/app#12", "acme/app#9"],
        files=[
            {"path": "src/a.py", "status": "modified", "previous_path": None, "additions": 3, "deletions": 1},
            {"path": "src/c.py", "status": "renamed", "previous_path": "src/b.py", "additions": 0, "deletions": 0},
        ],
        entries=[
            review("Please rename.", verdict="changes_requested", number=1),
            review(number=2), review(verdict="commented", number=3), review("Nice.", number=4),
        ],
    )  # fmt: skip
    names = [name for name, _, _ in sections_of(document)]
    assert names == ["alice, 2024-05-01", "bob, 2024-05-02", "bob, 2024-05-02", "Outcome", "Changed files"]
    said = [text for _, anchor, text in sections_of(document) if anchor.startswith("#pullrequestreview")]
    assert said == [
        "**bob** requested changes, 2024-05-02 12:01 UTC\n\nPlease rename.\n\n",
        "**bob** approved, 2024-05-02 12:04 UTC\n\nNice.\n\n",
    ]
    assert text_of(document, "Outcome").splitlines() == [
        "Outcome of pull request #17:",
        "Merged 2024-05-03 08:00 UTC from alice/app:fix into main as 3fa9c2d10b12.",
        "Approved by: bob 2024-05-02.",
        "Closes: #12.",
        "Linked to: #9.",
        "",
    ]
    assert sections_of(document)[-1][1:] == (
        "/files",
        "Files changed by pull request #17:\n\n- src/a.py (+3 −1)\n- src/b.py → src/c.py (+0 −0)\n",
    )


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"state": "open"}, "Open."),
        ({"kind": "pull_request", "state": "open", "draft": True}, "Open, a draft."),
        (
            {"kind": "pull_request", "state": "closed", "closed_at": "2024-05-03T08:00:00Z"},
            "Closed 2024-05-03 08:00 UTC without being merged.",
        ),
        ({"state": "closed", "closed_at": None}, "Closed."),
    ],
)
def test_the_state_is_told_in_the_outcome(fields: dict[str, Any], outcome: str) -> None:
    assert text_of(document_of(labels=["bug"], **fields), "Outcome").splitlines()[1] == outcome


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "open"},
        {"state": "closed", "closed_at": "2024-05-03T08:00:00Z", "state_reason": "completed"},
        {"kind": "pull_request", "state": "open", "draft": True},
        {"kind": "pull_request", "state": "closed", "closed_at": "2024-05-03T08:00:00Z"},
        {"state": ""},
        {"kind": "release", "reference": "acme/app@v2"},
    ],
)
def test_an_outcome_that_only_says_open_or_closed_is_left_out(fields: dict[str, Any]) -> None:
    assert [name for name, _, _ in sections_of(document_of(**fields))] == ["alice, 2024-05-01"]
    told = document_of(**fields, links=["acme/app#9"])
    assert [name for name, _, _ in sections_of(told)] == ["alice, 2024-05-01", "Outcome"]
    assert text_of(told, "Outcome").endswith("\nLinked to: #9.\n")


@pytest.mark.parametrize(("repository", "branch"), [("alice/app", "alice/app:fix"), ("acme/app", "fix"), (None, "fix")])
def test_that_it_was_merged_is_an_outcome(repository: str | None, branch: str) -> None:
    document = document_of(
        kind="pull_request", state="merged", merged_at="2024-05-03T08:00:00Z",
        head={"ref": "fix", "sha": "c" * 40, "repository": repository},
    )  # fmt: skip
    assert text_of(document, "Outcome") == (
        f"Outcome of pull request #17:\nMerged 2024-05-03 08:00 UTC from {branch} into main.\n"
    )


def test_what_changes_often_leaves_the_description_alone() -> None:
    before = document_of(kind="pull_request")
    after = document_of(
        kind="pull_request", state="merged", merged_at="2024-05-03T08:00:00Z", labels=["bug"], milestone="2.0",
        updated_at="2024-05-03T08:00:00Z", entries=[review()], head={"ref": "other", "sha": "d", "repository": None},
    )  # fmt: skip
    assert sections_of(after)[0] == ("alice, 2024-05-01", "", f"{before.text}\n")
    assert [name for name, _, _ in sections_of(before)] == ["alice, 2024-05-01"]
    assert text_of(after, "Outcome").splitlines()[1:] == [
        "Merged 2024-05-03 08:00 UTC from other into main.", "Approved by: bob 2024-05-02.", "Labels: bug.",
        "Milestone: 2.0.",
    ]  # fmt: skip


def in_repository(name: str, kind: str) -> Document:
    """A thread of acme/app, which is called `name` now."""
    fields: dict[str, Any] = {
        "kind": kind, "reference": f"{name}@v2" if kind == "release" else f"{name}#17", "labels": ["bug"],
        "links": [f"{name}#9", "acme/apple#9", "acme/app.js#9", "other/lib#3"], "entries": [comment("I see.")],
    }  # fmt: skip
    if kind == "pull_request":
        # What is known of its branches was read before the repository got another name.
        fields |= {
            "state": "merged", "merged_at": "2024-05-03T08:00:00Z", "closes": [f"{name}#12", "other/lib#4"],
            "base": {"ref": "main", "sha": "b" * 40, "repository": "acme/app"},
            "head": {"ref": "fix", "sha": "c" * 40, "repository": "acme/app"},
            "files": [{"path": "a.py", "status": "modified", "previous_path": None, "additions": 3, "deletions": 1}],
        }  # fmt: skip
    return document_of(**fields)


@pytest.mark.parametrize("kind", ["issue", "pull_request", "release", "discussion"])
def test_a_renamed_repository_changes_neither_text_nor_sections(kind: str) -> None:
    before, after = in_repository("acme/app", kind), in_repository("new-owner/cache", kind)
    assert (after.title, after.text, after.sections) == (before.title, before.text, before.sections)
    assert "acme/app#" not in before.text
    assert "Linked to: #9, acme/apple#9, acme/app.js#9, other/lib#3." in before.text
    if kind == "pull_request":
        assert "from fix into main." in before.text
        assert "Closes: #12, other/lib#4." in before.text


@pytest.mark.parametrize("tag", ["v2", "@acme/core@1.2", "build#7", "v2#"])
def test_a_release_is_called_by_its_whole_tag(tag: str) -> None:
    document = document_of(kind="release", reference=f"acme/app@{tag}", links=["acme/app#5"])
    assert f"Release {tag} by alice," in document.text
    assert text_of(document, "Outcome") == f"Outcome of release {tag}:\nLinked to: #5.\n"


def test_a_release_has_no_outcome_and_one_without_a_name_is_called_by_its_tag() -> None:
    document = document_of(kind="release", number=None, title="", reference="acme/app@v2", body="## Fixed\n\nCache.")
    assert document.title == "acme/app@v2"
    assert document.text == "Release v2 by alice, 2024-05-01 10:11 UTC.\n\n## Fixed\n\nCache.\n"


def test_the_lines_a_review_speaks_of_are_shown_once() -> None:
    document = document_of(
        kind="pull_request",
        entries=[
            review_comment("Why?", number=1, start_line=10),
            review_comment("Because.", number=2, reply_to=1, line=None),
            review_comment("And here?", number=3, line=None, diff_hunk="@@ -1 +1 @@\n+`x`\n+```\n+" + "y" * 999),
        ],
    )
    first, reply, other = (text for _, anchor, text in sections_of(document) if anchor)
    assert first == (
        "**bob** commented on src/a.py lines 10–12, 2024-05-02 12:01 UTC\n\n"
        "```diff\n b\n c\n d\n e\n-old\n+new\n```\n\nWhy?\n\n"
    )
    assert reply == "**bob** replied on src/a.py, 2024-05-02 12:02 UTC\n\nBecause.\n\n"
    assert "````diff\n+`x`\n+```\n+yyy" in other
    assert max(map(len, other.splitlines())) == 300


def test_a_reply_shows_the_lines_when_what_it_answers_was_left_out() -> None:
    document = document_of(
        kind="pull_request",
        entries=[
            review_comment("Consider this.", number=1, author=author("codecov[bot]", bot=True)),
            review_comment("No.", number=2, reply_to=1), review_comment("Right.", number=3, reply_to=1),
        ],
    )  # fmt: skip
    replies = [text for _, anchor, text in sections_of(document) if anchor.startswith("#")]
    assert ["```diff" in text for text in replies] == [True, False]


def test_comments_of_noisy_authors_are_left_out_and_counted() -> None:
    fields: dict[str, Any] = {
        "author": author("renovate[bot]", bot=True),
        "entries": [
            comment("Coverage 99 %", by="codecov-commenter"), review(author=author("dependabot", bot=True), number=2),
            comment("Fine.", number=3),
        ],
    }  # fmt: skip
    document = document_of(**fields)
    assert document.metadata == {"dropped_comments": 2}
    assert "It serves old pages." in document.text
    assert "Coverage" not in document.text
    assert "Approved" not in document.text
    kept = clean(thread_item(thread(**fields)), threads=Threads(kept_authors=("dependabot", "codecov*")))
    assert kept.metadata == {}
    assert "Coverage 99 %" in kept.text
    assert "Approved by: dependabot 2024-05-02." in kept.text


def test_the_metadata_names_the_files_of_a_pull_request_by_all_their_names() -> None:
    def changed(path: str, *, before: str | None = None) -> dict[str, Any]:
        return {"path": path, "status": "modified", "previous_path": before, "additions": 1, "deletions": 0}

    files = [changed("src/c.py", before="src/b.py"), changed("src/a.py"), changed("src/b.py")]
    assert document_of(kind="pull_request", files=files).metadata == {"files": ["src/c.py", "src/b.py", "src/a.py"]}
    many = document_of(kind="pull_request", files=[changed(f"{n}.py") for n in range(400)]).metadata["files"]
    assert many == [f"{n}.py" for n in range(300)]
    secret = document_of(kind="pull_request", files=[changed(f"keys/ghp_{'a1B2' * 9}.txt")])
    assert "ghp_" not in json.dumps(secret.metadata) + secret.text


def test_what_says_nothing_has_no_section() -> None:
    entries = [comment("  \n"), comment("<!-- hidden -->", number=2), comment("> It serves old pages.", number=3)]
    assert [name for name, _, _ in sections_of(document_of(entries=entries))] == ["alice, 2024-05-01"]


def test_where_and_when_it_came_from_is_kept() -> None:
    item = thread_item(
        thread(), metadata={"state": "open"}, scope="visitor:7", as_of=datetime(2024, 5, 4, tzinfo=UTC),
        anchor="#L{start}",
    )  # fmt: skip
    document = clean(item)
    assert (document.scope, document.as_of, document.url) == (item.scope, item.as_of, item.url)
    assert (document.metadata, document.anchor, document.source_lines) == ({"state": "open"}, None, None)


def test_a_deleted_thread_stays_a_tombstone() -> None:
    document = clean(thread_item(b"", deleted=True, title="Cache is stale"))
    assert (document.deleted, document.text, document.sections) == (True, "", None)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"entries": 3}', b"[" * 100_000, b"\xff\xfe", b"1" * 9999]
)
def test_an_unreadable_thread_is_an_item_error_that_says_what_to_do(content: bytes) -> None:
    with pytest.raises(ItemError, match=r"^1:17 is not a thread: .*: read it from its source again, or correct"):
        clean(thread_item(content))


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, [3], [[]], [{}], {"login": 3}, True, "9999-99-99T00:00:00Z"])
def test_one_odd_value_does_not_lose_the_rest(value: object) -> None:
    entries = [review_comment("The rest.", number=1), comment("More.", number=2)]
    whole = thread(kind="pull_request", entries=entries, files=[], labels=["bug"])
    for name in whole.keys() - {"entries"}:
        assert "The rest." in clean(thread_item(json.dumps(whole | {name: value}).encode())).text
    for name in entries[0].keys() - {"body"}:
        odd = whole | {"entries": [entries[0] | {name: value}, value, entries[1]]}
        assert "More." in clean(thread_item(json.dumps(odd).encode())).text


def test_an_anchor_that_is_none_does_not_reach_the_address() -> None:
    entries = [comment("x", anchor='#a" onclick="'), comment("y", number=2, anchor="//evil.example")]
    assert [anchor for _, anchor, _ in sections_of(document_of(entries=entries))] == [""] * 3


TEXTS = st.text(max_size=80) | st.lists(
    st.sampled_from(
        ["> It serves old pages.\n", "> new\n", "<!--", "-->", "```\n", "`", "# h\n", "\n", "word ", "- [ ] a\n",
         "![](x)", "On 1 May bob wrote:\n", "-- \n", "None\n", "\ud800", "\x00", "e", "\u0301", "\r\n", "\u2028"]
    ),
    max_size=20,
).map("".join)  # fmt: skip
ENTRIES = st.lists(
    st.tuples(st.sampled_from([comment, review, review_comment]), TEXTS, st.sampled_from(["bob", "x[bot]", ""])),
    max_size=5,
)


@settings(deadline=None)
@given(title=TEXTS, body=TEXTS, said=ENTRIES, kind=st.sampled_from(["issue", "pull_request", "release", "other"]))
def test_any_thread_becomes_sections_that_tile_a_storable_text(
    title: str, body: str, said: list[tuple[Any, str, str]], kind: str
) -> None:
    entries = [make(text, number=n, by=by) for n, (make, text, by) in enumerate(said)]
    item = thread_item(thread(title=title, body=body, entries=entries) | {"kind": kind}, source_type="github_issue")
    document = clean(item)
    document.text.encode("utf-8")
    assert document.title
    sections = sections_of(document)
    assert (document.sections or [])[0].start_char == 0
    assert "".join(text for _, _, text in sections) == document.text
    assert all(text.strip() and name for name, _, text in sections)
    assert document == clean(item)


@needs_archive
def test_every_thread_of_a_real_project_is_read() -> None:
    documents = [(found, clean(thread_item(found))) for found in archived_threads()]
    assert len(documents) > 600
    for found, document in documents:
        assert document.title == " ".join(found["title"].split())
        anchors = [text for name, _, text in sections_of(document) if name not in ("Outcome", "Changed files")]
        assert len(anchors) <= 1 + len(found["entries"])
        silent = [entry for entry in found["entries"] if not entry["body"].strip()]
        assert len(anchors) >= (1 + len(found["entries"]) - len(silent)) * 0.9
