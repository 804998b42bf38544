"""Patterns of inline markup in Markdown and reStructuredText: what is around the words of a heading or a title.

Documents take titles from it and chunks their heading paths; how far each strips is its own business.
"""

from __future__ import annotations

import re

PAYLOAD = r"data:[\w.+-]{1,40}/[\w.+-]{1,40};base64,[A-Za-z0-9+/=]{64,}"
"""A picture written out in an address, of some size; a pattern, for texts and for bytes."""
LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
"""An image or a link; group 1: its text."""
TAG = re.compile(r"</?[A-Za-z][^<>]*>")
"""An HTML tag."""
ATTRIBUTES = re.compile(r"\s*\{[#.:][^{}]*\}\s*$")
"""Attributes at the end of a heading, `{#id .class}`."""
ROLE = re.compile(r":[A-Za-z:+.-]+:(?=`)")
"""A reStructuredText role before its text."""
TARGET = re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{0,2}")
"""A reStructuredText link with its target; group 1: its text."""
EMPHASIS = re.compile(r"(\*{1,3}|_{2,3}|~~)(?=\S)(.+?)(?<=\S)\1")
"""Emphasis; group 2: what is emphasised."""
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
"""A backslash escape; group 1: what is escaped."""
