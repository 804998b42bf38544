"""What holds of every extract, and texts that no extractor may stumble over."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

from rag_pipeline.documents.extract import Extract

HOSTILE = Path(__file__).parents[3] / "shared" / "data" / "hostile"
"""Third-party texts, absent from a fresh clone."""
_WORD = re.compile(r"\w+")
MAX_SECONDS = 6.0
"""For a hostile text of 300,000 characters: quadratic time would be minutes, and machines differ."""


def extract_lines(extract: Extract) -> list[int]:
    """The source line of each line of the extract's text."""
    count = extract.text.count("\n") + 1
    return list(range(1, count + 1)) if extract.source_lines is None else list(extract.source_lines)


def assert_sound(text: str, extract: Extract, *, added: frozenset[str] = frozenset()) -> None:
    """Each line has its source line, in order; its words stand there or right below, save those that were `added`."""
    lines = extract_lines(extract)
    source = text.split("\n")
    kept = extract.text.split("\n")
    assert len(lines) == len(kept)
    assert lines == sorted(lines)
    assert all(1 <= number <= len(source) for number in lines)
    for line, number in zip(kept, lines, strict=True):
        missing = set(_WORD.findall(line)) - set(_WORD.findall(source[number - 1])) - added
        assert all(word in source[number - 1] for word in missing), (line, source[number - 1])


def assert_quick(extract: Callable[[str], Extract], text: str) -> Extract:
    """The extract of a hostile text, made in linear time."""
    begun = time.process_time()
    made = extract(text)
    assert time.process_time() - begun < MAX_SECONDS
    assert len(extract_lines(made)) == made.text.count("\n") + 1
    return made


def commonmark_examples() -> list[str]:
    """The examples of the CommonMark specification; none where the data is absent."""
    path = HOSTILE / "commonmark-spec" / "spec_tests.json"
    return [example["markdown"] for example in json.loads(path.read_text("utf-8"))] if path.exists() else []


def naughty_strings() -> list[str]:
    """The big list of naughty strings; none where the data is absent."""
    path = HOSTILE / "blns" / "blns.json"
    return list(json.loads(path.read_text("utf-8"))) if path.exists() else []
