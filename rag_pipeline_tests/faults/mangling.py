"""Inputs that began as something real: cut, doubled, spliced, with bytes turned and hostile pieces put in."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

MANY = 10 if os.environ.get("RAG_TEST_LONG") else 1
deep = settings(max_examples=1000 * MANY, deadline=None, suppress_health_check=list(HealthCheck))
"""For tests whose examples take a millisecond or two; `RAG_TEST_LONG` asks for ten times as many."""
slower = settings(deep, max_examples=100 * MANY)
"""For those that start programs or ask over a socket."""

PIECES = st.sampled_from([
    b"", b"\0", b"\r", b"\r\n", b"\n\n", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80",
    b"{", b"}", b"[", b"]", b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b",", b":", b"NaN", b"-Infinity", b"1e999",
    b"9" * 400, b"-0", b"null", b"true", b"[" * 300, b"{\"a\":" * 200, b"<", b"</", b"<!--", b"-->", b"<![CDATA[",
    b"<pre>", b"<table><tr><td>", b"&#0;", b"&#x110000;", b"&amp", b"```", b"~~~", b"---\n", b"...", b"+++", b"===",
    b".. note::\n", b"::\n\n  ", b"|a|b|\n|-|-|\n", b"[x]: y\n", b"![](", b"include::", b"////\n", b"%", b"%s", b"{0}",
    b"..", b"../../etc/passwd", b"C:\\", b"\x1b[31m", b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\x7f", b"\xc2\x85",
    b"a" * 5000, b"<<<<<<< HEAD\n", b"#!/bin/sh\n", b"=cmd|' /C calc'!A0", b"' OR 1=1 --", b"$(id)", b"${x}",
    b"*x", b"&x", b"!!python/x",
])  # fmt: skip


@st.composite
def mangled(draw: st.DrawFn, samples: Mapping[str, bytes]) -> tuple[str, bytes]:
    """A sample's name, and what has become of it."""
    names = sorted(samples)
    name = draw(st.sampled_from(names))
    content = bytearray(samples[name])
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(content)))
        what = draw(st.sampled_from(("cut", "drop", "insert", "double", "turn", "splice")))
        if what == "cut":
            del content[at:]
        elif what == "drop":
            del content[at : at + draw(st.integers(1, 200))]
        elif what == "insert":
            content[at:at] = draw(PIECES | st.binary(max_size=8))
        elif what == "double":
            content[at:at] = content[at : at + draw(st.integers(1, 400))]
        elif what == "turn" and at < len(content):
            content[at] ^= draw(st.integers(1, 255))
        elif what == "splice":
            other = samples[draw(st.sampled_from(names))]
            start = draw(st.integers(0, len(other)))
            content[at:at] = other[start : start + 300]
    return name, bytes(content)
