"""Notebooks are checked when they are dropped: a broken one is rejected, and is no item that fails in every run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_pipeline_tests.sources.drops.parsing import item, refusal
from rag_pipeline_tests.sources.drops.taking import Taking

CELL = {"cell_type": "markdown", "source": ["# Words"]}
BROKEN = {
    "no JSON": "{cells: []}",
    "an array": "[]",
    "no cells": '{"nbformat": 4}',
    "cells of another kind": '{"cells": 3}',
    "worksheets without cells": '{"worksheets": 3}',
    "deep": "[" * 100_000,
    "half": '{"cells": [',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_is_no_notebook_is_refused_in_a_file_and_in_a_record(text: str) -> None:
    assert "is not a notebook: " in refusal(text, "a.ipynb")
    record = {"id": "n", "content": text, "content_type": "Application/x-ipynb+JSON; charset=utf-8"}
    assert "n is not a notebook: " in refusal(record)
    assert item(record | {"deleted": True}).deleted


@pytest.mark.parametrize("content", [
    json.dumps({"cells": [CELL]}).encode(),
    json.dumps({"cells": [CELL]}).encode("utf-16"),
    json.dumps({"worksheets": [{"cells": [CELL]}, 3, {"cells": None}]}).encode(),
    b'{"cells": [{"cell_type": "code", "source": "a\xff", "outputs": [NaN]}], "metadata": 3}',
])  # fmt: skip
def test_a_notebook_is_taken_as_it_is(content: bytes) -> None:
    assert item(content, "a.ipynb").content == content


def test_sixty_broken_notebooks_stop_nothing(tmp_path: Path) -> None:
    taking = Taking(tmp_path)
    for number in range(60):
        taking.drop(f"{number}.ipynb", "{}")
    taking.drop("good.ipynb", json.dumps({"cells": [CELL]}))
    report = taking.take()
    assert (report.taken, len(report.rejected), len(taking.items())) == (61, 60, 1)
    assert taking.reason("7.ipynb").startswith("7.ipynb: the file is not a notebook: it has no list of cells")


@pytest.mark.parametrize(
    "more",
    [
        {"cells": [{"cell_type": "raw", "source": ["---\n", "scope: user:jane\n", "---"]}, CELL]},
        {"cells": [{"cell_type": "markdown", "source": "scope: user:jane\n\nWords"}]},
        {"metadata": {"scope": "user:jane"}},
        {"scope": "user:jane"},
    ],
)
def test_a_notebook_that_says_who_may_see_it_is_refused(more: dict[str, object]) -> None:
    text = json.dumps({"cells": [CELL]} | more)
    assert "scope" in refusal(text, "a.ipynb")
    record = {"id": "n", "content": text, "content_type": "application/x-ipynb+json"}
    assert "scope" in refusal(record)
    assert item(record | {"scope": "user:jane"}).scope == "user:jane"
