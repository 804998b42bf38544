"""What nobody said, or said a second time, is left out of a conversation; everything else stays."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag_pipeline.documents import clean
from rag_pipeline.documents.thread_content import Author
from rag_pipeline.documents.thread_noise import clean_description, clean_reply, is_noise
from rag_pipeline.documents.thread_quotes import Said
from rag_pipeline.settings import Threads
from rag_pipeline_tests.documents.threads import comment, thread, thread_item

DESCRIPTION = (
    "The cache serves pages that were deleted an hour ago,\nbecause its key does not hold the version.\n\n"
    "See the [guide](https://example.org/guide) for more on `cache.key`.\n\n```python\nkey = (path, user)\n```\n"
)


def reply(text: str, *earlier: str) -> str:
    """A comment cleaned, after these were said."""
    said = Said()
    for each in earlier or (DESCRIPTION,):
        said.add(each)
    return clean_reply(text, said)


# Authors.


@pytest.mark.parametrize(
    ("login", "bot", "noisy"),
    [
        ("dependabot[bot]", False, True), ("dependabot", True, True), ("dependabot", False, False),
        ("Codecov-Commenter", False, True), ("claassistant", False, True), ("probot-x", False, True),
        ("albert", False, False), ("jacob", False, False), ("robot", False, False), ("stale", False, True),
        ("ghost", False, False), ("", False, False), ("github-actions[bot]", True, True), ("vercel", True, True),
        ("sonarqubecloud", True, True), ("pre-commit-ci[bot]", True, True), ("readthedocs-x[bot]", True, True),
        ("Copilot", True, False), ("copilot-pull-request-reviewer[bot]", True, False), ("coderabbitai", True, False),
        ("sourcery-ai[bot]", True, False), ("gemini-code-assist[bot]", True, False), ("claude[bot]", True, False),
        ("greptile-apps[bot]", True, False), ("our-own[bot]", True, False),
    ],
)  # fmt: skip
def test_bots_are_noise_and_people_are_not(login: str, bot: bool, noisy: bool) -> None:
    assert is_noise(Author(login=login, bot=bot), Threads()) is noisy


def test_kept_authors_are_never_noise() -> None:
    threads = Threads(kept_authors=("Renovate*",))
    assert not is_noise(Author(login="renovate[bot]", bot=True), threads)
    assert is_noise(Author(login="stale[bot]", bot=True), threads)
    assert not is_noise(Author(login="stale[bot]", bot=True), Threads(kept_authors=("*[bot]",)))
    assert is_noise(Author(login="other[bot]", bot=True), Threads(noisy_authors=("*[bot]",)))
    assert not is_noise(Author(login="other", bot=True), Threads(noisy_authors=()))


# Comments and images.


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<!-- note -->\ntext", "text"),
        ("a <!-- b\nc --> d", "a  d"),
        ("a\n\n<!-- b\n\n```\nc\n-->\n\nd", "a\n\nd"),
        ("a\n<!-- never closed\nb", "a"),
        ("a <!-- never closed\n\nb", "a <!-- never closed\n\nb"),
        ("<!-->a", "a"),
        ("`<!-- b -->` and ``<!-- ` -->``", "`<!-- b -->` and ``<!-- ` -->``"),
        ("` <!-- b -->", "`"),
        (r"\`<!-- b -->` and \<!-- c -->", r"\`` and \<!-- c -->"),
        ("```html\n<!-- kept -->\n```\n<!-- not -->", "```html\n<!-- kept -->\n```"),
        ("~~~\n<!-- kept", "~~~\n<!-- kept"),
        ("- x\n  ```\n  <!-- kept -->\n  ```", "- x\n  ```\n  <!-- kept -->\n  ```"),
        ("> ```\n> <!-- kept -->\n\n<!-- not -->x", "> ```\n> <!-- kept -->\n\nx"),
        ("- a <!-- x\n- b --> c", "- a <!-- x\n- b --> c"),
        ("a\n\n\n\n\nb\n", "a\n\nb"),
        ("```\na\n\n\n\nb\n```", "```\na\n\n\n\nb\n```"),
    ],
)
def test_html_comments_are_hidden_as_on_github(text: str, shown: str) -> None:
    assert clean_description(text).rstrip() == shown
    assert reply(text, "nothing").rstrip() == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a ![](https://x.example/a.png) b", "a  b"),
        ("![image](x.png)\nb", "b"),
        ("[![](badge.svg)](https://ci.example)\nb", "b"),
        ('<img width="10" src="x.png">\nb', "b"),
        ('<img alt="Image" src="x.png" />\nb', "b"),
        ("![the flow](x.png)", "![the flow](x.png)"),
        ('<img alt="image of the flow" src="x.png">', "image of the flow"),
        ("`![](x.png)`", "`![](x.png)`"),
        ("```\n![](x.png)\n```", "```\n![](x.png)\n```"),
        ("<details><summary>Log</summary>\n\nline\n\n</details>", "Log\n\nline"),
    ],
)
def test_images_without_words_are_left_out(text: str, shown: str) -> None:
    assert clean_description(text) == shown


# Templates.


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("### What\n\nIt broke.\n\n### Logs\n\n_No response_\n", "### What\n\nIt broke."),
        ("## A\n\n## B\n\ntext\n\n## C\n", "## B\n\ntext"),
        ("# A\n\n## B\n\n### C\n\ntext", "# A\n\n## B\n\n### C\n\ntext"),
        ("# A\n\ntext\n\n## B\n\n### C\n\n# D\n\ntext", "# A\n\ntext\n\n# D\n\ntext"),
        ("## A\n\nN/A\n\n### B\n\ntext", "## A\n\n### B\n\ntext"),
        ("## A\n\n-\n\n## B\n\nNone.\n\n## C\n\nx", "## C\n\nx"),
        ("## A\n\nNone of them.\n\n## B\n\nNone\n\nBut see C.", "## A\n\nNone of them.\n\n## B\n\nNone\n\nBut see C."),
        ("## A\n\n<!-- fill me -->\n\n## B\n\n- [ ] tests\n- [x] docs", "## B\n\n- [ ] tests\n- [x] docs"),
        ("## A\n\n```\n# not a heading\n```", "## A\n\n```\n# not a heading\n```"),
        ("None", "None"),
        ("# Please add dark mode", "# Please add dark mode"),
        ("### A\n\n_No response_", ""),
    ],
)
def test_sections_of_a_template_that_were_left_empty_go(text: str, left: str) -> None:
    assert clean_description(text) == left


def test_a_heading_is_all_that_a_comment_may_say() -> None:
    assert (
        reply("Two questions.\n\n# Is it safe?\n\n# Is it fast?") == "Two questions.\n\n# Is it safe?\n\n# Is it fast?"
    )


# Quotes.


@pytest.mark.parametrize(
    "quote",
    [
        "> The cache serves pages that were deleted an hour ago,\n> because its key does not hold the version.",
        ">because its key does not hold the version.",
        "> The cache serves pages that were deleted\n> an hour ago, because its key does\n> not hold the version.",
        "> The cache serves pages […] because its key does not hold the version.",
        "> ... serves pages that were deleted ...",
        "> The cache serves pages that were because its key does not hold the version.",
        "> see the guide for more on cache.key.",
        "> See the guide <https://example.org/guide> for more",
        "> https://example.org/guide",
        "> > The cache serves pages\n> >\n> > See the guide for more",
        ">> not hold",
        "> ```python\n> key = (path, user)\n> ```",
        "> THE **cache** serves _pages_ that were deleted",
    ],
)
def test_a_quote_of_what_was_said_goes(quote: str) -> None:
    assert reply(f"{quote}\n\nYes.") == "Yes."
    assert reply(f"No.\n\n{quote}\n\nYes.") == "No.\n\nYes."


@pytest.mark.parametrize(
    "quote",
    [
        "> A cache MUST NOT serve what was deleted.",
        "> The cache serves pages; the specification says that it must not do so at all.",
        "> The server must answer\n> an hour ago\n> with the status that the origin gave",
        ">>> key = (1, 2)\n>>> print(key)",
        "> ```\n> key = (path, user)\n> other = (path, user)\n> ```",
        "> https://example.org/other",
        "> 👍",
        "```\n> The cache serves pages that were deleted\n```",
    ],
)
def test_a_quote_of_anything_else_stays(quote: str) -> None:
    assert reply(f"{quote}\n\nYes.") == f"{quote}\n\nYes."


def test_of_a_quote_only_what_is_new_stays() -> None:
    quote = "> The cache serves pages that were deleted\n>\n> A cache must ask the origin first."
    assert reply(f"{quote}\n\nYes.") == "> A cache must ask the origin first.\n\nYes."


def test_what_a_comment_quotes_must_have_been_said_before_it() -> None:
    entries = [
        comment("> All pages are served from the second server.\n\nWhere is that from?", number=1),
        comment("All pages are served from the second server.", number=2),
        comment("> All pages are served from the second server.\n\nOh.", number=3),
    ]
    assert clean(thread_item(thread(entries=entries))).text.count("All pages are served") == 2


MAIL = """Works for me.

On Thu, May 2, 2024 at 2:01 PM Bob Bobson ***@***.***>
wrote:

> The cache serves pages that were deleted an hour ago, because its key
> does not hold the version.
>
> —
> Reply to this email directly, view it on GitHub
> <https://github.com/acme/app/issues/17#issuecomment-1>, or unsubscribe
> <https://github.com/notifications/unsubscribe-auth/AAA>
> .
> You are receiving this because you authored the thread.Message ID:
> ***@***.***>
>
"""


@pytest.mark.parametrize(
    "mail",
    [
        MAIL,
        "Works for me.\n\nAm Do., 2. Mai 2024 um 14:01 Uhr schrieb Bob <bob@example.org>:\n\n> The cache serves pages",
        "Works for me.\n\nOn 2 May 2024, at 14:01, Bob wrote:\n",
        "Works for me.\n\nSent from my iPhone\n\n> On 2 May 2024, at 14:01, Bob wrote:\n> \n> The cache serves pages",
        "Works for me.\n\n-----Original Message-----\nFrom: Bob\nSubject: x\n\nanything",
        "Works for me.\n\n________________________________\nFrom: Bob <bob@example.org>\nSent: Thursday\nTo: a\n"
        "Subject: Re: [acme/app] Cache is stale (#17)\n\nanything",
        "Works for me.\n\n—\nReply to this email directly, view it on GitHub, or unsubscribe.\nanything",
        "Works for me.\n\n-- \nAlice\n+1 555 0100",
        "Works for me.\n\nGet Outlook for iOS",
    ],
)
def test_what_e_mail_adds_goes(mail: str) -> None:
    assert reply(mail) == "Works for me."


@pytest.mark.parametrize(
    "text",
    [
        "On 2 May Bob wrote:\n\n> A cache must ask the origin first.\n\nHe is right.",
        "> On 2 May Bob wrote:\n>\n> > A cache must ask the origin first.",
        "From: here\nTo: there\n\nis a long way",
        "Title\n--\n\ntext",
        "-- \n" + "line\n" * 20 + "end",
        "```\n-----Original Message-----\n```\nis what it sends",
        "Sent from my iPhone it looks fine\n\nOn the desktop it does not",
    ],
)
def test_what_only_looks_like_e_mail_stays(text: str) -> None:
    assert reply(text) == text


# Whatever is put in.

FOREIGN = str.maketrans("abcdefghij", "klmnopqrst")
WORDS = st.text("abcdefghij", min_size=3, max_size=8)
LINES = st.lists(WORDS, min_size=2, max_size=8).map(" ".join)
TEXTS = st.lists(LINES, min_size=1, max_size=6).map("\n".join)
PIECES = st.lists(
    st.sampled_from(
        ["<!--", "-->", "`", "``", "```\n", "~~~\n", "> ", ">> ", "\n", "\n\n", "# a\n", "None\n", "word ", "![](x)",
         "[![](x)](y)", "<img src=x>", "- ", "    ", "\\", "On 1 a wrote:\n", "-- \n", "From: a\n", "…", "漢字"]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@given(TEXTS)
def test_a_text_without_any_noise_is_left_as_it_is(text: str) -> None:
    assert clean_description(text) == text
    assert reply(text, text) == text


@given(said=TEXTS, words=TEXTS, width=st.integers(3, 60), depth=st.integers(1, 3))
def test_a_quote_of_an_earlier_text_goes_however_it_is_wrapped(said: str, words: str, width: int, depth: int) -> None:
    lines, line = [], ""
    for word in said.split():
        line = f"{line} {word}".strip()
        if len(line) >= width:
            lines, line = [*lines, line], ""
    quote = "\n".join(">" * depth + " " + each for each in [*lines, line] if each)
    assert reply(f"{words}\n\n{quote}", said) == words


@given(said=TEXTS, quote=TEXTS)
def test_a_quote_of_words_that_never_occurred_stays(said: str, quote: str) -> None:
    # Letters that no other text is made of: not one word of the quote is among what was said.
    text = "\n".join(f"> {line.translate(FOREIGN)}" for line in quote.split("\n"))
    assert reply(text, said) == text


@settings(deadline=None)
@given(said=PIECES, text=PIECES)
@example(said="", text="<!-<!-- -->-")
def test_cleaning_only_takes_away(said: str, text: str) -> None:
    for left in (clean_description(text), reply(text, said)):
        characters = iter(text)
        assert all(character in characters for character in left), "something was put in or moved"


@given(PIECES)
def test_what_is_fenced_stays_word_for_word(code: str) -> None:
    fence = "`" * 60
    block = f"{fence}\n{code}\n{fence}"
    assert clean_description(f"text\n\n{block}\n\nmore") == f"text\n\n{block}\n\nmore"
    assert reply(f"text\n\n{block}\n\nmore", code) == f"text\n\n{block}\n\nmore"


SIZE = 250_000
HOSTILE = [
    "<!--", "<!-- -->", "a <!-- ", "a <!-- b\n", "` `` ``` ", "`", "> a\n", ">", "># a\n\n", "\n", "# \n",
    "# a\n## b\n", "![](", "[![](", '![](x "', "<img ", "<img alt=", "On 1 wrote:\n> x\n", "> On 1 wrote:\n", "-- \n",
    "From: a\nTo: b\n", "word ", "x", "```\n", "> ```\n", "- ```\n", " ", "漢字", "\\", "> https://", "> ...\n",
    "> […] x\n", "a\u0301", "- a\n", "# x\nNone\n", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    text = (piece * SIZE)[:SIZE]
    for item in (thread_item(thread(body=text)), thread_item(thread(body="x", entries=[comment(text)]))):
        started = time.process_time()
        clean(item)
        assert time.process_time() - started < 2


@pytest.mark.parametrize("tail", ["![" + " " * SIZE, "![](" + "x" * SIZE, "<img " + "alt " * (SIZE // 4)])
def test_what_never_closes_takes_linear_time(tail: str) -> None:
    started = time.process_time()
    clean(thread_item(thread(body=tail)))
    assert time.process_time() - started < 2


def test_a_long_conversation_of_quotes_takes_seconds() -> None:
    bodies = [" ".join(f"w{(n * 7919 + k * k) % 5003}" for k in range(150)) + "." for n in range(1800)]
    entries = [
        comment(f"> {bodies[n * 31 % max(1, n)]}\n\n{body}", number=n, created_at="2024-05-02T12:00:00Z")
        for n, body in enumerate(bodies)
    ]
    item = thread_item(thread(entries=entries))
    assert len(item.content) > 3_000_000
    started = time.process_time()
    document = clean(item)
    assert time.process_time() - started < 8
    assert "\n> " not in document.text[5000:]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a &lt;div&gt; &amp;lt; 5&nbsp;&gt; 3 &#39;x&#x27; &unknown; a & b", "a <div> &lt; 5 > 3 'x' &unknown; a & b"),
        ("x<sup>2</sup> H<sub>2</sub>O one<br>two<BR/>three <kbd>Ctrl</kbd>", "x^2 H2O one two three Ctrl"),
        ("`&lt;b&gt; <b>` ``a `<i>` b`` <b>bold</b>", "`&lt;b&gt; <b>` ``a `<i>` b`` bold"),
        ("```html\n<b>&lt;</b>\n```", "```html\n<b>&lt;</b>\n```"),
        ("Code:\n\n    <b>&lt;</b>", "Code:\n\n    <b>&lt;</b>"),
        ("List<String> and <Component> in <https://x.org>", "List<String> and <Component> in <https://x.org>"),
        ('<p align="center"><img src="https://img.shields.io/x.svg" alt="build"></p>\nb', "b"),
        ("> <i>quoted</i> &quot;words&quot;", '> quoted "words"'),
        ("\\<b> and \\&lt;", "\\<b> and \\&lt;"),
        ('<abbr title="World Wide">WW</abbr>', "WW (World Wide)"),
        ("<ul><li>one</li>\n<li>two</li></ul>", "one\ntwo"),
    ],
)
def test_tags_and_entities_become_text_outside_code(text: str, shown: str) -> None:
    assert clean_description(text) == shown


def test_a_quote_of_what_tags_and_entities_show_is_repetition() -> None:
    said = Said()
    said.add("The <b>first</b> value of a&nbsp;&lt;T&gt; is wrong&hellip; and x<sup>2</sup> too, for all of us.")
    reply = "> The first value of a <T> is wrong… and x^2 too, for all of us.\n\nYes."
    assert clean_reply(reply, said) == "Yes."
