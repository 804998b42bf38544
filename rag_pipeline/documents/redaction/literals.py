"""The value that stands behind a name: in quotes of many languages, as a block of YAML, or without quotes."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rag_pipeline.documents.redaction.values import is_jumble, is_random

_QUOTED = re.compile(
    r"[rbuf$@]{0,2}(?P<q>\\?\"\"\"|'''|\\{1,7}\"|\"|\\?'|`{1,3})(?P<v>(?:(?!(?P=q))[^\n]){1,4096})(?P=q)"
)
_ESCAPED_QUOTES = re.compile(r"(?P<q>[\"'])(?P<v>(?:\\[^\n]|(?!(?P=q))[^\s\\]){1,4096}+)(?P=q)")
"""A value without spaces that holds quotes like those around it, each behind a backslash."""
_GLUED = re.compile(
    r"[\"'](?P<glue>[ \t]*(?:\\?\n[ \t]*)?(?:\+|\.{1,2}|&|<>)[ \t]*(?:\\?\n[ \t]*)?|[ \t]*\n[ \t]+)[rbuf]?(?P<q>[\"'])"
    r"(?P<v>(?:(?!(?P=q))[^\n\\]){1,1000})(?=(?P=q))"
)
"""Another literal that is put behind the one before: by a sign, or in brackets on the next line."""
_FOLDED = re.compile(r"[^\s\"'`]{4,2000}(?:\\?\n[ \t]+[^\s\"'`]{1,2000}){1,40}(?=[\"'])")
_BLOCK = re.compile(r"[|>][+-]?\d?[ \t]*\n(?P<v>(?:[ \t]+[^\s#]\S*(?<!:)[ \t]*(?:\n|$)){1,200})")
_HEREDOC = re.compile(
    r"<<[-~<]?[ \t]*(?P<q>[\"']?)(?P<tag>[A-Za-z_]\w{0,40})(?P=q)[ \t]*\n(?P<v>(?:[^\n]*\n){1,20}?)[ \t]*(?P=tag)\b"
)
_PROPERTIES = re.compile(
    r"(?:(?:&[\w.-]+|!(?:![\w./:-]*|<[^<>\s]+>|(?:vault|unsafe|str|string|binary|encrypted)\b)?)[ \t]+)+"
)
"""What YAML writes before a value: anchors, and tags that say how to read it. Other tags make it a reference."""
_MORE_LINES = re.compile(r"(?:\\?\n[ \t]+[A-Za-z0-9+/=_.-]{6,}(?=[ \t]*(?:\n|$|[\"'])))*")
_BARE = re.compile(r"[^\s\"'`<>|]{3,4096}")
_BARE_JUMBLE = re.compile(r"[^\s\"'`<]{4,4096}")
"""What ends a value elsewhere is one sign of many in it."""
_NEXT_NAME = re.compile(r"[,;&](?=\s*[.-]*\w[\w.-]* ?[=:]|amp;|$|[\"')\]}])")
_ESCAPED_BREAK = re.compile(r"\\+[nrt]")
_DEFAULT = re.compile(r":?[-=]([^}\s\"']*)\}")
_MOST_PIECES: Final = 40


class Value(NamedTuple):
    """What may be a secret: `text[start:end]`, without its quotes."""

    start: int
    end: int
    quoted: bool


def value_at(text: str, at: int) -> Value | None:
    """The value that begins there: a literal, a block of YAML or of a shell, or what stands without quotes."""
    if text[at : at + 1] in {"&", "!"} and (properties := _PROPERTIES.match(text, at)):
        at = properties.end()
    if block := _BLOCK.match(text, at) or _HEREDOC.match(text, at):
        folded = block["v"]
        return Value(block.end("v") - len(folded.lstrip()), block.start("v") + len(folded.rstrip()), True)
    if quoted := _QUOTED.match(text, at):
        return _with_escaped_quotes(text, quoted) or Value(*quoted.span("v"), True)
    opening = text[at : at + 1]
    if opening in {'"', "'"} and (folded_quote := _FOLDED.match(text, at + 1)):
        return Value(*folded_quote.span(), True)
    bare = _BARE.match(text, at + (opening in {'"', "'", "`"}))
    if bare and text.startswith(">", bare.end()):
        longer = _BARE_JUMBLE.match(text, bare.start())
        bare = longer if longer and is_jumble(longer.group()) else bare
    return _trimmed(text, bare) if bare else None


def default_at(text: str, at: int) -> Value | None:
    """What a shell takes when the variable is not set: `${PASSWORD:-value}`."""
    found = _DEFAULT.match(text, at)
    return Value(*found.span(1), True) if found else None


def pieces(text: str, value: Value) -> list[tuple[int, int]]:
    """Where the value stands, and the literals that are put behind it: `"first" + "second"`."""
    found = [(value.start, value.end)]
    is_in_brackets = text[max(0, value.start - 80) : value.start - 1].rstrip("rbuf \t\n").endswith("(")
    while value.quoted and len(found) < _MOST_PIECES and (more := _GLUED.match(text, found[-1][1])):
        if more["glue"].isspace() and not is_in_brackets:
            break
        found.append(more.span("v"))
    return found


def _with_escaped_quotes(text: str, quoted: re.Match[str]) -> Value | None:
    if quoted["q"] in {'"', "'"} and quoted["v"].endswith("\\"):
        whole = _ESCAPED_QUOTES.match(text, quoted.start("q"))
        return Value(*whole.span("v"), True) if whole else None
    return None


def _trimmed(text: str, bare: re.Match[str]) -> Value:
    """A value without quotes, less the punctuation that follows it, with the lines it goes on in."""
    found = bare.group()
    if cut := _NEXT_NAME.search(found):
        found = found[: cut.start()]
    found = _ESCAPED_BREAK.split(found)[0]
    if not found.endswith("..."):
        found = found.rstrip(",;:.")
    while found.endswith((")", "]", "}")) and not any(opening in found for opening in "([{"):
        found = found[:-1].rstrip(",;:.")
    end = bare.start() + len(found)
    if len(found) >= 24 and is_random(found) and (more := _MORE_LINES.match(text, end)):
        end = more.end()
    return Value(bare.start(), end, False)
