"""Notebooks: cells as markdown, outputs as their text."""

from __future__ import annotations

import json

import pytest

from rag_pipeline.documents.notebook import extract_notebook


def text_of(*cells: object, **fields: object) -> str:
    notebook = {"nbformat": 4, "metadata": {}, "cells": list(cells), **fields}
    return extract_notebook(json.dumps(notebook), path="a.ipynb").text


def code(*outputs: object, source: str = "f()") -> dict[str, object]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def shown(**data: object) -> dict[str, object]:
    return {"output_type": "display_data", "data": {name.replace("_", "/"): value for name, value in data.items()}}


def test_markdown_cells_are_cleaned() -> None:
    cell = {
        "cell_type": "markdown",
        "source": [
            "# Study <a id='s'></a>\n",
            "![The plot](attachment:plot.png) [![b](https://img.shields.io/b)](https://b.io)\n",
        ],
        "attachments": {"plot.png": {"image/png": "AAAABBBB"}},
    }
    assert text_of(cell) == "# Study\nThe plot\n"
    assert extract_notebook(json.dumps({"cells": [cell]}), path="a").title == "Study"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"output_type": "stream", "text": ["\u001b[31mred\u001b[0m\n", "rate(x[5m])"]}, "red\nrate(x[5m])"),
        ({"output_type": "stream", "text": "10%\r50%\r100%\ndone\r\n"}, "100%\ndone"),
        (
            {"output_type": "error", "ename": "KeyError", "evalue": "\u001b[1m'x'\u001b[0m", "traceback": ["…"]},
            "KeyError: 'x'",
        ),
        (shown(text_html="<table><tr><th>a</th><td>1</td></tr></table>"), "a | 1"),
        (shown(text_html="<b>x</b>", text_plain=["plain"]), "plain"),
        (shown(text_markdown="**bold**"), "**bold**"),
    ],
)
def test_outputs_are_cut_to_their_text(output: dict[str, object], expected: str) -> None:
    assert text_of(code(output)) == f"```python\nf()\n```\n\n```text\n{expected}\n```\n"


def test_pictures_and_scripts_say_nothing() -> None:
    output = shown(image_png="iVBORw0KGgo=", application_javascript="alert(1)")
    assert text_of(code(output)) == "```python\nf()\n```\n"


@pytest.mark.parametrize(
    "plain",
    [
        "<Figure size 432x288 with 1 Axes>",
        "<matplotlib.figure.Figure at 0x1186d90b8>",
        "<generator object evens at 0x10E63FFD0>",
        ["[<matplotlib.lines.Line2D at 0x1>,\n", " <matplotlib.lines.Line2D at 0x2>]"],
    ],
)
def test_the_name_of_an_object_without_text_is_no_output(plain: object) -> None:
    assert text_of(code(shown(text_plain=plain, image_png="iVBORw0KGgo="))) == "```python\nf()\n```\n"


@pytest.mark.parametrize("plain", ["<Response [200]>", "x at 0x10", "<h1>size 4x4</h1>", "[4, <Line2D at 0x1>]"])
def test_an_output_with_words_stays(plain: str) -> None:
    assert plain in text_of(code(shown(text_plain=plain)))


def test_raw_cells_stay_and_empty_ones_go() -> None:
    cells = [
        {"cell_type": "raw", "source": "\\newpage"},
        {"cell_type": "markdown", "source": "<!-- only -->"},
        code(source=" "),
    ]
    assert text_of(*cells) == "\\newpage\n"


def test_the_third_format() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old study"]},
        {"cell_type": "code", "input": ["1 + 1"], "language": "python", "prompt_number": 1, "outputs": [
            {"output_type": "pyout", "text": ["2"], "png": "AAAA"},
            {"output_type": "pyerr", "ename": "E", "evalue": "v", "traceback": []},
        ]},
    ]  # fmt: skip
    text = extract_notebook(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}), path="a.ipynb").text
    assert text == "## Old study\n\n```python\n1 + 1\n```\n\n```text\n2\nE: v\n```\n"


STUDY = {
    "cells": [
        {"cell_type": "markdown", "metadata": {"cells": [{}]}, "source": ["\n", "# T <!-- x -->\n", "\n", "words\n"]},
        {"cell_type": "markdown", "metadata": {}, "source": []},
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [{"output_type": "stream", "text": ["shown\n"]}],
            "source": ["import x\n", "y = ", '"]}{"'],
        },
        {"cell_type": "markdown", "metadata": {}, "source": "one\nstring"},
    ],
    "metadata": {"input": ["a"]},
    "nbformat": 4,
}


def test_lines_are_those_of_the_cells_in_the_file() -> None:
    text = json.dumps(STUDY, indent=1)
    source = text.split("\n")
    extract = extract_notebook(text, path="a.ipynb")
    lines = list(extract.source_lines or ())
    kept = extract.text.split("\n")
    assert len(lines) == len(kept)
    assert lines == sorted(lines)
    for words, part in [("# T", "# T <!--"), ("words", "words"), ("import x", "import x"), ('y = "]}{"', "y = ")]:
        assert part in source[lines[kept.index(words)] - 1]
    assert "import x" in source[lines[kept.index("```python")] - 1]
    assert '"source": "one' in source[lines[kept.index("string")] - 1]


def test_cells_are_numbered_as_they_stand_in_the_file() -> None:
    extract = extract_notebook(json.dumps(STUDY), path="a.ipynb")
    starts = {section.name: extract.text[section.start_char :].split("\n")[0] for section in extract.sections or ()}
    assert starts == {"cell 1": "# T", "cell 3": "```python", "cell 4": "one"}


def test_cells_of_a_file_with_two_lists_of_them_have_no_wrong_lines() -> None:
    text = '{"cells": [{"cell_type": "raw", "source": "a"}],\n"cells": [\n{"cell_type": "raw", "source": "b"}]}'
    extract = extract_notebook(text, path="a.ipynb")
    assert extract.text == "b\n"
    assert set(extract.source_lines or ()) == {1}
