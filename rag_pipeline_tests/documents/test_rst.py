"""reStructuredText: directives and roles as what a reader sees of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.documents.rst import extract_rst
from rag_pipeline_tests.documents.extracts import assert_sound, extract_lines

LABELS = frozenset(
    [
        "Note",
        "Warning",
        "New",
        "in",
        "version",
        "Changed",
        "See",
        "also",
        "class",
        "function",
        "Deprecated",
        "since",
        "PEP",
    ]
)
MANUAL = """\
.. _manual:

:orphan:

==============
The ``x`` Tool
==============

.. toctree::
   :maxdepth: 2

   install
   usage

.. note::

   Read :ref:`the setup <secret-setup>` first, or `pip
   <https://pip.pypa.io>`_.

.. versionadded:: 1.2
   The ``--fast`` option of :class:`~acme.tool.Runner`.

.. a comment
   of two lines

.. code-block:: python
   :linenos:

   x = `a` or :class:`~b`

.. autoclass:: acme.Tool
   :members:

.. image:: flow.png
   :alt: The flow of data

.. [1] See :pep:`8`.
.. _pip: https://pip.pypa.io
"""


def test_a_manual_keeps_its_words_and_their_lines() -> None:
    extract = extract_rst(MANUAL)
    assert_sound(MANUAL, extract, added=LABELS)
    assert extract.title == "The x Tool"
    assert list(zip(extract_lines(extract), extract.text.split("\n"), strict=True)) == [
        (5, "=============="),
        (6, "The ``x`` Tool"),
        (7, "=============="),
        (8, ""),
        (15, "Note:"),
        (17, "   Read the setup (secret-setup) first, or pip"),
        (19, ""),
        (20, "New in version 1.2:"),
        (21, "   The ``--fast`` option of acme.tool.Runner."),
        (22, ""),
        (26, ".. code-block:: python"),
        (28, ""),
        (29, "   x = `a` or :class:`~b`"),
        (30, ""),
        (31, "class acme.Tool"),
        (33, ""),
        (35, "   The flow of data"),
        (36, ""),
        (37, "[1] See PEP 8."),
        (39, ""),
    ]


@pytest.mark.parametrize(
    ("directive", "words"),
    [
        (".. prism-code-block:: text", ".. prism-code-block:: text"),
        (".. my-table:: Sizes", ".. my-table:: Sizes"),
        (".. md-tab:: Fish", "Fish"),
        (".. group-panel:: Fish", "Fish"),
        (".. date-include:: Fish", "date-include Fish"),
        (".. py-setting:: DEBUG", "py-setting DEBUG"),
    ],
)
def test_a_directive_that_nobody_knows_is_read_as_the_one_it_is_named_after(directive: str, words: str) -> None:
    text = f"Before.\n\n{directive}\n\n   `a <b>`_ stays\n\nAfter.\n"
    lines = extract_rst(text).text.split("\n")
    assert lines[2] == words
    assert lines[4].strip() == ("`a <b>`_ stays" if words.startswith("..") else "a stays")


@pytest.mark.parametrize(
    "text",
    [
        "Example::\n\n    :class:`~not.touched`\n    .. note:: nor this\n\nAfter.",
        ".. code:: sh\n\n   `ls` `x <y>`_\n",
        ">>> f(`a`)\n:class:`x`",
        "+-----+-----+\n| `a` | `b` |\n+-----+-----+",
        "===== ======\nA     `b`_\n===== ======\n:class:`~x` y\n===== ======\n",
        "``:class:`x``` and ``a`` \\`escaped\\`",
        ".. list-table:: Sizes\n\n   * - `a`\n     - b",
        "`Guide <docs/secret-pages.html>`_ says more",
        ":param x: The words.\n:returns: Nothing.",
        "Title\n=====\n\n- item\n- item",
        "ends with ..",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    assert extract_rst(text).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".. warning:: Do not.", "Warning: Do not."),
        (".. admonition:: My title\n   :class: tip\n\n   Words.", "My title\n\n   Words."),
        (".. seealso::\n   :func:`f`", "See also:\n   f"),
        (".. versionchanged:: 2.0 Faster.", "Changed in version 2.0: Faster."),
        (".. deprecated:: 3.1\n   Use x.", "Deprecated since version 3.1:\n   Use x."),
        (".. py:function:: f(x, *args)\n   :noindex:\n\n   Does it.", "function f(x, *args)\n\n   Does it."),
        (".. option:: --fast\n\n   Quickly.", "--fast\n\n   Quickly."),
        (".. setting:: DEBUG", "setting DEBUG"),
        (".. automodule:: acme.tools\n   :members:", "module acme.tools"),
        (".. rubric:: Footnotes", "Footnotes"),
        (".. only:: html\n\n   Words.", "   Words."),
        (".. figure:: a.png\n   :alt: A chart\n\n   The caption.", "   A chart\n\n   The caption."),
        (".. image:: https://img.shields.io/x.svg\n   :alt: build\n\nx", "x"),
        (".. raw:: html\n\n   <b>x</b>\n\ny", "y"),
        (".. |v| replace:: 1.2\n\nx", "x"),
        ("..\n\n   a quote, not a comment", "   a quote, not a comment"),
        ("..\n   a comment\n\nx", "x"),
        (".. _Docs: https://x.org/\n\nx", "x"),
        (".. _d: https://x.org/hidden-words.html\n\nx", ".. _d: https://x.org/hidden-words.html\n\nx"),
        ("__ https://x.org\n\nx", "x"),
        ("`text`_ and `other`__ and :term:`word`", "text and other and word"),
        (":class:`!X` :meth:`.f` :doc:`/install` :issue:`12` :cpp:func:`a::b`", "X f /install issue 12 a::b"),
        (":attr:`config <flask.Flask.config>`", "config (flask.Flask.config)"),
        (":variable:`CMAKE_<LANG>_FLAGS`", "CMAKE_<LANG>_FLAGS"),
        ("`https://x.org <https://x.org>`_", "https://x.org"),
        ("a\n\n.. note::\n\n   Ex::\n\n     `x`_\n\n   `y`_", "a\n\nNote:\n   Ex::\n\n     `x`_\n\n   y"),
    ],
)
def test_what_goes(text: str, expected: str) -> None:
    extract = extract_rst(text)
    assert extract.text.rstrip("\n") == expected


WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "x.y_z", "naïve"]), min_size=1, max_size=6).map(
    " ".join
)
BLOCKS = st.one_of(
    WORDS,
    WORDS.map(lambda words: f"{words}\n{'=' * len(words)}"),
    WORDS.map(lambda words: f".. note::\n\n   {words} :class:`~{words}`"),
    WORDS.map(lambda words: f".. code-block:: python\n   :linenos:\n\n   {words} `x`_"),
    WORDS.map(lambda words: f"{words}::\n\n   {words} :class:`~a`"),
    WORDS.map(lambda words: f"- {words}\n- `{words} <https://x.org>`_"),
    st.sampled_from([".. a comment", ".. toctree::\n\n   zeta", ".. _label:", ".. index:: zeta", "----"]),
)
DOCUMENTS = st.lists(BLOCKS, max_size=7).map("\n\n".join)


@given(DOCUMENTS)
def test_lines_are_sound_and_words_survive(text: str) -> None:
    extract = extract_rst(text)
    assert_sound(text, extract, added=LABELS)
    wanted = re.findall(r"alpha|beta|gamma|delta|x\.y_z|naïve", text)
    assert re.findall(r"alpha|beta|gamma|delta|x\.y_z|naïve", extract.text) == wanted


@given(DOCUMENTS, WORDS, DOCUMENTS)
def test_an_inserted_paragraph_changes_nothing_around_it(before: str, words: str, after: str) -> None:
    head, tail = f"{before}\n\nanchor one\n\n", f"anchor two\n\n{after}\n"
    old, new = extract_rst(head + tail).text, extract_rst(f"{head}{words}\n\n{tail}").text
    start = new.index("anchor one\n\n") + len("anchor one\n\n")
    assert new[:start] + new[new.index("anchor two") :] == old


@given(st.text(alphabet="ab `_:.<>|\\\n\t-+=*[]~x", max_size=200))
def test_any_marks_in_any_order(text: str) -> None:
    extract = extract_rst(text)
    lines = extract_lines(extract)
    assert len(lines) == extract.text.count("\n") + 1
    assert lines == sorted(lines)
