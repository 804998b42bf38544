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
from rag_pipeline.chunking.packing import gap_priorities
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


def test_a_long_text_without_structure_is_local_too(make_document: MakeDocument) -> None:
    rng = random.Random(3)
    words = [f"w{n}" for n in range(500)]
    document = make_document(" ".join(rng.choices(words, k=5000)), path="flat.txt")
    word = len(document.text) // 2
    assert changed(document, document.text[:word] + " inserted " + document.text[word:]) <= 4
    assert changed(document, "inserted " + document.text) <= 4
