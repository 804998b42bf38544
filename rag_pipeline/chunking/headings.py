"""Heading lines to the words that stand in a heading path."""

from __future__ import annotations

import re

_MAX_HEADING_CHARS = 200

_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_ATTRIBUTES = re.compile(r"\s*\{[#.:][^{}]*\}\s*$")
_ROLE = re.compile(r":[A-Za-z:+.-]+:(?=`)")
_TARGET = re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{0,2}")
_EMPHASIS = re.compile(r"(\*{1,3}|_{2,3}|~~)(?=\S)(.+?)(?<=\S)\1")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def heading_words(line: str) -> str:
    """The heading without links, roles, emphasis, code marks, tags and attributes, at most 200 characters."""
    words = _ATTRIBUTES.sub("", line[: 2 * _MAX_HEADING_CHARS])
    words = _TARGET.sub(r"\1", _ROLE.sub("", _LINK.sub(r"\1", words)))
    words = _EMPHASIS.sub(r"\2", _TAG.sub("", words)).replace("`", "")
    return _ESCAPE.sub(r"\1", " ".join(words.split()))[:_MAX_HEADING_CHARS].strip()
