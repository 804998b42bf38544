"""An edit changes the chunks it touches and at most their neighbours: cost follows change."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.chunking.blocks import EXPRESSION
from rag_pipeline.chunking.packing import gap_priorities, pack
from rag_pipeline.chunking.splitting import Atom
from rag_pipeline.model import Document
from rag_pipeline.settings import Chunking

MakeDocument = Callable[..., Document]
LIMITS = Chunking()


def changed(before: Document, text: str) -> int:
    """How many chunk texts would have to be embedded anew."""
    old, new = (
        Counter(c.text for c in chunk_document(document, settings=LIMITS, count_tokens=count_words))
        for document in (before, replace(before, text=text))
    )
    return sum((new - old).values())


def guide(rng: random.Random, *, sections: int, rst: bool = False) -> str:
    """A long document: sections of a few paragraphs, lists and code."""
    stems = ["form", "duce", "tain", "pose", "fer", "port"]
    words = [prefix + stem for prefix in ("re", "de", "con", "pro", "in", "trans") for stem in stems]
    parts = []
    for number in range(sections):
        title = f"{rng.choice(words).title()} {rng.choice(words)} {number}"
        parts.append(f"{title}\n{'-' * len(title)}" if rst else f"{'#' * rng.choice([2, 2, 3])} {title}")
        for _ in range(rng.randint(1, 5)):
            sentences = [" ".join(rng.choices(words, k=rng.randint(4, 15))).capitalize() + "." for _ in range(5)]
            parts.append("\n".join(sentences[: rng.randint(1, 5)]))
        if rng.random() < 0.4:
            parts.append("\n".join(f"- {' '.join(rng.choices(words, k=6))}" for _ in range(rng.randint(2, 12))))
        if rng.random() < 0.3:
            code = "\n".join(f"    {rng.choice(words)}({rng.randint(0, 99)})" for _ in range(rng.randint(1, 9)))
            parts.append(f"::\n\n{code}" if rst else f"```python\n{code}\n```")
    return "\n\n".join(parts) + "\n"


def one_word_edits(document: Document, rng: random.Random, *, edits: int) -> list[int]:
    """For that many edits, each of the original document, how many chunk texts changed."""
    text = document.text
    words = list(re.finditer(r"[A-Za-z]{3,}", text))
    counts = []
    for _ in range(edits):
        word = rng.choice(words)
        new = rng.choice(["", "zebra", "configuration flag", "x"])
        counts.append(changed(document, text[: word.start()] + new + text[word.end() :]))
    return counts


@pytest.mark.parametrize("path", ["guide.md", "guide.rst"])
def test_one_word_edits_of_prose_stay_local(make_document: MakeDocument, path: str) -> None:
    rng = random.Random(7)
    document = make_document(guide(rng, sections=60, rst=path.endswith("rst")), path=path)
    counts = one_word_edits(document, rng, edits=100)
    assert max(counts) <= 3
    assert sum(counts) / len(counts) <= 1.5


def test_one_word_edits_of_code_stay_local(make_document: MakeDocument) -> None:
    rng = random.Random(8)
    path = Path(__file__).parents[2] / "rag_pipeline" / "lake" / "store.py"
    document = make_document(path.read_text(encoding="utf-8"), path=path.name, source_type="code")
    counts = one_word_edits(document, rng, edits=60)
    assert max(counts) <= 3
    assert sum(counts) / len(counts) <= 1.5


@pytest.mark.parametrize("seed", range(10))
def test_a_paragraph_put_in_changes_few_chunks(make_document: MakeDocument, seed: int) -> None:
    rng = random.Random(seed)
    text = guide(rng, sections=60)
    paragraph = "This paragraph is new, and says so in a few words.\n\n"
    gaps = [0, *(match.end() for match in re.finditer(r"\n\n", text))]
    for at in (0, rng.choice(gaps), rng.choice(gaps)):
        assert changed(make_document(text), text[:at] + paragraph + text[at:]) <= 3


@pytest.mark.parametrize("seed", range(10))
def test_a_section_taken_out_changes_few_chunks(make_document: MakeDocument, seed: int) -> None:
    text = guide(random.Random(seed), sections=60)
    starts = [match.start() for match in re.finditer(r"^##", text, re.MULTILINE)]
    assert changed(make_document(text), text[: starts[20]] + text[starts[21] :]) <= 3


STATEMENTS = """\
import os
from pathlib import Path
LIMIT = 20
names = ["ada", "bob"]
table = {"one": 1, "two": 2}
def find(path, *, least=3):
    return [line for line in open(path) if len(line) > least]
with Path(names[0]).open() as file:
    print(file.read(), end="")
assert find(os.devnull) == []
"""


def test_between_lines_of_code_built_differently_no_word_decides() -> None:
    def order(text: str) -> list[int]:
        starts = [0, *(match.end() for match in re.finditer(r"\n(?=\S)", text))]
        atoms = [Atom(start, start + 1, 0, 1, 0, False) for start in starts]
        priorities = gap_priorities(text, atoms, is_code=True)
        assert len(set(priorities)) == len(atoms)
        return sorted(range(len(atoms)), key=priorities.__getitem__)

    before = order(STATEMENTS)
    for word in re.finditer(r"[A-Za-z_]{3,}", STATEMENTS):
        for new in ("x", "another", "a_much_longer_name"):
            assert order(STATEMENTS[: word.start()] + new + STATEMENTS[word.end() :]) == before


WORD = re.compile(r"[^\W\d_]{3,}")
NOUNS = ["adapter", "binding", "channel", "decoder", "element", "fixture", "gateway", "handler", "index", "journal"]
VERBS = ["Allow", "Bring", "Check", "Drop", "Extend", "Fix", "Guard", "Hide"]


def list_of_links() -> str:
    """Items of one shape, of several lines of link each, between paragraphs."""
    items = [
        f"- `{noun.title()} {other} <https://{noun}.example/{other}/quickstart/{verb.lower()}-{noun}-service>`_"
        for noun, other, verb in zip(NOUNS, NOUNS[1:], VERBS, strict=False)
    ]
    paragraph = "Many of them have a free tier, and other limits.\nThe links below are for some of the common ones."
    return "\n\n".join(["Hosting\n=======", paragraph, "\n".join(items[:5]), paragraph, "Proxies\n=======", paragraph])


def history() -> str:
    """Sections that are built alike: a version, a date, and a few items."""
    rng = random.Random(5)
    parts = []
    for number in range(60):
        title = f"Version {6 - number // 10}.{9 - number % 10}.0"
        items = []
        for _ in range(rng.choice([1, 1, 2, 3, 9])):
            role = rng.choice(
                ["", f" :issue:`{rng.randint(1, 999)}`", f" ``{rng.choice(NOUNS)}_{rng.choice(NOUNS)}``."]
            )
            words = " ".join(rng.choices(NOUNS, k=rng.randint(4, 14)))
            items.append(f"-   {rng.choice(VERBS)} the {words}.{role}")
        parts.append(
            f"{title}\n{'-' * len(title)}\n\nReleased 20{20 - number // 6}-0{number % 9 + 1}-11\n\n" + "\n".join(items)
        )
    return "Changes\n=======\n\n" + "\n\n".join(parts) + "\n"


def table_of_rows() -> str:
    """A long table of rows that are built alike, between short statements."""
    rng = random.Random(9)
    keys = ["_".join(rng.choices(NOUNS, k=rng.randint(1, 4))).upper() for _ in range(26)]
    rows = [f'        "{key}": {rng.choice(["None", "True", "False", "7"])},' for key in keys]
    fields = [
        f"    #: what is used for the {noun}, see there\n    {noun}_class: type = {noun.title()}\n" for noun in NOUNS
    ]
    return (
        "class Application:\n    defaults = dict(\n      {\n"
        + "\n".join(rows)
        + "\n      }\n    )\n\n"
        + "\n".join(fields)
    )


@pytest.mark.parametrize(
    ("path", "make"), [("hosting.rst", list_of_links), ("changes.rst", history), ("application.py", table_of_rows)]
)
def test_no_word_of_what_is_built_alike_moves_many_chunks(
    make_document: MakeDocument, path: str, make: Callable[[], str]
) -> None:
    text = make()
    document = make_document(text, path=path, source_type="code" if path.endswith("py") else "docs")
    words = list(WORD.finditer(document.text))
    words = random.Random(2).sample(words, min(len(words), 150))
    costs = [changed(document, document.text[: m.start()] + "another" + document.text[m.end() :]) for m in words]
    assert max(costs) <= 3
    assert sum(costs) / len(costs) <= 1.1


def priority_order(text: str, starts: list[int], *, level: int) -> list[int]:
    atoms = [Atom(start, start + 1, level, 1, 0, False) for start in starts]
    priorities = gap_priorities(text, atoms, is_code=False)
    assert len(set(priorities)) == len(atoms)
    return sorted(range(len(atoms)), key=priorities.__getitem__)


SECTIONS = """\
One
---

Released 2024-01-18

- Fix ``a``.

Two
---

Released 2024-02-18

- Fix it. :issue:`1`

Three
-----

Released 2024-03-18

- Fix (most of) it.
"""


def test_between_sections_built_differently_no_word_decides_put_in_taken_out_or_replaced() -> None:
    def order(text: str) -> list[int]:
        return priority_order(text, [match.start() for match in re.finditer(r"\w+(?=\n---)", text)], level=2)

    before = order(SECTIONS)
    for word in WORD.finditer(SECTIONS):
        for new in ("x", "another", f"{word[0]} more", "a_much_longer_name"):
            assert order(SECTIONS[: word.start()] + new + SECTIONS[word.end() :]) == before


@pytest.mark.parametrize(("rest", "is_joined"), [(30, False), (20, True)])
def test_the_rest_of_a_statement_that_was_cut_is_joined_to_the_next_only_when_small(rest: int, is_joined: bool) -> None:
    tokens = [(10, 90), (EXPRESSION + 20, 150), (EXPRESSION + 20, rest), (10, 60), (10, 60)]
    atoms = [Atom(at, at + 1, level, count, 0, False) for at, (level, count) in enumerate(tokens)]
    pieces = pack("(,;.:", atoms, max_tokens=160, min_tokens=24, is_code=True)
    assert any(start <= 2 < 3 < end for start, end in pieces) is is_joined


def test_a_long_text_without_structure_is_local_too(make_document: MakeDocument) -> None:
    rng = random.Random(3)
    words = [f"w{n}" for n in range(500)]
    document = make_document(" ".join(rng.choices(words, k=5000)), path="flat.txt")
    word = len(document.text) // 2
    assert changed(document, document.text[:word] + " inserted " + document.text[word:]) <= 4
    assert changed(document, "inserted " + document.text) <= 4
